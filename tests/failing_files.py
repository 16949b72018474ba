"""A file system for SQLite that fails when told to."""

from collections.abc import Callable, Collection
from typing import Any

import apsw

#: The calls that may fail.
WRITE, SYNC, TRUNCATE, OPEN, LOCK = "write", "sync", "truncate", "open", "lock"


class FailingFiles(apsw.VFS):
    """Raises an error at the Nth call of some sorts, once armed: once, or at each one from then on.

    ``default`` makes it the file system of every connection that names none, while it is registered. ``on_step`` is
    called before each call that counts. SQLITE_READONLY is what a disk says that is mounted for reading only.
    """

    def __init__(self, *, default: bool = False) -> None:
        self.name = "failing"
        #: The default of before; "the default" may be this one from now on.
        self.base = apsw.vfs_names()[0]
        self.on_step: Callable[[], None] = lambda: None
        self.disarm()
        super().__init__(self.name, self.base, makedefault=default)

    def arm(self, step: int, code: int, *, at: Collection[str] = (WRITE, SYNC), forever: bool = True) -> None:
        """Fail at this call of these sorts, counted from now, and, unless it is once, at those after it."""
        self._remaining, self._code, self._at, self._forever = step, code, at, forever
        self._failed = 0

    def disarm(self) -> bool:
        """Stop failing; True if a call has failed."""
        failed = bool(getattr(self, "_failed", 0))
        self._remaining, self._code, self._at, self._forever, self._failed = 0, apsw.SQLITE_FULL, (), True, 0
        return failed

    def step(self, sort: str) -> None:
        """Count one call."""
        self.on_step()
        if sort not in self._at:
            return
        self._remaining -= 1
        if self._remaining == 0 or (self._remaining < 0 and self._forever):
            self._failed += 1
            raise apsw.exception_for(self._code)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's name
        """Open a file that counts, or fail; on a read-only disk a database is opened for reading, as SQLite does."""
        try:
            self.step(OPEN)
        except apsw.ReadOnlyError:
            if not flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
                raise apsw.exception_for(apsw.SQLITE_CANTOPEN) from None
            for_reading = flags[0] & ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            flags[0] = for_reading | apsw.SQLITE_OPEN_READONLY
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    """A file whose calls count, and fail when it is their turn."""

    def __init__(self, vfs: FailingFiles, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__(vfs.base, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, or fail."""
        self._vfs.step(WRITE)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Sync, or fail."""
        self._vfs.step(SYNC)
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        """Cut or stretch the file, or fail."""
        self._vfs.step(TRUNCATE)
        super().xTruncate(newsize)

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        """Lock, or fail."""
        self._vfs.step(LOCK)
        super().xLock(level)
