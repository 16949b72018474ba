"""Files of job queues, copied instead of made: only the tests of the migrations need to run them each time."""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jobq
from jobq.testing import FakeClock


def _empty(path: Path) -> None:
    jobq.open(path, clock=FakeClock()).close()


@cache
def _content(prepare: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "jobs.db")
        prepare(path)
        return path.read_bytes()


def ready_file(path: "str | os.PathLike[str]", prepare: Callable[[Path], object] = _empty) -> str:
    """Put at a path where no file is what a function makes there, an empty job queue, and return the path.

    The function is called once, for a path of its own, and has closed everything when it returns.
    """
    # To write, or only to read, a file that SQLite has open here would end its locks: so "x", and no other mode.
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(_content(prepare))
    return os.fspath(path)
