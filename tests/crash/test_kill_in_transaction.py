"""A process killed before any statement of a transaction leaves all of it or nothing."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

import jobq
from jobq.testing import FakeClock
from tests.crash.test_kill_at_statement import kill_before_statement
from tests.crash.test_kill_at_tick import in_child
from tests.ready import ready_file

#: More statements than the workloads have; the last round runs to its end and proves it.
ROUNDS = 200
LARGE = "x" * 3000


def prepare(path: Path) -> None:
    """Make the host's table, and the job whose run is to be killed."""
    with jobq.open(path) as jobs:
        with jobs.transaction() as tx:
            tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        jobs.enqueue("charge", {"order": 7})


def orders(jobs: jobq.JobQueue) -> list[int]:
    """Return the host's rows."""
    with jobs.read() as snapshot:
        return [number for (number,) in snapshot.execute("SELECT id FROM orders ORDER BY id")]


def mails(jobs: jobq.JobQueue) -> list[int]:
    """Return the orders that there is a job for."""
    found = [jobs.get(job.id).payload for job in jobs.find(kind="mail", limit=None)]
    return sorted(payload["order"] for payload in found if isinstance(payload, dict))


def take_orders(path: Path, acknowledge: Callable[[int], object]) -> None:
    """Take orders, one of which is rolled back and one of which is a block inside a block."""
    with jobq.open(path) as jobs:
        for number in (1, 2, 3):
            try:
                with jobs.transaction() as tx:
                    tx.execute("INSERT INTO orders VALUES (?)", (number,))
                    with jobs.transaction():
                        jobs.enqueue("mail", {"order": number, "pad": LARGE})
                    if number == 2:
                        raise LookupError
                acknowledge(number)
            except LookupError:
                pass


def register(jobs: jobq.JobQueue) -> None:
    """Register the handler that ends itself in a transaction."""

    @jobs.job(max_attempts=5)
    def charge(payload: dict, job: jobq.RunningJob) -> None:
        job.follow_up("mail", payload)
        with job.transaction() as tx:
            tx.execute("INSERT INTO orders VALUES (?)", (payload["order"],))
            job.enqueue("child")
            tx.result({"pad": LARGE})


def charge_once(path: Path, acknowledge: Callable[[int], object]) -> None:
    """Run the one job."""
    with jobq.open(path) as jobs:
        register(jobs)
        jobq.Runner(jobs).run_once()


def killed(path: Path, number: int, work: Callable[[Path, Callable[[int], object]], None]) -> tuple[bool, list[int]]:
    """Do the work in a child that dies before its Nth statement; return whether it died and what it told."""
    ready_file(path, prepare)
    reading, writing = os.pipe()

    def child() -> None:
        kill_before_statement(number)
        work(path, lambda order: os.write(writing, f"{order}\n".encode()))

    died = in_child(child)
    os.close(writing)
    with os.fdopen(reading) as told:
        return died, [int(line) for line in told]


def is_sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with the file."""
    connection = apsw.Connection(str(path))
    found: list[tuple[str]] = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    return found == [("ok",)]


def test_b59_killed_in_a_host_transaction_a_job_exists_if_its_row_does(memory: Path) -> None:
    """Before each statement; what was rolled back has neither, what was acknowledged has both."""
    seen: set[tuple[int, ...]] = set()
    for number in range(1, ROUNDS):
        path = memory / f"{number}.db"
        died, told = killed(path, number, take_orders)
        with jobq.open(path) as jobs:
            rows = orders(jobs)
            assert rows == mails(jobs), f"killed before statement {number}"
            assert set(told) <= set(rows) <= {1, 3}
        seen.add(tuple(rows))
        assert is_sound(path)
        if not died:
            break
    assert not died, "the workload has more statements than rounds"
    assert seen == {(), (1,), (1, 3)}


def test_killed_in_job_transaction_all_of_it_stands_or_nothing(memory: Path, errors: object) -> None:
    """Row, result, follow-up, child and success; and after a restart the work is there exactly once."""
    seen: set[bool] = set()
    for number in range(1, ROUNDS):
        path = memory / f"{number}.db"
        died, _ = killed(path, number, charge_once)
        with jobq.open(path, clock=FakeClock(datetime.now(UTC) + timedelta(days=1))) as jobs:
            done = jobs.get(1).state == jobq.JobState.SUCCEEDED
            found = (bool(orders(jobs)), bool(mails(jobs)), bool(jobs.find(kind="child")), bool(jobs.get(1).result))
            assert found == (done,) * 4, f"killed before statement {number}"
            seen.add(done)
            register(jobs)
            jobq.Runner(jobs).drain(until="1h")
            assert jobs.get(1).state == jobq.JobState.SUCCEEDED
            assert (orders(jobs), mails(jobs), len(jobs.find(kind="child"))) == ([7], [7], 1)
        assert is_sound(path)
        if not died:
            break
    assert not died, "the workload has more statements than rounds"
    assert seen == {False, True}
