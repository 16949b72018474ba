"""``lease(wait=)``: blocking until there is something to take."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import jobq
from jobq import InsideTransaction
from jobq.testing import FakeClock

#: No test waits longer, in seconds; a wait that is ended by something takes less than half of it.
PATIENCE = 20.0


@pytest.fixture
def in_time() -> Iterator[None]:
    """Fail a test in which a wait went on until its end."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PATIENCE / 2, "the wait was not ended"


class Counting:
    """A store that counts how often a claim is asked, which takes the write lock."""

    def __init__(self, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claims = 0
        #: Set when somebody looks: a wait has begun.
        self.looked = threading.Event()
        claim, look = jobs.store.claim, jobs.store.look

        def counted(request: object, *, durable: bool) -> object:
            self.claims += 1
            return claim(request, durable=durable)  # type: ignore[arg-type]

        def noted(request: object) -> object:
            self.looked.set()
            return look(request)  # type: ignore[arg-type]

        monkeypatch.setattr(jobs.store, "claim", counted)
        monkeypatch.setattr(jobs.store, "look", noted)


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("same", [True, False], ids=["this job queue", "another one of the file"])
def test_a_job_that_is_enqueued_ends_the_wait(
    jobs: jobq.JobQueue, open_again: Callable[..., jobq.JobQueue], monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """And nothing but a job that may be taken lets it ask for the write lock."""
    counting = Counting(jobs, monkeypatch)
    producer = jobs if same else open_again()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: jobs.lease("review", wait=PATIENCE))
        assert counting.looked.wait(PATIENCE)
        producer.enqueue("other")
        made = producer.enqueue("review")

        (lease,) = waiting.result(PATIENCE)

    assert (lease.id, counting.claims) == (made.id, 2)


@pytest.mark.usefixtures("in_time")
def test_a_job_that_falls_due_ends_the_wait(open_again: Callable[..., jobq.JobQueue]) -> None:
    """Though nothing is written meanwhile."""
    jobs = open_again(clock=None)
    made = jobs.enqueue("review", delay=0.05)

    (lease,) = jobs.lease(wait=PATIENCE)

    assert lease.id == made.id


@pytest.mark.usefixtures("in_time")
def test_a_lease_that_ends_ends_the_wait(open_again: Callable[..., jobq.JobQueue]) -> None:
    """The job of a worker that has died is taken over."""
    jobs = open_again(clock=None)
    made = jobs.enqueue("review")
    jobs.lease(worker="dead", length="200ms")

    (lease,) = jobs.lease(worker="alive", wait=PATIENCE)

    assert (lease.id, lease.worker, lease.job.attempts) == (made.id, "alive", 2)


def test_a_wait_in_vain_is_an_empty_list(jobs: jobq.JobQueue) -> None:
    """In real time, whatever the clock; a job whose queue is paused is nothing to take."""
    jobs.enqueue("review")
    jobs.pause("default")

    assert jobs.lease(wait=0.02) == []


def test_what_can_be_taken_is_not_waited_for(
    jobs: jobq.JobQueue, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One claim, no look."""
    counting = Counting(jobs, monkeypatch)
    made = jobs.enqueue("review")

    assert [lease.id for lease in jobs.lease(wait=PATIENCE)] == [made.id]
    assert (counting.claims, counting.looked.is_set()) == (1, False)


def test_a_wait_inside_a_transaction_is_refused(jobs: jobq.JobQueue) -> None:
    """It would wait for itself."""
    with jobs.transaction(), pytest.raises(InsideTransaction):
        jobs.lease(wait=PATIENCE)
