"""Bringing a file to the current schema: numbered scripts, each in one transaction with its record.

A kill at any point leaves one version or the next. Several first openers at once take turns at the write lock; the
later ones find the record of the first.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from jobq.errors import SchemaTooNew, StoreCorrupt, StoreUnavailable
from jobq.log import get_logger
from jobq.store.sqlite.faults import damage

_log = get_logger(__name__)

_SCRIPTS = Path(__file__).with_name("migrations")
_PAUSE = 0.005

_CREATE = """
CREATE TABLE IF NOT EXISTS jobq_schema (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""
_VERSION = "SELECT coalesce(max(version), 0) FROM jobq_schema"
_RECORD = "INSERT INTO jobq_schema (version, name, applied_at) VALUES (?, ?, ?)"


class Migration(NamedTuple):
    """A step from one schema version to the next."""

    number: int
    name: str
    sql: str


def packaged() -> list[Migration]:
    """Return the migrations that come with jobq, from files called ``0001_name.sql``, in their order."""
    found = []
    for path in sorted(_SCRIPTS.glob("*.sql")):
        number, _, name = path.stem.partition("_")
        found.append(Migration(int(number), name, path.read_text(encoding="utf-8")))
    return found


def version(connection: apsw.Connection) -> int:
    """Return the schema version of an open database, 0 where jobq has not been yet.

    Raises StoreCorrupt where the table is there and cannot be read: no migration has touched it since the first.
    """
    if not connection.table_exists("main", "jobq_schema"):
        return 0
    try:
        rows: list[Any] = connection.execute(_VERSION).fetchall()
        return int(rows[0][0])
    except (apsw.SQLError, TypeError, ValueError) as error:
        raise damage(error, connection.filename) from error


def refuse_newer(path: str, found: int, supported: int) -> None:
    """Raise SchemaTooNew if the file's version is beyond what this jobq knows."""
    if found > supported:
        _log.error("jobq.migration.refused", path=path, found=found, supported=supported)
        raise SchemaTooNew(path, found, supported)


def check_current(connection: apsw.Connection, path: str, supported: int) -> None:
    """Make sure that a file that is opened again still is the job queue of our version."""
    found = version(connection)
    refuse_newer(path, found, supported)
    if found < supported:
        raise StoreCorrupt(path, f"its schema was version {supported} and now is {found or 'gone'}")


def look(path: str, supported: int, *, create: bool = True, vfs: str | None = None) -> None:
    """Refuse a file of a newer version, and one without a job queue unless one may be made, without changing a byte.

    Only a certain answer counts: whatever goes wrong here is met again, and reported, by the real opening.
    """
    if not create and not os.path.exists(path):
        raise StoreUnavailable(path, "there is no such file")
    try:
        found = _peek(path, vfs)
    except (apsw.Error, OSError):
        return
    refuse_newer(path, found, supported)
    if not create and not found:
        raise StoreUnavailable(path, "the file holds no job queue")


def _peek(path: str, vfs: str | None) -> int:
    if os.path.exists(path + "-wal"):
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    else:
        # Immutable: a database in WAL mode would otherwise get its -wal and -shm files by being read.
        address = Path(path).as_uri() + "?immutable=1"
        connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs=vfs)
    try:
        return version(connection)
    finally:
        connection.close()


def prepare(connection: apsw.Connection, *, busy_timeout: float) -> None:
    """Give the file its lasting settings: incremental vacuum where it has no table yet, and the WAL mode."""
    if not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        # Must come before the first table; a host's own file keeps what it has.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL", can_cache=False).fetchall()
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL", can_cache=False).fetchall()
            return
        except apsw.BusyError:
            # SQLite does not wait here when two first openers upgrade their locks at once.
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)


def migrate(
    connection: apsw.Connection, path: str, migrations: Sequence[Migration], now: Callable[[], int]
) -> None:
    """Apply what is missing, each migration with its record in one transaction.

    ``now`` gives the time of the record in milliseconds; it is asked under the write lock. Does nothing on a current
    file and raises SchemaTooNew on a newer one.
    """
    supported = migrations[-1].number if migrations else 0
    if version(connection) == supported:
        return
    for migration in migrations:
        connection.execute("BEGIN IMMEDIATE")
        try:
            refuse_newer(path, version(connection), supported)
            applied = _apply(connection, migration, now)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if applied:
            _log.info("jobq.migration.applied", path=path, version=migration.number, name=migration.name)


def _apply(connection: apsw.Connection, migration: Migration, now: Callable[[], int]) -> bool:
    """Apply one migration in the open transaction; False if another opener was first."""
    connection.execute(_CREATE).fetchall()
    if version(connection) >= migration.number:
        return False
    connection.execute(migration.sql, can_cache=False).fetchall()
    connection.execute(_RECORD, (migration.number, migration.name, now())).fetchall()
    return True
