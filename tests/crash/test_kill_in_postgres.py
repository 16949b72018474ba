"""A process killed before any of its steps with PostgreSQL: a job is there if its row is, and once."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import jobq
from tests.crash.test_kill_at_tick import in_child
from tests.ready import ready_file

#: More steps than the workload has; the last round runs to its end and proves it.
ROUNDS = 100


def killing(number: int) -> Callable[[str], Any]:
    """Return a function that connects; the Nth time that any such connection turns to the server kills."""
    seen = [0]

    class Killing(psycopg.Connection[Any]):
        def wait(self, *arguments: Any, **options: Any) -> Any:
            seen[0] += 1
            if seen[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().wait(*arguments, **options)

    return Killing.connect


def take_orders(path: Path, dsn: str, connect: Callable[[str], Any]) -> None:
    """Take orders, one of which is rolled back, and relay after each."""
    with jobq.open(path) as jobs:
        outbox = jobq.Outbox(jobs, connect=lambda: connect(dsn), keep=0)
        connection = connect(dsn)
        for number in (1, 2, 3):
            with outbox.joined(connection):
                connection.execute("INSERT INTO orders VALUES (%s)", (number,))
                jobs.enqueue_many([jobq.NewJob("mail", number), jobq.NewJob("log", number)])
            if number == 2:
                connection.rollback()
            else:
                connection.commit()
            outbox.relay.tick()
        connection.close()


@pytest.mark.parametrize("stride", [pytest.param(4, id="short"), pytest.param(1, id="long", marks=pytest.mark.storm)])
def test_b59_killed_at_each_step_with_postgresql_a_job_exists_once_if_its_row_does(
    tmp_path: Path, postgres_dsn: str, stride: int
) -> None:
    """Business write, stage, commit, read, mark, delete; what is left is published by the next relay."""
    died, seen = True, set()
    for number in range(1, ROUNDS, stride):
        path = tmp_path / f"{number}.db"
        prepare(path, postgres_dsn)
        died = in_child(lambda path=path, number=number: take_orders(path, postgres_dsn, killing(number)))
        with psycopg.connect(postgres_dsn) as connection:
            rows = [row for (row,) in connection.execute("SELECT id FROM orders ORDER BY id").fetchall()]
        with jobq.open(path) as jobs:
            outbox = jobq.Outbox(jobs, connect=lambda: psycopg.connect(postgres_dsn))
            outbox.relay.tick()
            made = sorted((job.kind, jobs.get(job.id).payload) for job in jobs.find(limit=None))
            assert outbox.pending().count == 0
        assert made == [(kind, row) for kind in ("log", "mail") for row in rows], f"killed before step {number}"
        seen.add(tuple(rows))
        if not died:
            break
    assert not died, "the workload has more steps than rounds"
    assert seen == {(), (1,), (1, 3)}


def prepare(path: Path, dsn: str) -> None:
    """Make the host's tables anew."""
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS orders, jobq_outbox")
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    with jobq.open(ready_file(path)) as jobs:
        jobq.Outbox(jobs, connect=lambda: psycopg.connect(dsn)).create_table()
