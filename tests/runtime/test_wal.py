"""B46: what the write-ahead log grows to while many jobs run, with a reader elsewhere that holds on to an old state."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import pytest

import jobq
from jobq.store.sqlite.connection import WAL_LIMIT
from jobq.testing import FakeClock

LENGTHS = [pytest.param(2_000, id="short"), pytest.param(20_000, id="long", marks=pytest.mark.storm)]
#: As many as are enqueued at once.
BATCH = 500


def wal_bytes(jobs: jobq.JobQueue) -> int:
    """Return how long the write-ahead log is."""
    return os.stat(f"{jobs.path}-wal").st_size


@contextmanager
def reader(jobs: jobq.JobQueue) -> Iterator[None]:
    """A connection of somebody else's that reads the state of now for as long as the block runs."""
    connection = apsw.Connection(jobs.path)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM jobq_job").fetchall()
    yield
    connection.close()


def run(jobs: jobq.JobQueue, runner: jobq.Runner, count: int) -> int:
    """Enqueue and run so many jobs; return the longest that the log was meanwhile."""
    longest = 0
    for _ in range(count // BATCH):
        jobs.enqueue_many([jobq.NewJob("note", "x" * 1_500) for _ in range(BATCH)])
        assert runner.drain().succeeded == BATCH
        longest = max(longest, wal_bytes(jobs))
    return longest


@pytest.mark.parametrize("count", LENGTHS)
def test_b46_the_log_is_cut_back_within_a_minute_after_a_reader_has_gone(
    jobs: jobq.JobQueue, clock: FakeClock, count: int
) -> None:
    """While somebody reads an old state nothing can be cut; afterwards the runner does it by itself."""
    jobs.job(name="note")(lambda payload: None)
    runner = jobq.Runner(jobs)
    with reader(jobs):
        assert run(jobs, runner, count) > WAL_LIMIT

    clock.advance(60)
    runner.maintenance.tick()

    assert wal_bytes(jobs) <= WAL_LIMIT


@pytest.mark.parametrize("count", LENGTHS)
def test_b46_the_log_stays_below_8_mb_without_a_reader(jobs: jobq.JobQueue, count: int) -> None:
    """Our own reads are over when a verb returns, and hold nothing back."""
    jobs.job(name="note")(lambda payload: None)
    jobs.counts()

    assert run(jobs, jobq.Runner(jobs), count) <= 8 * 1024 * 1024
