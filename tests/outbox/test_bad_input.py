"""What an outbox refuses: each with its fix, nothing half-written, and the host's transaction as it was."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import NullPool

import jobq
from tests.conftest import ErrorLog
from tests.outbox import hosts
from tests.outbox.conftest import transaction

Make = Callable[..., jobq.Outbox]


@pytest.fixture(params=hosts.SQL_KINDS)
def sql_host(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The host's database, for each kind of connection with SQL."""
    return hosts.make(request.param, tmp_path, lambda: str(request.getfixturevalue("postgres_dsn")))


def unbound(jobs: jobq.JobQueue) -> Any:
    """Return a session that knows no database."""
    return Session()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda jobs: None, id="none"),
        pytest.param(lambda jobs: "shop.sqlite", id="a path"),
        pytest.param(lambda jobs: jobs, id="the job queue"),
        pytest.param(lambda jobs: sqlalchemy.create_engine("sqlite://"), id="an engine"),
        pytest.param(unbound, id="an unbound session"),
    ],
)
def test_an_unknown_kind_of_connection_is_refused(
    jobs: jobq.JobQueue, shop: Any, make_outbox: Make, make: Callable[[jobq.JobQueue], Any]
) -> None:
    """Where it is joined, and where the relay is given one."""
    outbox = make_outbox(shop)
    with pytest.raises(jobq.ArgumentError) as caught, outbox.joined(make(jobs)):
        pass
    assert caught.value.fix

    with pytest.raises(jobq.ArgumentError):
        jobq.Outbox(jobs, connect=lambda: make(jobs)).relay.tick()


def test_a_missing_table_is_typed_and_harms_nothing(sql_host: Any, jobs: jobq.JobQueue) -> None:
    """The host's transaction goes on, on PostgreSQL too, where an error would have ended it."""
    outbox = jobq.Outbox(jobs, connect=sql_host.connect)
    with transaction(sql_host) as connection, outbox.joined(connection):
        with pytest.raises(jobq.OutboxTableMissing) as caught:
            jobs.enqueue("mail")
        sql_host.order(connection, 1)
    assert "create_table" in str(caught.value.fix)
    for call in (outbox.relay.tick, outbox.pending, outbox.failing, outbox.relay.next_due):
        with pytest.raises(jobq.OutboxTableMissing):
            call()

    assert sql_host.orders() == [1]


def test_the_table_may_come_from_the_hosts_migrations(sql_host: Any, jobs: jobq.JobQueue) -> None:
    """Its definition is there as text."""
    outbox = jobq.Outbox(jobs, connect=sql_host.connect)
    dialect = "postgresql" if isinstance(sql_host, hosts.PostgresDatabase) else "sqlite"
    for statement in jobq.Outbox.ddl(dialect).split(";\n"):
        if statement.strip():
            sql_host._run(statement)
    with transaction(sql_host) as connection, outbox.joined(connection):
        jobs.enqueue("mail")

    assert outbox.relay.tick() == 1


