"""Engines that must leave nothing open, and programs of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from jobq.store.sqlite.engine import Engine
from tests.failing_files import FailingFiles
from tests.store.sqlite.enginekit import FIRST, PACKAGE_ROOT, SECOND


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of a database that does not exist yet."""
    return str(tmp_path / "jobs.db")


@pytest.fixture
def fed() -> list[Any]:
    """What the engines of the test fed, in order."""
    return []


@pytest.fixture
def open_engine(path: str, fed: list[Any]) -> Iterator[Callable[..., Engine]]:
    """Make engines on the test's file; afterwards no connection to it may be open."""
    made: list[Engine] = []

    def make(**options: Any) -> Engine:
        engine = Engine(path, **{"feed": fed.extend, "migrations": [FIRST], "now": lambda: 7, **options})
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()
    made.clear()
    assert [connection for connection in apsw.connections() if connection.filename.startswith(path)] == []


@pytest.fixture
def engine(open_engine: Callable[..., Engine]) -> Engine:
    """An engine on a fresh file with the first schema."""
    return open_engine()


@pytest.fixture
def other(path: str) -> Iterator[apsw.Connection]:
    """Another connection to the file, standing for another process."""
    connection = apsw.Connection(path)
    yield connection
    connection.close()


@pytest.fixture
def script(path: str) -> Callable[..., subprocess.Popen[str]]:
    """Start a Python program of its own that finds ``PATH``, ``FIRST``, ``SECOND`` and ``Engine`` defined."""
    prelude = (
        "import os, sys, signal, threading\n"
        "import apsw\n"
        "from jobq import errors\n"
        "from jobq.store.sqlite.engine import Engine\n"
        "from jobq.store.sqlite.migrate import Migration\n"
        f"PATH = {path!r}\n"
        f"FIRST = Migration(*{tuple(FIRST)!r})\n"
        f"SECOND = Migration(*{tuple(SECOND)!r})\n"
    )

    def begin(code: str, *arguments: str, stdin: bool = False) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
        return subprocess.Popen(
            [sys.executable, "-c", prelude + code, *arguments],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    return begin


@pytest.fixture
def output(script: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """Run such a program to its end and return what it printed."""

    def run(code: str, *arguments: str) -> str:
        process = script(code, *arguments)
        printed, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return printed.strip()

    return run


@pytest.fixture
def failing() -> Iterator[FailingFiles]:
    """A file system that fails when told to."""
    vfs = FailingFiles()
    yield vfs
    vfs.unregister()
