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
#: How long a worker may take to end, in seconds.
BOUND = 2.0
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


def exit_code(pid: int) -> int | None:
    """Return what a child ended with, or None when it still runs after the bound; then it is killed."""
    deadline, pause = time.monotonic() + BOUND, threading.Event()
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        pause.wait(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


@pytest.mark.parametrize(
    "times", [pytest.param(20, id="short"), pytest.param(2_000, id="long", marks=pytest.mark.storm)]
)
def test_b28_sigterm_at_a_random_moment_ends_an_idle_worker_within_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """From the line that says it works on; each exits with 0."""
    path, dice, pause = tmp_path / "jobs.db", random.Random(28), threading.Event()
    (tmp_path / "idle_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    # Everything that a worker needs is imported once, here.
    assert main([*COMMAND, str(path), "--burst"]) == 0
    for number in range(times):
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            serve(path, writing)
        os.close(writing)
        with os.fdopen(reading) as told:
            line = told.readline()
            assert line.startswith("working on"), line + told.read()
            pause.wait(dice.random() ** 3 * 0.2)
            os.kill(pid, signal.SIGTERM)
            assert exit_code(pid) == 0, f"the signal number {number + 1}: {told.read()}"