def test_required_refuses_autocommit(sql_host: Any, jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """Nothing is staged; inside a transaction of the same connection it is."""
    outbox = jobq.Outbox(jobs, connect=sql_host.connect, mode="required")
    outbox.create_table()
    connection = _in_autocommit(sql_host)
    try:
        with pytest.raises(jobq.OutsideTransaction), outbox.joined(connection):
            jobs.enqueue("mail")
    finally:
        connection.close()

    assert outbox.pending().count == 0


def _in_autocommit(host: Any) -> Any:
    connection = host.connect()
    if isinstance(connection, psycopg.Connection):
        connection.autocommit = True
    elif isinstance(connection, sqlalchemy.Connection):
        return connection.execution_options(isolation_level="AUTOCOMMIT")
    elif isinstance(connection, (Session, scoped_session)):
        engine = connection.get_bind().engine  # type: ignore[union-attr]
        return Session(engine.execution_options(isolation_level="AUTOCOMMIT"))
    elif not isinstance(connection, apsw.Connection):
        connection.isolation_level = None
    return connection


def test_psycopg_joined_before_its_transaction_does_not_begin_one(
    jobs: jobq.JobQueue, postgres_dsn: str
) -> None:
    """Else the host's own block would be a savepoint and commit nothing."""
    outbox = jobq.Outbox(jobs, connect=lambda: psycopg.connect(postgres_dsn))
    outbox.create_table()
    connection = psycopg.connect(postgres_dsn)
    with outbox.joined(connection), connection.transaction():
        jobs.enqueue("mail")
    connection.close()

    assert outbox.pending().count == 1


def test_psycopg_makers_of_the_table_take_turns(jobs: jobq.JobQueue, postgres_dsn: str) -> None:
    """IF NOT EXISTS alone lets two of them fail."""
    outbox = jobq.Outbox(jobs, connect=lambda: psycopg.connect(postgres_dsn))
    with psycopg.connect(postgres_dsn) as first, psycopg.connect(postgres_dsn) as second:
        outbox.create_table(first)
        second.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            outbox.create_table(second)


def test_sqlalchemy_hosts_that_begin_themselves_are_in_a_transaction(jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """The recipe for savepoints takes BEGIN from the driver and gives it to SQLAlchemy."""
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'shop.sqlite'}", poolclass=NullPool)

    @sqlalchemy.event.listens_for(engine, "connect")
    def let_go(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    outbox = jobq.Outbox(jobs, connect=engine.connect, mode="required")
    outbox.create_table()
    with Session(engine) as session, outbox.joined(session):
        jobs.enqueue("rolled back")
        session.rollback()
        jobs.enqueue("mail")
        session.commit()

    assert (outbox.relay.tick(), [job.kind for job in jobs.find()]) == (1, ["mail"])


def test_an_enqueue_alone_is_committed_by_sqlalchemy(jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """It has begun with the staging, and so it commits, although the host has executed nothing."""
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'shop.sqlite'}", poolclass=NullPool)
    outbox = jobq.Outbox(jobs, connect=engine.raw_connection)
    outbox.create_table()
    with engine.connect() as connection, outbox.joined(connection):
        jobs.enqueue("mail")
        connection.commit()
    with Session(engine) as session, session.begin(), outbox.joined(session):
        jobs.enqueue("mail")

    assert outbox.relay.tick() == 2


def test_memory_databases_of_sqlite_are_fine(jobs: jobq.JobQueue) -> None:
    """One that the connections share, kept alive by the host."""

    def connect() -> Any:
        return sqlite3.connect("file:shop?mode=memory&cache=shared", uri=True)

    kept = connect()
    outbox = jobq.Outbox(jobs, connect=connect)
    outbox.create_table()
    with kept, outbox.joined(kept):
        jobs.enqueue("mail")
    assert outbox.relay.tick() == 1
    kept.close()


def test_rows_of_the_hosts_factories_do_not_matter(jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """A connection may answer with rows and texts of any shape."""
    connect = hosts.sqlite_file(tmp_path)

    def odd() -> Any:
        connection = connect()
        connection.row_factory = lambda cursor, row: {"row": row}
        connection.text_factory = bytes
        return connection

    outbox = jobq.Outbox(jobs, connect=odd)
    outbox.create_table()
    connection = odd()
    with connection, outbox.joined(connection):
        jobs.enqueue("mail")
    connection.close()

    assert outbox.relay.tick() == 1


_ON_JOBQS_FILE = """
import sqlite3, sys
import jobq

jobs = jobq.open(sys.argv[1])
jobs.enqueue("mail")
outbox = jobq.Outbox(jobs, connect=lambda: sqlite3.connect(sys.argv[2]))
if sys.argv[3] == "joined":
    connection = sqlite3.connect(":memory:")
    connection.execute("ATTACH ? AS other", (sys.argv[2],))
    try:
        with outbox.joined(connection):
            print("joined")
    except jobq.ForeignHandle as error:
        print("refused", bool(error.fix))
else:
    try:
        outbox.relay.tick()
    except jobq.ForeignHandle as error:
        print("refused", bool(error.fix))
"""


@pytest.mark.parametrize("place", ["joined", "relay"])
def test_jobqs_own_file_is_refused(tmp_path: Path, place: str) -> None:
    """In a process of its own: two copies of SQLite on one file corrupt it. By any name, and attached too."""
    path, link = tmp_path / "jobs.db", tmp_path / "link.db"
    link.symlink_to(path)
    command = [sys.executable, "-c", _ON_JOBQS_FILE, str(path), str(link), place]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (told.stdout, told.stderr) == ("refused True\n", "")


def test_jobqs_own_file_is_refused_with_apsw_too(jobs: jobq.JobQueue, errors: ErrorLog) -> None:
    """There is jobs.transaction() for it."""
    jobs.enqueue("mail")
    outbox = jobq.Outbox(jobs, connect=lambda: apsw.Connection(jobs.path))

    with pytest.raises(jobq.ForeignHandle):
        outbox.create_table()
    with contextlib.closing(apsw.Connection(jobs.path)) as connection:
        with pytest.raises(jobq.ForeignHandle):
            outbox.create_table(connection)
        assert connection.execute("SELECT * FROM sqlite_schema WHERE name = 'jobq_outbox'").fetchall() == []
