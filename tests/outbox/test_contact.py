"""Trouble with the host's database: what is told apart, and what is got over."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import jobq
from tests.conftest import ErrorLog
from tests.outbox import hosts
from tests.outbox.conftest import staging
from tests.outbox.test_relay import Arrivals


@pytest.mark.parametrize(
    "connect",
    [
        pytest.param(lambda path: sqlite3.connect(path, timeout=0), id="sqlite3"),
        pytest.param(lambda path: apsw.Connection(str(path)), id="apsw"),
    ],
)
def test_a_locked_file_is_busy(jobs: jobq.JobQueue, tmp_path: Path, connect: Callable[[Path], Any]) -> None:
    """Somebody works there; it is no trouble to be reported."""
    path = tmp_path / "shop.sqlite"
    outbox = jobq.Outbox(jobs, connect=lambda: connect(path))
    outbox.create_table()
    # By the same driver: two copies of SQLite in one process do not see each other's locks.
    holder = connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(jobq.OutboxUnavailable) as caught:
        outbox.relay.tick()
    holder.close()

    assert caught.value.busy


@pytest.mark.parametrize("kind", ["psycopg", "core-psycopg"])
def test_a_locked_row_is_busy(
    kind: str, jobs: jobq.JobQueue, make_outbox: Callable[..., jobq.Outbox], postgres_dsn: str, tmp_path: Path
) -> None:
    """PostgreSQL says so where a wait for a lock has a limit; the row is marked later, and its job made once."""
    impatient = postgres_dsn + "&options=-c%20lock_timeout%3D50"
    host = hosts.make(kind, tmp_path, lambda: impatient)
    outbox = make_outbox(host)
    with staging(outbox, host):
        jobs.enqueue("mail")
    with psycopg.connect(postgres_dsn) as holder:
        holder.execute("SELECT * FROM jobq_outbox FOR UPDATE")
        with pytest.raises(jobq.OutboxUnavailable) as caught:
            outbox.relay.tick()

    assert caught.value.busy
    assert (outbox.relay.tick(), outbox.pending().count, len(jobs.find())) == (0, 0, 1)


def test_a_server_that_ends_its_connections_is_connected_to_again(
    tmp_path: Path, postgres_dsn: str, errors: ErrorLog
) -> None:
    """As at a restart: the relay's thread tells it once, and goes on."""
    with jobq.open(tmp_path / "j.db") as jobs:
        outbox = jobq.Outbox(jobs, connect=lambda: psycopg.connect(postgres_dsn, application_name="relay"))
        outbox.create_table()
        arrivals = Arrivals(jobs)
        outbox.relay.start()
        with psycopg.connect(postgres_dsn) as connection:
            for count in (1, 2):
                with outbox.joined(connection):
                    jobs.enqueue("mail")
                connection.commit()
                arrivals.jobs(count)
                ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'relay'"
                assert connection.execute(ended).fetchall() == [(True,)]
                connection.commit()
                arrivals.wait_for(lambda: not outbox.relay.host_healthy)
                arrivals.wait_for(lambda: outbox.relay.host_healthy)
        outbox.relay.stop()

    assert errors.take() == ["jobq.outbox.failed"] * 2
