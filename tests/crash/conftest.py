"""Starting, hearing and ending the other processes of the crash tests."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jobq
from tests.failing_files import FailingFiles

ROOT = Path(__file__).resolve().parents[2]
#: No test waits longer for another process, in seconds.
PATIENCE = 20.0


class Program:
    """One program of ``tests.crash.programs`` in a process of its own."""

    def __init__(self, name: str, path: str, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "tests.crash.programs", name, path, json.dumps(settings)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def hear(self, word: str) -> list[Any]:
        """Return the rest of the next line that begins with this word."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            first, *rest = json.loads(line)
            if first == word:
                return rest
        raise AssertionError(f"the program ended with {self._process.wait(PATIENCE)} without saying {word!r}")

    def go(self) -> None:
        """Let it go on: programs that wait for others read a line."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def finish(self) -> int:
        """Close its stdin and return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(PATIENCE)

    def wait(self) -> int:
        """Return its exit code."""
        return self._process.wait(PATIENCE)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it as ``kill -9`` does, and wait until it is gone."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def close(self) -> None:
        """Leave nothing behind."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts programs on the test's file; all are gone after the test."""
    programs: list[Program] = []

    def start(name: str, **settings: Any) -> Program:
        programs.append(Program(name, str(tmp_path / "jobs.db"), settings))
        return programs[-1]

    yield start
    for program in programs:
        program.close()


@pytest.fixture
def real_jobs(tmp_path: Path) -> Iterator[Callable[..., jobq.JobQueue]]:
    """Opens the test's file in this process on the system's clock, with a configuration."""
    opened: list[jobq.JobQueue] = []

    def opener(**config: Any) -> jobq.JobQueue:
        opened.append(jobq.open(tmp_path / "jobs.db", config=jobq.Config(**config)))
        return opened[-1]

    yield opener
    for jobs in opened:
        jobs.close()


@pytest.fixture
def failing() -> Iterator[FailingFiles]:
    """The file system of all connections, failing when told to."""
    vfs = FailingFiles(default=True)
    yield vfs
    vfs.unregister()
