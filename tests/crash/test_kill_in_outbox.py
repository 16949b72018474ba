"""A process killed before any statement of staging, publishing and marking: a job is there if its row is, and once."""

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from tests.crash.test_kill_at_statement import kill_before_statement
from tests.crash.test_kill_at_tick import in_child
from tests.crash.test_kill_in_transaction import is_sound
from tests.ready import ready_file

#: More statements than the workload has; the last round runs to its end and proves it.
ROUNDS = 400
LARGE = "x" * 3000


def host_of(path: Path) -> Path:
    """Return the host's file beside jobq's."""
    return path.with_suffix(".shop")


def outbox_of(jobs: jobq.JobQueue, path: Path, connect: Callable[..., Any]) -> jobq.Outbox:
    """Return the outbox in the host's file, whose published rows go at once."""
    return jobq.Outbox(jobs, connect=lambda: connect(host_of(path)), keep=0)


def prepare(path: Path) -> None:
    """Make the host's file with its tables at this path."""
    with jobq.open() as jobs:
        jobq.Outbox(jobs, connect=lambda: sqlite3.connect(path)).create_table()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()


def take_orders(path: Path, connect: Callable[..., Any], acknowledge: Callable[[int], object]) -> None:
    """Take orders, one of which is rolled back; relay between them, and run and prune what was published."""
    with jobq.open(path) as jobs:
        jobs.job(name="mail", dedupe_key=lambda payload: "same" if payload["order"] > 3 else None)(lambda payload: None)
        outbox = outbox_of(jobs, path, connect)
        connection = connect(host_of(path))
        for number in (1, 2, 3, 4, 5):
            with outbox.joined(connection):
                connection.execute("INSERT INTO orders VALUES (?)", (number,))
                jobs.enqueue_many([jobq.NewJob("mail", {"order": number, "pad": LARGE}), jobq.NewJob("log")])
            if number == 2:
                connection.rollback()
                continue
            connection.commit()
            acknowledge(number)
            if number in (1, 5):
                outbox.relay.tick()
        connection.close()


def killing(seen: list[int], number: int) -> Callable[..., sqlite3.Connection]:
    """Return a function that connects to the host's file; statements there count like those on jobq's."""

    def trace(statement: str) -> None:
        seen[0] += 1
        if seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path)
        connection.set_trace_callback(trace)
        return connection

    return connect


def killed(path: Path, number: int) -> tuple[bool, list[int]]:
    """Take orders in a child that dies before its Nth statement; return whether it died and what it told."""
    ready_file(path)
    ready_file(host_of(path), prepare)
    reading, writing = os.pipe()

    def child() -> None:
        connect = killing(kill_before_statement(number), number)
        take_orders(path, connect, lambda order: os.write(writing, f"{order}\n".encode()))

    died = in_child(child)
    os.close(writing)
    with os.fdopen(reading) as told:
        return died, [int(line) for line in told]


def orders(path: Path) -> list[int]:
    """Return the host's rows."""
    connection = sqlite3.connect(host_of(path))
    found = connection.execute("SELECT id FROM orders ORDER BY id").fetchall()
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return [number for (number,) in found]


@pytest.mark.parametrize(
    ("first", "stride", "run_between"),
    [
        pytest.param(1, 5, False, id="short-kept"),
        pytest.param(3, 5, True, id="short-run and pruned"),
        pytest.param(1, 1, False, id="long-kept", marks=pytest.mark.storm),
        pytest.param(1, 1, True, id="long-run and pruned", marks=pytest.mark.storm),
    ],
)
def test_b59_killed_at_each_step_a_job_exists_once_if_its_row_does(
    memory: Path, first: int, stride: int, run_between: bool
) -> None:
    """Business write, stage, commit, publish, mark, delete; what was published before has been run and pruned."""
    died, seen = True, set()
    for number in range(first, ROUNDS, stride):
        path = memory / f"{number}.db"
        died, told = killed(path, number)
        rows = orders(path)
        made, logged = recover(path, run_between=run_between)
        # Orders 4 and 5 share a key: one job stands for both, unless the first had run before the second came.
        expected = [order for order in rows if order < 4] + ([4] if 4 in rows else [])
        assert [order for order in made if order < 5] == expected, f"killed before statement {number}"
        assert made.count(5) <= 1
        assert logged == len(rows)
        assert set(told) <= set(rows) <= {1, 3, 4, 5}
        assert is_sound(path)
        seen.add(tuple(rows))
        if not died:
            break
    assert not died, "the workload has more statements than rounds"
    assert {(), (1,), (1, 3, 4, 5)} <= seen


def recover(path: Path, *, run_between: bool) -> tuple[list[int], int]:
    """Publish and run what is left; return the orders that mails were sent for, and how many log jobs were made."""
    made: list[int] = []
    logged = 0
    with jobq.open(path) as jobs:
        jobs.job(name="mail")(lambda payload: made.append(payload["order"]))
        if run_between:
            jobq.Runner(jobs).drain()
            logs = [job.id for job in jobs.find(kind="log", limit=None)]
            logged += len(logs)
            jobs.cancel(logs)
            jobs.prune(older_than=0)
        outbox = outbox_of(jobs, path, sqlite3.connect)
        outbox.relay.tick()
        jobq.Runner(jobs).drain()
        logged += len(jobs.find(kind="log", limit=None))
        assert (outbox.pending().count, outbox.relay.tick()) == (0, 0)
    return made, logged
