"""Migrations: each once, in one transaction with its record, and never on a file of a newer version."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import apsw
import pytest

from jobq.errors import SchemaTooNew, StoreCorrupt, StoreUnavailable
from jobq.store.sqlite import migrate
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.migrate import Migration
from tests.conftest import ErrorLog
from tests.crash.test_kill_at_tick import in_child
from tests.store.sqlite.enginekit import FIRST, SECOND, insert, join, start

Factory = Callable[..., Engine]
Script = Callable[..., "Popen[str]"]


def _ask(path: str, query: str) -> list[Any]:
    connection = apsw.Connection(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def _records(path: str) -> list[Any]:
    return _ask(path, "SELECT version, name, applied_at FROM jobq_schema ORDER BY version")


def _bytes(path: str) -> dict[str, bytes]:
    directory = Path(path).parent
    return {file.name: file.read_bytes() for file in directory.iterdir() if not file.name.endswith("-shm")}


def test_packaged_migrations_are_numbered_without_gaps() -> None:
    """The scripts that come with the package are 1, 2, 3 and so on, and have names."""
    found = migrate.packaged()

    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
    assert all(migration.name and migration.sql for migration in found)


def test_new_file_gets_all_migrations_and_our_settings(open_engine: Factory, path: str) -> None:
    """A new file has each migration recorded, the WAL mode and incremental vacuum."""
    engine = open_engine(migrations=[FIRST, SECOND])

    status = engine.status()

    assert (status.schema_version, status.journal_mode, status.auto_vacuum) == (2, "wal", 2)
    engine.close()
    assert _records(path) == [(1, "initial", 7), (2, "colour", 7)]


def test_opening_again_applies_nothing(open_engine: Factory, path: str) -> None:
    """A current file is left as it is."""
    open_engine().close()
    open_engine(now=lambda: 8).close()

    assert _records(path) == [(1, "initial", 7)]


def test_older_file_gets_what_is_missing(open_engine: Factory, path: str) -> None:
    """A file of version 1 keeps its rows and gets version 2."""
    first = open_engine()
    first.write(insert("kept"), sync=False, busy_timeout=1)
    first.close()
    open_engine(migrations=[FIRST, SECOND], now=lambda: 8).close()

    assert _records(path) == [(1, "initial", 7), (2, "colour", 8)]
    assert _ask(path, "SELECT who, colour FROM item") == [("kept", None)]


def test_writer_of_a_file_without_wal_is_waited_for(open_engine: Factory, path: str, other: apsw.Connection) -> None:
    """SQLite refuses at once to change the journal mode beside a writer; opening tries again until it has gone."""
    other.execute("CREATE TABLE orders (id); BEGIN IMMEDIATE").fetchall()
    thread = start(lambda: open_engine(busy_timeout=20))
    threading.Event().wait(0.1)
    assert thread.is_alive()

    other.execute("COMMIT").fetchall()
    join(thread)

    assert open_engine().status().journal_mode == "wal"


def test_tables_of_the_host_stay(open_engine: Factory, path: str) -> None:
    """A file in which the host has tables gets ours beside them, and keeps its vacuum mode."""
    host = apsw.Connection(path)
    host.execute("PRAGMA auto_vacuum = FULL; CREATE TABLE orders (id); INSERT INTO orders VALUES (7)").fetchall()
    host.close()

    assert open_engine().status().auto_vacuum == 1
    assert _ask(path, "SELECT id FROM orders") == [(7,)]


def test_failing_migration_leaves_the_version_before(open_engine: Factory, path: str) -> None:
    """A script that fails half way is rolled back whole, without a record: the file is not what its version says."""
    broken = Migration(2, "broken", "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(StoreCorrupt, match="no such table: nowhere"):
        open_engine(migrations=[FIRST, broken])

    assert _records(path) == [(1, "initial", 7)]
    assert _ask(path, "SELECT name FROM sqlite_schema WHERE name = 'half'") == []


def test_b47_newer_file_is_refused_untouched(open_engine: Factory, path: str, errors: ErrorLog) -> None:
    """No byte of a newer file changes, and no file appears beside it."""
    open_engine(migrations=[FIRST, SECOND]).close()
    before = _bytes(path)

    with pytest.raises(SchemaTooNew) as caught:
        open_engine(migrations=[FIRST])

    assert (caught.value.found, caught.value.supported) == (2, 1)
    assert _bytes(path) == before
    assert errors.take() == ["jobq.migration.refused"]
    assert os.listdir(os.path.dirname(path)) == ["jobs.db"]


def test_b47_newer_file_with_a_wal_left_behind_is_refused_untouched(
    open_engine: Factory, script: Script, path: str, errors: ErrorLog
) -> None:
    """The WAL that a killed process of the newer version left is neither applied nor removed."""
    process = script(
        """
