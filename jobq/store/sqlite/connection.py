"""How a connection to the file is made: the library's version, the settings, the file's identity.

Nothing here opens the database, its -wal or its -shm file but SQLite itself: closing any other descriptor drops the
POSIX locks of the whole process (https://sqlite.org/howtocorrupt.html, section 2.2). ``os.stat`` is harmless.
"""

import os
import sys
from contextlib import suppress

import apsw

from jobq.errors import ArgumentError, ConfigError, ForkedHandle, StoreCorrupt, StoreUnavailable
from jobq.store.sqlite.patience import wait_at_most

#: The WAL file is cut back to this many bytes when it starts over.
WAL_LIMIT = 4 * 1024 * 1024
_CACHED_STATEMENTS = 256
_CHECKPOINT_PAGES = 1000
_TEMPORARY_NAMES = frozenset({"", ":memory:"})

Identity = tuple[int, int]


def check_library(version: str) -> None:
    """Refuse an SQLite library with the WAL-reset bug (https://sqlite.org/wal.html, section 11)."""
    release = tuple(int(part) for part in version.split(".")[:3])
    if release >= (3, 51, 3) or (3, 50, 7) <= release < (3, 51) or (3, 44, 6) <= release < (3, 45):
        return
    raise ConfigError(
        f"SQLite {version} can corrupt a database in WAL mode",
        fix="Install apsw 3.53 or newer from its wheel, or link it with SQLite 3.51.3 or newer.",
    )


def check_path(path: str) -> str:
    """Return the absolute path; names of memory databases are refused."""
    if path in _TEMPORARY_NAMES:
        raise ArgumentError(
            "path",
            f"{path!r} names no file, and threads and processes could not share it",
            fix="Call jobq.open() without a path for a temporary job queue.",
        )
    absolute = os.path.abspath(path)
    try:
        absolute.encode()
    except UnicodeEncodeError as exc:
        raise ArgumentError("path", "it is not valid UTF-8, SQLite cannot open it") from exc
    if "\0" in absolute:
        raise ArgumentError("path", "it contains a NUL character")
    return absolute


class DatabaseFile:
    """The file that was opened: its path, what identifies it, and the process that may use its handles."""

    __slots__ = ("_identity", "_process", "forked", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.forked = False
        self._process = os.getpid()
        self._identity: Identity | None = None

    def adopt_process(self, *, spoiled: bool) -> None:
        """Belong to the calling process, after a fork; ``spoiled`` if a handle could not be closed before it."""
        self.forked = self.forked or spoiled
        self._process = os.getpid()

    def remember(self) -> None:
        """Take the file that is there now for the one that was opened."""
        self._identity = self._look(gone=StoreUnavailable)

    def check_process(self) -> None:
        """Raise ForkedHandle in a process that inherited handles which could not be closed."""
        if self.forked or os.getpid() != self._process:
            raise ForkedHandle(self.path)

    def check(self) -> None:
        """Raise StoreCorrupt when the path no longer leads to the file whose handle is open."""
        self.check_process()
        if self._look(gone=StoreCorrupt) != self._identity:
            raise StoreCorrupt(self.path, "the file was replaced while it was open")

    def check_closed(self) -> None:
        """The same where no handle is open: then a missing file is unavailable, and was not torn away."""
        self.check_process()
        if self._look(gone=StoreUnavailable) != self._identity:
            raise StoreCorrupt(self.path, "the file was replaced while the job queue was open")

    def _look(self, *, gone: type[StoreCorrupt] | type[StoreUnavailable]) -> Identity:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            what = "the file was unlinked while it was open" if gone is StoreCorrupt else "the file is not there"
            raise gone(self.path, what) from None
        except OSError as exc:
            raise StoreUnavailable(self.path, exc.strerror or "it cannot be looked at") from exc
        return found.st_dev, found.st_ino


def connect(path: str, *, create: bool = False, vfs: str | None = None, busy_timeout: float = 0) -> apsw.Connection:
    """Open a connection with our settings; without ``create`` a missing file is CANTOPEN, never a new database."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(path, flags=flags, vfs=vfs, statementcachesize=_CACHED_STATEMENTS)
    try:
        wait_at_most(connection, busy_timeout)
        # Without it a statement that a partial index serves is prepared anew each time a value is bound.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        _set(connection, "foreign_keys = ON")
        _set(connection, "synchronous = NORMAL")
        connection.wal_autocheckpoint(_CHECKPOINT_PAGES)
        _set(connection, f"journal_size_limit = {WAL_LIMIT}")
        if sys.platform == "darwin":
            _set(connection, "fullfsync = ON")
            _set(connection, "checkpoint_fullfsync = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def make_reader(connection: apsw.Connection) -> apsw.Connection:
    """Turn a connection into one that cannot write."""
    _set(connection, "query_only = ON")
    return connection


def set_synced(connection: apsw.Connection, *, synced: bool) -> None:
    """Choose whether the next commits are synced; only valid outside a transaction."""
    # SQLite acts on this pragma while it compiles it, so a cached statement must not be relied on.
    connection.execute("PRAGMA synchronous = FULL" if synced else "PRAGMA synchronous = NORMAL", can_cache=False)


def close(connection: apsw.Connection) -> None:
    """Close a connection, whatever is unfinished on it.

    Where another file took the place of ours, SQLite notices and leaves that one's -wal file alone. Trouble with the
    checkpoint that comes with the last close is no error: the WAL keeps everything.
    """
    with suppress(apsw.Error):
        connection.close(True)


def _set(connection: apsw.Connection, setting: str) -> None:
    connection.execute("PRAGMA " + setting, can_cache=False).fetchall()
