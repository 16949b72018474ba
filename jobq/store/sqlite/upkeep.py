"""What maintenance and the doctor do with a connection: checkpoints, and a look at the file."""

import os
from typing import Any

import apsw
import attrs

from jobq.store.sqlite import connection as connections
from jobq.store.sqlite import migrate
from jobq.store.sqlite.patience import wait_at_most

#: How long a checkpoint that resets the WAL may wait for other processes and for readers, in seconds.
RESET_WITHIN = 0.02


@attrs.frozen(kw_only=True)
class Status:
    """What the file and the library look like, for people."""

    library: str
    journal_mode: str
    schema_version: int
    auto_vacuum: int
    page_size: int
    pages: int
    free_pages: int
    wal_bytes: int


def checkpoint(connection: apsw.Connection) -> None:
    """Move the WAL into the database as far as nobody is disturbed; others write and read meanwhile.

    Does nothing where another checkpoint is under way.
    """
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except (apsw.BusyError, apsw.LockedError):
        return


def is_overgrown(path: str) -> bool:
    """Whether the WAL has to be cut back: behind steady writers it may never come to its end and start over."""
    return wal_bytes(path) > connections.WAL_LIMIT


def reset(connection: apsw.Connection) -> None:
    """Cut the WAL back, while the caller keeps the other threads of this process from writing.

    Does nothing where other processes are at work just then; the next call finds the same.
    """
    try:
        wait_at_most(connection, RESET_WITHIN)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return


def wal_bytes(path: str) -> int:
    """Return the size of the WAL file, 0 where there is none."""
    try:
        return os.stat(path + "-wal").st_size
    except OSError:
        return 0


def status(connection: apsw.Connection, path: str) -> Status:
    """Return what the file and the library look like now."""
    return Status(
        library=apsw.sqlite_lib_version(),
        journal_mode=str(_ask(connection, "PRAGMA journal_mode")),
        schema_version=migrate.version(connection),
        auto_vacuum=_ask(connection, "PRAGMA auto_vacuum"),
        page_size=_ask(connection, "PRAGMA page_size"),
        pages=_ask(connection, "PRAGMA page_count"),
        free_pages=_ask(connection, "PRAGMA freelist_count"),
        wal_bytes=wal_bytes(path),
    )


def _ask(connection: apsw.Connection, pragma: str) -> Any:
    rows: list[Any] = connection.execute(pragma).fetchall()
    return rows[0][0]