engine = Engine(PATH, feed=print, migrations=[FIRST, SECOND])
engine.write(lambda c, _: c.execute("INSERT INTO item (who) VALUES ('x')").fetchall(), sync=True, busy_timeout=1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    process.communicate(timeout=30)
    before = _bytes(path)
    assert "jobs.db-wal" in before

    with pytest.raises(SchemaTooNew):
        open_engine(migrations=[FIRST])

    assert _bytes(path) == before
    assert errors.take() == ["jobq.migration.refused"]


def test_newer_version_that_arrives_while_closed_is_refused(open_engine: Factory, errors: ErrorLog) -> None:
    """A file that a newer jobq migrated between open() and the first verb is refused by the verb."""
    engine = open_engine(migrations=[FIRST])
    open_engine(migrations=[FIRST, SECOND]).close()

    with pytest.raises(SchemaTooNew):
        engine.write(insert("x"), sync=False, busy_timeout=1)
    assert errors.take() == ["jobq.migration.refused"]


@pytest.mark.parametrize("content", [b"hello", b"x" * 5000], ids=["short", "long"])
def test_file_that_is_no_database_is_corrupt_and_left_alone(open_engine: Factory, path: str, content: bytes) -> None:
    """Some other file under the name is reported and not touched."""
    Path(path).write_bytes(content)

    with pytest.raises(StoreCorrupt):
        open_engine()
    assert Path(path).read_bytes() == content


def test_missing_directory_is_unavailable(tmp_path: Path) -> None:
    """Nobody makes directories; the error is the typed one."""
    with pytest.raises(StoreUnavailable):
        Engine(str(tmp_path / "missing" / "jobs.db"), feed=print, migrations=[FIRST])


_OPENER = """
sys.stdin.readline()
engine = Engine(PATH, feed=print, migrations=[FIRST, SECOND][:int(sys.argv[1])], busy_timeout=30)
def insert(connection, changes):
    connection.execute("INSERT INTO item (who) VALUES (?)", (str(os.getpid()),)).fetchall()
engine.write(insert, sync=False, busy_timeout=30)
engine.close()
"""


@pytest.mark.parametrize("existing", [0, 1], ids=["new-file", "version-1-file"])
def test_b47_eight_first_openers_at_once(open_engine: Factory, script: Script, path: str, existing: int) -> None:
    """Eight processes that open a new or an older file at once all work, and each migration is applied once."""
    if existing:
        open_engine().close()
    processes = [script(_OPENER, "2", stdin=True) for _ in range(8)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors

    assert [record[:2] for record in _records(path)] == [(1, "initial"), (2, "colour")]
    assert _ask(path, "SELECT count(*) FROM item") == [(8,)]
    assert _ask(path, "PRAGMA auto_vacuum") == [(2,)]
    assert _ask(path, "PRAGMA integrity_check") == [("ok",)]



def _open_and_die(path: str, step: int) -> None:
    countdown = step

    def trace(event: object) -> None:
        nonlocal countdown
        countdown -= 1
        if not countdown:
            os.kill(os.getpid(), signal.SIGKILL)

    apsw.connection_hooks.append(lambda connection: connection.trace_v2(apsw.SQLITE_TRACE_STMT, trace))
    Engine(path, feed=print, migrations=[FIRST, SECOND])


_TABLES = {0: set(), 1: {"item", "part"}, 2: {"item", "part", "item_colour"}}


def test_b47_kill_at_each_statement_leaves_one_version_or_the_next(path: str) -> None:
    """After a kill at any statement of the first opening the file has a whole version, and opens."""
    seen = set()
    for step in range(1, 200):
        killed = in_child(lambda step=step: _open_and_die(path, step))
        version = _check_whole(path)
        seen.add(version)
        for suffix in ("", "-wal", "-shm"):
            Path(path + suffix).unlink(missing_ok=True)
        if not killed:
            break

    assert seen == {0, 1, 2}
    assert not killed


def _check_whole(path: str) -> int:
    connection = apsw.Connection(path)
    try:
        version = migrate.version(connection)
        rows: list[Any] = connection.execute(
            "SELECT name FROM sqlite_schema WHERE tbl_name <> 'jobq_schema' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        assert {name for (name,) in rows} == _TABLES[version]
    finally:
        connection.close()
    Engine(path, feed=print, migrations=[FIRST, SECOND]).close()
    return version
