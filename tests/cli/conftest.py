"""What the tests of the command line share: running a command in this process or in one of its own."""

import contextlib
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import jobq
from jobq.cli import main
from tests.ready import ready_file

ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Answer:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document of standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines of standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start each test in an empty directory and without variables that stand for options."""
    for name in list(os.environ):
        if name.startswith("JOBQ_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run a command in this process."""

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


class Terminal(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run a command in this process on a plain terminal of 80 columns, and return the lines that it shows."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object) -> list[str]:
        screen = Terminal()
        with contextlib.redirect_stdout(screen):
            main([str(argument) for argument in arguments])
        return screen.getvalue().splitlines()

    return run


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[jobq.JobQueue]:
    """A job queue in the file ``jobs.db`` of the test's directory."""
    with jobq.open(ready_file(tmp_path / "jobs.db")) as opened:
        opened.queues()
        yield opened


def start(*arguments: object, cwd: Path, **settings: Any) -> "subprocess.Popen[str]":
    """Start a command in a process of its own; the caller waits for it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **settings.pop("env", {})}
    command = [sys.executable, "-m", "jobq", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def finish(process: "subprocess.Popen[str]", *, timeout: float = 60) -> Answer:
    """Wait for a command that :func:`start` started."""
    out, err = process.communicate(timeout=timeout)
    return Answer(process.returncode, out, err)


def wait_for(condition: Callable[[], bool], *, timeout: float = 20) -> None:
    """Wait until another process has done something."""
    deadline, pause = time.monotonic() + timeout, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        pause.wait(0.002)
