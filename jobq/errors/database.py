"""Trouble with the file and with the handles on it."""

from jobq.errors.root import JobqError


class ForeignHandle(JobqError, RuntimeError):
    """Another copy of the SQLite library has the file open in this process.

    Closing any handle drops the POSIX locks that the process holds on the file, so two copies of SQLite corrupt it
    (https://sqlite.org/howtocorrupt.html, section 2.2).
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is open in this process through something other than apsw")
        self.path = path
        self.fix = (
            "Close that handle (the standard sqlite3 module, SQLAlchemy or Django on it, a plain open()) and "
            "keep jobq in a file of its own."
        )


class ForkedHandle(JobqError, RuntimeError):
    """A database handle was inherited through a fork; using it would write without locks."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was in use while this process was forked")
        self.path = path
        self.fix = (
            "Fork while no transaction runs and no connection of your own is open on the file, or start the child "
            "process with spawn."
        )


class BackupRefused(JobqError, FileExistsError):
    """A backup cannot be written under this name; nothing was touched."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} is not overwritten: {why}")
        self.path = path
        self.why = why
        self.fix = "Choose another name" + (", or use force to replace it." if why == "it exists" else ".")


class SchemaTooNew(JobqError, RuntimeError):
    """The file was written by a newer jobq; it was left untouched."""

    def __init__(self, path: str, found: int, supported: int) -> None:
        super().__init__(f"{path} has schema version {found}, this jobq knows versions up to {supported}")
        self.path = path
        self.found = found
        self.supported = supported
        self.fix = "Upgrade jobq in this environment."


class StoreError(JobqError, OSError):
    """The database did not do what it was asked to do; the operation was rolled back.

    ``code`` is SQLite's extended result code. ``outcome_unknown`` is True after a failed COMMIT: the change may or
    may not be there. An enqueue with a dedupe key may then be repeated safely.
    """

    def __init__(self, path: str, detail: str, *, code: int = 0, outcome_unknown: bool = False) -> None:
        unknown = "; the outcome of the commit is unknown" if outcome_unknown else ""
        super().__init__(f"{path}: {detail}{unknown}")
        self.path = path
        self.detail = detail
        self.code = code
        self.outcome_unknown = outcome_unknown
        # The class says it; said again for this one, so that a traceback shows it.
        self.fix = type(self).fix


class StoreBusy(StoreError):
    """Another connection held the lock for longer than ``busy_timeout``."""

    fix = "Try again; look for a long transaction in another process, or raise busy_timeout."


class StoreUnavailable(StoreError):
    """The file cannot be opened, read or written at present."""

    fix = "Check that the directory exists, that this user may write to it, and that the file is there."


class StoreFull(StoreError):
    """The disk, a quota or the file size limit is exhausted; acknowledged work is safe."""

    fix = "Free some space; work goes on by itself."


class StoreCorrupt(StoreError):
    """The file is damaged, is not a database, or was replaced or unlinked while it was open."""

    fix = "Stop every process that uses the file, keep a copy of it, and restore a backup."
