"""Connections have our settings, and paths, libraries and files that will not do are refused."""

import os
from collections.abc import Iterator

import apsw
import pytest

from jobq.errors import ArgumentError, ConfigError, ForkedHandle, StoreCorrupt, StoreUnavailable
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.engine import Engine
from tests.store.sqlite.enginekit import insert


@pytest.fixture
def connection(path: str) -> Iterator[apsw.Connection]:
    """A connection with our settings to a new file."""
    made = connections.connect(path, create=True)
    yield made
    made.close()


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "3.54.1", "4.0.0", "3.50.7", "3.50.9", "3.44.6"])
def test_libraries_without_the_wal_reset_bug_are_accepted(version: str) -> None:
    """A release that has the repair, or a branch that got it, is accepted."""
    connections.check_library(version)


@pytest.mark.parametrize("version", ["3.51.2", "3.51.0", "3.50.6", "3.49.2", "3.45.0", "3.44.5", "3.40.1"])
def test_libraries_with_the_wal_reset_bug_are_refused(version: str) -> None:
    """A release that may corrupt the file is refused with the way out."""
    with pytest.raises(ConfigError, match=version) as caught:
        connections.check_library(version)
    assert caught.value.fix


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_memory_databases_are_refused_with_advice(name: str) -> None:
    """A database without a file is refused, and the error says what to call instead."""
    with pytest.raises(ArgumentError) as caught:
        connections.check_path(name)
    assert "jobq.open() without a path" in (caught.value.fix or "")


@pytest.mark.parametrize("name", ["a\0b", "a\udcffb"], ids=["nul", "surrogate"])
def test_names_that_sqlite_cannot_open_are_refused(name: str) -> None:
    """A name that would be cut or cannot be encoded is an argument error."""
    with pytest.raises(ArgumentError):
        connections.check_path(name)


def test_path_becomes_absolute() -> None:
    """A relative path does not depend on later changes of directory."""
    assert connections.check_path("x.db") == os.path.join(os.getcwd(), "x.db")


def test_connection_has_the_planner_stability_guarantee(connection: apsw.Connection) -> None:
    """Statements that a partial index serves are not prepared anew for each value."""
    assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("foreign_keys", 1), ("synchronous", 1), ("journal_size_limit", connections.WAL_LIMIT)],
)
def test_connection_has_our_settings(connection: apsw.Connection, pragma: str, value: int) -> None:
    """The settings that SQLite keeps per connection are made on each."""
    assert connection.pragma(pragma) == value


def test_missing_file_is_not_created_without_being_told(path: str) -> None:
    """Opening again never makes a new empty database."""
    with pytest.raises(apsw.CantOpenError):
        connections.connect(path)
    assert not os.path.exists(path)


def test_reader_cannot_write(connection: apsw.Connection) -> None:
    """A reader refuses to write, whatever the statement."""
    reader = connections.make_reader(connection)

    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("CREATE TABLE t (x)").fetchall()


def test_sync_level_switches_each_time(connection: apsw.Connection) -> None:
    """The level takes effect at each switch, also the second time the same statement is used."""
    levels = []
    for synced in (True, False, True, False):
        connections.set_synced(connection, synced=synced)
        levels.append(connection.pragma("synchronous"))

    assert levels == [2, 1, 2, 1]


def test_file_that_is_still_there_passes(path: str, connection: apsw.Connection) -> None:
    """The same device and inode are the same file."""
    file = DatabaseFile(path)
    file.remember()

    file.check()
    file.check_closed()


def test_replaced_file_is_corrupt(path: str, connection: apsw.Connection) -> None:
    """Another file under the name is noticed, with or without an open handle."""
    file = DatabaseFile(path)
    file.remember()
    os.rename(path, path + ".old")
    apsw.Connection(path).close()

    for check in (file.check, file.check_closed):
        with pytest.raises(StoreCorrupt):
            check()


def test_missing_file_is_corrupt_or_unavailable(path: str) -> None:
    """A file that vanished under an open handle was torn away; one without is only not there."""
    apsw.Connection(path).close()
    file = DatabaseFile(path)
    file.remember()
    os.unlink(path)

    with pytest.raises(StoreCorrupt):
        file.check()
    with pytest.raises(StoreUnavailable):
        file.check_closed()


def test_spoiled_file_refuses_every_check(path: str, connection: apsw.Connection) -> None:
    """In a child that inherited a handle nothing may be done with the file."""
    file = DatabaseFile(path)
    file.remember()
    file.adopt_process(spoiled=True)

    for check in (file.check_process, file.check, file.check_closed):
        with pytest.raises(ForkedHandle):
            check()


def test_close_leaves_the_wal_of_a_database_that_took_the_place(engine: Engine, path: str) -> None:
    """Closing a torn-away database does not remove the log of the one that now has its name."""
    engine.write(insert("old"), sync=False, busy_timeout=1)
    for suffix in ("", "-wal", "-shm"):
        os.rename(path + suffix, path + ".old" + suffix)
    newcomer = apsw.Connection(path)
    newcomer.execute("PRAGMA journal_mode = WAL").fetchall()
    newcomer.execute("CREATE TABLE t (x)").fetchall()

    engine.close()

    assert os.path.exists(path + "-wal")
    newcomer.close()
