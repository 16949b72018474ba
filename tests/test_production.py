"""What README.rst says about production is carried out: unit, servers, desktop loops, backup and restore."""

import argparse
import configparser
import http.client
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docutils.nodes
import pytest

from jobq.cli.parser import build_parser
from jobq.model.duration import to_seconds
from jobq.runtime.shutdown import NOTICE
from tests.readme import parsed

ROOT = Path(__file__).resolve().parents[1]
#: No test waits longer for a server, in seconds.
PATIENCE = 30.0


def block(name: str) -> str:
    """Return the block of the README that has this name."""
    for one in parsed().findall(docutils.nodes.literal_block):
        if name in one["names"] or name in one["classes"]:
            return str(one.astext())
    raise AssertionError(f"the README has no block {name}")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write blocks of the README as files of these names into the test's directory."""
    for name in [name for name in os.environ if name.startswith("JOBQ_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def write(*names: str) -> Path:
        for name in names:
            (tmp_path / name).write_text(block(name))
        return tmp_path

    return write


def run(*command: str, cwd: Path) -> str:
    """Run a command to its end and return what it printed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_unit_starts_a_command_that_there_is_and_waits_long_enough() -> None:
    """Its options parse, and systemd kills only after grace and cancel have passed."""
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(block("shop-workers.service"))
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    arguments: argparse.Namespace = build_parser().parse_args(words)

    assert program.endswith("/jobq")
    assert (arguments.app, arguments.grace) == ("tasks:handlers", 60)
    assert to_seconds(service["TimeoutStopSec"], argument="TimeoutStopSec") > arguments.grace + NOTICE
    assert (service["KillSignal"], service["Environment"].partition("=")[0]) == ("SIGTERM", "JOBQ_DB")


def test_tk_loop_shows_events_in_its_own_thread(place: Callable[..., Path]) -> None:
    """The loop is Tcl's, which needs no display; only the label is left out."""
    pytest.importorskip("tkinter")
    script = """
import threading, tkinter, jobq, window

loop, shown, threads = tkinter.Tcl(), [], set()

def show(event):
    shown.append(str(event.state))
    threads.add(threading.get_ident())

with window.jobs.bus.stream(jobq.JobStateChanged) as stream, jobq.Runner(window.jobs):
    window.follow(loop, stream, show)
    window.greet.enqueue(window.Greeting("Ada"))
    while "succeeded" not in shown:
        loop.tk.dooneevent()
assert threads == {threading.get_ident()}
print(*shown)
"""
    assert run(sys.executable, "-c", script, cwd=place("tasks.py", "window.py")).split() == [
        "queued", "running", "succeeded",
    ]  # fmt: skip


def test_qt_bridge_emits_each_change(place: Callable[..., Path], tmp_path: Path) -> None:
    """Qt itself is a stand-in: a signal that calls whoever is connected."""
    (tmp_path / "PySide6").mkdir()
    (tmp_path / "PySide6" / "__init__.py").write_text("")
    (tmp_path / "PySide6" / "QtCore.py").write_text(
        "class QObject: ...\n"
        "class Signal:\n"
        "    def __init__(self, *types): self.slots = []\n"
        "    def connect(self, slot): self.slots.append(slot)\n"
        "    def emit(self, *values): [slot(*values) for slot in self.slots]\n"
    )
    script = """
import bridge, jobq
from tasks import Greeting, greet, jobs

made = bridge.Bridge(jobs)
made.changed.connect(lambda event: print(event.state))
greet.enqueue(Greeting("Ada"))
jobq.Runner(jobs).drain()
"""
    assert run(sys.executable, "-c", script, cwd=place("tasks.py", "bridge.py")).split()[-1] == "succeeded"


def test_backup_is_restored_as_described(place: Callable[..., Path], tmp_path: Path) -> None:
    """The commands run, and the jobs of the backup are there."""
    folder = place("tasks.py")
    jobq_ = f'"{sys.executable}" -m jobq'
    run("bash", "-euc", f"{jobq_} job enqueue greet '{{\"to\": \"Ada\"}}' --db app.db", cwd=folder)

    out = run("bash", "-euc", f'jobq() {{ {jobq_} "$@"; }}\n' + block("restore"), cwd=folder)

    assert "greet" in out
    assert (tmp_path / "app.db").read_bytes() == (tmp_path / "monday.db").read_bytes()


class Unix(http.client.HTTPConnection):
    """HTTP over the socket in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        """Connect to the file."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self._path))


def ask(path: Path, method: str, url: str) -> str:
    """Send a request and return the body of the answer."""
    connection = Unix(path)
    try:
        connection.request(method, url, body=b"" if method == "POST" else None)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@pytest.fixture
def server(place: Callable[..., Path]) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A gunicorn that preloads the WSGI recipe and has the README's configuration, and its socket."""
    pytest.importorskip("gunicorn")
    folder = place("shop.py", "gunicorn.conf.py")
    # The path of a socket has room for about a hundred characters.
    short = Path(tempfile.mkdtemp())
    path = short / "s"
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"unix:{path}", "shop:application"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not path.exists():
            assert process.poll() is None, "gunicorn ended"
            assert time.monotonic() < deadline, "gunicorn did not start"
            os.sched_yield()
        yield process, path
    finally:
        process.kill()
        process.wait(PATIENCE)
        shutil.rmtree(short)


def test_gunicorn_preloads_and_runs_a_runner_in_each_worker(
    server: tuple["subprocess.Popen[bytes]", Path],
) -> None:
    """A request enqueues, a thread of a worker process runs the job, and SIGTERM stops all of it."""
    process, path = server
    assert ask(path, "POST", "/") == '{"job": 1}'
    deadline = time.monotonic() + PATIENCE
    while "succeeded" not in ask(path, "GET", "/1"):
        assert time.monotonic() < deadline, "the job was not run"

    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE) == 0
