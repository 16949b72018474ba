"""What the open descriptors of this process tell: a second copy of SQLite on our file, or a file that was removed.

Two copies do not know of each other's POSIX locks and corrupt the file within seconds. A descriptor does not tell
whose SQLite opened it, so the descriptors are compared with the connections that apsw knows.
"""

import os
from contextlib import suppress
from pathlib import Path

import apsw

from jobq.errors import ForeignHandle, StoreCorrupt

_DESCRIPTORS = Path("/proc/self/fd")


def check(path: str) -> None:
    """Raise ForeignHandle if somebody but apsw has the file open in this process.

    Does nothing where the system does not list descriptors, or where apsw shares the system's SQLite library, so that
    there is no second copy.
    """
    if found(path):
        raise ForeignHandle(path)


def found(path: str) -> bool:
    """Tell whether somebody but apsw has the file open in this process, as far as can be seen."""
    if not apsw.using_amalgamation or not _DESCRIPTORS.is_dir():
        return False
    database = _identity(path)
    if database is None:
        return False
    descriptors = _open_files()
    if not _known_to_apsw(database):
        return database in descriptors
    # Each copy of SQLite opens the -shm file once, however many connections it has.
    index = _identity(path + "-shm")
    return index is not None and descriptors.count(index) > 1


def removed(path: str) -> str | None:
    """Return which file beside the database somebody removed while it was open here, as far as the system tells.

    The -wal file holds commits, the -shm file the locks on them: others who open the database make new ones.
    """
    if not _DESCRIPTORS.is_dir():
        return None
    real = os.path.realpath(path)
    ends = {f"{real}{end} (deleted)": end for end in ("-wal", "-shm")}
    for name in os.listdir(_DESCRIPTORS):
        with suppress(OSError):
            if (target := os.readlink(_DESCRIPTORS / name)) in ends:
                return ends[target]
    return None


def check_beside(path: str) -> None:
    """Raise StoreCorrupt if a file beside the database was removed while it was open here."""
    if (end := removed(path)) is not None:
        raise StoreCorrupt(path, f"its {end} file was removed while it was open")


def _open_files() -> list[tuple[int, int]]:
    found = (_identity(str(_DESCRIPTORS / name)) for name in os.listdir(_DESCRIPTORS))
    return [identity for identity in found if identity is not None]


def _known_to_apsw(database: tuple[int, int]) -> bool:
    return any(_database_of(connection) in (database, None) for connection in apsw.connections())


def _database_of(connection: apsw.Connection) -> tuple[int, int] | None:
    """Return what identifies a connection's file; None where that cannot be told, as of one in use elsewhere."""
    try:
        name = connection.db_filename("main")
    except apsw.Error:
        return None
    return _identity(name) if name else (0, 0)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
