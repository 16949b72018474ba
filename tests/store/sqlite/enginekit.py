"""What the engine's tests share: a tiny schema, operations on it, threads, a file system that fails when told to."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import jobq.store.sqlite
from jobq.store.sqlite.migrate import Migration

FIRST = Migration(
    1,
    "initial",
    """
    CREATE TABLE item (id INTEGER PRIMARY KEY, who TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE part (item INTEGER REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED, body BLOB) STRICT;
    """,
)
SECOND = Migration(2, "colour", "ALTER TABLE item ADD COLUMN colour TEXT; CREATE INDEX item_colour ON item (colour);")
PACKAGE_ROOT = Path(jobq.store.sqlite.__file__).parents[3]


def insert(who: str) -> Callable[[apsw.Connection, list[Any]], int]:
    """Return an operation that inserts one item and reports it as its change."""

    def operation(connection: apsw.Connection, changes: list[Any]) -> int:
        rows: list[Any] = connection.execute("INSERT INTO item (who) VALUES (?) RETURNING id", (who,)).fetchall()
        changes.append(who)
        return int(rows[0][0])

    return operation


def names(connection: apsw.Connection) -> list[str]:
    """Return who is in the table, in the order of insertion."""
    return [str(who) for (who,) in connection.execute("SELECT who FROM item ORDER BY id").fetchall()]


def until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Wait for a condition of other threads, and fail when it does not come true in time."""
    pause = threading.Event()
    for _ in range(int(timeout / 0.001)):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("the condition did not come true in time")


def start(target: Callable[[], object]) -> threading.Thread:
    """Start a thread."""
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def join(*threads: threading.Thread) -> None:
    """Wait until threads have ended."""
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


class FaultyFile(apsw.VFSFile):
    """A file whose writes and syncs count, and fail when it is their turn."""

    def __init__(self, vfs: "FaultyFiles", *arguments: Any) -> None:
        self._vfs = vfs
        super().__init__(*arguments)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, or fail."""
        self._vfs.step()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Sync, or fail."""
        self._vfs.step()
        super().xSync(flags)


class FaultyFiles(apsw.VFS):
    """A VFS that raises an error at the Nth write or sync, once armed."""

    def __init__(self) -> None:
        self.name = "faulty"
        self.remaining = 0
        self.code = apsw.SQLITE_FULL
        super().__init__(self.name, "")

    def arm(self, step: int, code: int) -> None:
        """Fail at this step, counted from now, and at each one after it until :meth:`disarm`."""
        self.remaining = step
        self.code = code

    def disarm(self) -> bool:
        """Stop failing; True if a step has failed."""
        failed = self.remaining < 0
        self.remaining = 0
        return failed

    def step(self) -> None:
        """Count one write or sync."""
        if self.remaining == 1:
            self.remaining = -1
        if self.remaining < 0:
            raise apsw.exception_for(self.code)
        if self.remaining > 0:
            self.remaining -= 1

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's name
        """Open a file that counts."""
        return FaultyFile(self, "", name, flags)
