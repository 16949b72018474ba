"""The one table from SQLite's result codes to the four classes of store errors."""

import errno as os_errors
from typing import NoReturn

import apsw

from jobq.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable

_BY_EXTENDED_CODE: dict[int, type[StoreError]] = {
    # Growing the -shm file fails without an errno; nothing but lack of space makes that write fail in practice.
    apsw.SQLITE_IOERR_SHMSIZE: StoreFull,
    apsw.SQLITE_READONLY_DBMOVED: StoreCorrupt,
}
_BY_PRIMARY_CODE: dict[int, type[StoreError]] = {
    apsw.SQLITE_BUSY: StoreBusy,
    apsw.SQLITE_LOCKED: StoreBusy,
    # A race for the WAL index that SQLite gave up after many rounds; it passes like any other contention.
    apsw.SQLITE_PROTOCOL: StoreBusy,
    apsw.SQLITE_CANTOPEN: StoreUnavailable,
    apsw.SQLITE_READONLY: StoreUnavailable,
    apsw.SQLITE_PERM: StoreUnavailable,
    apsw.SQLITE_AUTH: StoreUnavailable,
    apsw.SQLITE_NOMEM: StoreUnavailable,
    apsw.SQLITE_NOLFS: StoreUnavailable,
    apsw.SQLITE_IOERR: StoreUnavailable,
    apsw.SQLITE_FULL: StoreFull,
    apsw.SQLITE_CORRUPT: StoreCorrupt,
    apsw.SQLITE_NOTADB: StoreCorrupt,
}
_FULL_ERRNOS = frozenset(
    getattr(os_errors, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(os_errors, name)
)


def classify(code: int, errno: int = 0) -> type[StoreError] | None:
    """Return the class of an extended result code, or None where it is no fault of the store."""
    primary = code & 0xFF
    if primary == apsw.SQLITE_IOERR and errno in _FULL_ERRNOS:
        return StoreFull
    return _BY_EXTENDED_CODE.get(code) or _BY_PRIMARY_CODE.get(primary)


def translate(
    error: apsw.Error, path: str, *, errno: int = 0, outcome_unknown: bool = False
) -> StoreError | apsw.Error:
    """Return the typed error for what SQLite reported; other errors come back as they are.

    ``errno`` is the connection's ``system_errno``. ``outcome_unknown`` says that a COMMIT failed; after BUSY the
    outcome is known all the same, because nothing happened.
    """
    code = getattr(error, "extendedresult", 0)
    found = classify(code, errno)
    # SQLite calls a COMMIT over an unfinished statement BUSY as well: that is a bug of the caller, no contention.
    if found is None or "statements in progress" in str(error):
        return error
    unknown = outcome_unknown and found is not StoreBusy
    fault = found(path, str(error) or type(error).__name__, code=code, outcome_unknown=unknown)
    if code & 0xFF == apsw.SQLITE_NOTADB:
        fault.fix = "Check the path: this file is not an SQLite database, or it is damaged at its beginning."
    return fault


def reraise(error: apsw.Error, path: str, *, errno: int = 0) -> NoReturn:
    """Raise the typed error for what SQLite reported, or the error itself where it is no fault of the store."""
    fault = translate(error, path, errno=errno)
    if fault is error:
        raise error
    raise fault from error


def damage(error: Exception, path: str) -> StoreCorrupt:
    """Return the typed error for a statement of ours that failed as none does on a file that is whole.

    They are constant and compile on the schema of the version that the file says it has; every text that is stored is
    UTF-8, and every value of its column's type: bytes of the file have changed. What a UnicodeDecodeError says of the
    content is left out.
    """
    detail = "a text in it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
    return StoreCorrupt(path, detail, code=getattr(error, "extendedresult", apsw.SQLITE_CORRUPT))


def again(error: Exception) -> Exception:
    """Return the error for one more thread; one exception object must not be raised in two."""
    if isinstance(error, StoreError):
        return type(error)(error.path, error.detail, code=error.code, outcome_unknown=error.outcome_unknown)
    return error
