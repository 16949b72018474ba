"""B28: SIGTERM at random moments, often. Workers are forked from this process, so that starting one costs little."""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from jobq.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
COMMAND = ("work", "-A", "idle_tasks:handlers", "--db")
TASKS = "import jobq\nhandlers = jobq.Handlers()\nhandlers.job(name='idle')(lambda payload: None)\n"


def serve(path: Path, writing: int) -> NoReturn:
    """Be the program ``jobq work``, in a child: its standard error goes into the pipe."""
    code = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout = sys.stderr = os.fdopen(writing, "w", buffering=1)
        code = main([*COMMAND, str(path)])
    finally:
        os._exit(code)


class Worker:
    """One such child, and the pipe that it tells things through."""

    def __init__(self, path: Path) -> None:
        reading, writing = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(reading)
            serve(path, writing)
        os.close(writing)
        self._told = os.fdopen(reading)

    def terminate(self, bound: float) -> None:
        """Send it the signal once it has said that it works; from then on it has so many seconds to end."""
        line = self._told.readline()
        assert line.startswith("working on"), line + self._told.read()
        os.kill(self._pid, signal.SIGTERM)
        self._deadline = time.monotonic() + bound

    def end(self, pause: threading.Event) -> tuple[int | None, str]:
        """Return its exit code and what else it told; None when it still runs after the bound, and is killed."""
        code: int | None = None
        while code is None and time.monotonic() < self._deadline:
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if ended else None
            pause.wait(0 if ended else 0.002)
        if code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        with self._told:
            return code, self._told.read()


@pytest.mark.parametrize(
    ("times", "at_once", "bound"),
    [
        # Beside other tests and their processes, so that only one that hangs is late.
        pytest.param(20, 1, 20.0, id="short"),
        pytest.param(int(os.environ.get("JOBQ_STORM_SIGNALS", "2000")), 5, 2.0, id="long", marks=pytest.mark.storm),
    ],
)
def test_b28_sigterm_at_a_random_moment_ends_an_idle_worker_within_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, at_once: int, bound: float
) -> None:
    """From the line that says it works on; each exits with 0. The long form takes JOBQ_STORM_SIGNALS of them."""
    path, dice, pause = tmp_path / "jobs.db", random.Random(28), threading.Event()
    (tmp_path / "idle_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    # Everything that a worker needs is imported once, here.
    assert main([*COMMAND, str(path), "--burst"]) == 0
    for number in range(0, times, at_once):
        workers = [Worker(path) for _ in range(at_once)]
        for worker in workers:
            pause.wait(dice.random() ** 3 * 0.2)
            worker.terminate(bound)
        ended = [worker.end(pause) for worker in workers]
        assert [code for code, _ in ended] == [0] * at_once, f"from the signal number {number + 1} on: {ended}"
