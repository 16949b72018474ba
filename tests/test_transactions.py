"""``jobs.transaction()`` and ``jobs.read()``: the host's rows and jobs in one commit."""

import contextvars
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import jobq
from jobq.model.events import Change
from jobq.testing import FakeClock, running_job
from tests.aborting import aborted


def in_a_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns on another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *arguments).result(20)


@pytest.fixture
def orders(jobs: jobq.JobQueue) -> None:
    """A table of the host's."""
    with jobs.transaction() as tx:
        tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")


def stored(jobs: jobq.JobQueue) -> list[tuple[Any, ...]]:
    """Return the host's rows."""
    with jobs.read() as snapshot:
        return snapshot.execute("SELECT id FROM orders ORDER BY id")


@pytest.mark.usefixtures("orders")
def test_a_row_and_its_job_are_committed_together(jobs: jobq.JobQueue) -> None:
    """Ids and ``created`` are known inside, and every read on the thread sees the job."""
    with jobs.transaction() as tx:
        tx.execute("INSERT INTO orders VALUES (?)", (7,))
        made = jobs.enqueue("mail", {"order": 7}, dedupe_key="7")
        again = jobs.enqueue("mail", {"order": 7}, dedupe_key="7")
        several = jobs.enqueue_many([jobq.NewJob("mail"), jobq.NewJob("mail")])
        assert (made.created, again.created, again.id) == (True, False, made.id)
        assert [job.id for job in jobs.find()] == [several[1].id, several[0].id, made.id]
        assert (jobs.get(made.id).payload, jobs.counts()["queued"], len(jobs.queues())) == ({"order": 7}, 3, 1)
        assert in_a_thread(jobs.find) == []

    assert stored(jobs) == [(7,)]
    assert jobs.counts()["queued"] == 3


@pytest.mark.usefixtures("orders")
def test_an_exception_leaves_neither(jobs: jobq.JobQueue, events: list[jobq.JobStateChanged]) -> None:
    """No row, no job, no event, no pause; and the exception is the host's own."""
    told: list[jobq.Event] = []
    jobs.bus.subscribe(jobq.Event, told.append)
    with aborted(jobs.transaction()) as tx:
        tx.execute("INSERT INTO orders VALUES (7)")
        jobs.enqueue("mail")
        jobs.pause("default")
        jobs.bus.publish(jobq.QueueStateChanged(queue="mine", paused=True, at=jobs.clock.now()))
        jobs.schedules.add("s", every="1h", kind="mail")

    assert (stored(jobs), jobs.find(), jobs.schedules.list(), events, told) == ([], [], [], [], [])
    assert not jobs.queues()[0].paused


def test_events_come_after_the_commit_in_its_order(jobs: jobq.JobQueue) -> None:
    """While the block is open nobody hears of it, on this thread or another."""
    told: list[tuple[str, bool]] = []
    inside = [False]
    jobs.bus.subscribe(jobq.Event, lambda event: told.append((type(event).__name__, inside[0])))
    with jobs.transaction():
        inside[0] = True
        made = jobs.enqueue("mail")
        jobs.pause("default")
        jobs.cancel(made.id)
        jobs.deliver()
        in_a_thread(jobs.deliver)
        assert told == []
        inside[0] = False

    assert told == [("JobStateChanged", False), ("JobStateChanged", False), ("QueueStateChanged", False)]


def test_a_listener_of_anothers_event_does_not_join(jobs: jobq.JobQueue) -> None:
    """What a listener does for an event from elsewhere is not part of the block that happens to be open."""

    def follow(event: jobq.JobStateChanged) -> None:
        if event.kind == "first":
            jobs.enqueue("second")

    jobs.bus.subscribe(jobq.JobStateChanged, follow)
    with aborted(jobs.transaction()):
        jobs.bus.feed([Change(1, "first", "default", None, jobq.JobState.QUEUED, 0, None, jobs.clock.now())])
        jobs.enqueue("third")

    assert [job.kind for job in jobs.find()] == ["second"]


def test_a_listener_may_open_a_block(jobs: jobq.JobQueue, events: list[jobq.JobStateChanged]) -> None:
    """Its event follows the one that it answers."""

    def follow(event: jobq.JobStateChanged) -> None:
        if event.kind == "first":
            with jobs.transaction():
                jobs.enqueue("second")

    jobs.bus.subscribe(jobq.JobStateChanged, follow)
    jobs.enqueue("first")

    assert [event.kind for event in events] == ["first", "second"]


def test_nested_blocks_undo_what_is_theirs(jobs: jobq.JobQueue, events: list[jobq.JobStateChanged]) -> None:
    """Rows and events of an inner block that failed are gone, those around it are not."""
    told: list[jobq.QueueStateChanged] = []
    jobs.bus.subscribe(jobq.QueueStateChanged, told.append)
    with jobs.transaction():
        jobs.enqueue("a")
        with aborted(jobs.transaction()):
            jobs.enqueue("b")
            jobs.pause("default")
            with jobs.transaction():
                jobs.enqueue("c")
        with jobs.transaction():
            jobs.enqueue("d")

    assert [job.kind for job in jobs.find()] == ["d", "a"]
    assert [event.kind for event in events] == ["a", "d"]
    assert told == []


def test_a_copied_context_on_another_thread_does_not_join(jobs: jobq.JobQueue) -> None:
    """The block is bound to its thread and not to what is copied to others."""
    started = threading.Event()

    def enqueue() -> int:
        started.set()
        return jobs.enqueue("theirs").id

    with ThreadPoolExecutor(1) as pool:
        with aborted(jobs.transaction()) as tx:
            waiting = pool.submit(contextvars.copy_context().run, enqueue)
            assert started.wait(20)
            jobs.enqueue("mine")
            with pytest.raises(jobq.TransactionEnded):
                in_a_thread(tx.execute, "SELECT 1")
        theirs = waiting.result(20)

    assert [job.id for job in jobs.find()] == [theirs]


def test_another_job_queue_of_the_file_joins(jobs: jobq.JobQueue, open_again: Callable[..., jobq.JobQueue]) -> None:
    """It has the same one writer, which this thread holds."""
    other = open_again()
    with aborted(jobs.transaction()):
        other.enqueue("mail")
        with other.transaction():
            other.enqueue("mail")

    assert jobs.find() == []


def test_another_file_does_not_join(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """It has a transaction of its own."""
    with jobq.open(clock=clock) as other:
        with aborted(jobs.transaction()):
            made = other.enqueue("mail")

        assert other.get(made.id).state == "queued"


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(lambda jobs, lease, made: jobs.wait(made.id), id="wait"),
        pytest.param(lambda jobs, lease, made: made.wait(1), id="wait of the answer"),
        pytest.param(lambda jobs, lease, made: jobs.lease(), id="lease"),
        pytest.param(lambda jobs, lease, made: jobs.extend(lease), id="extend"),
        pytest.param(lambda jobs, lease, made: jobs.complete(lease), id="complete"),
        pytest.param(lambda jobs, lease, made: jobs.fail(lease, "no"), id="fail"),
        pytest.param(lambda jobs, lease, made: jobs.defer(lease, delay=1), id="defer"),
        pytest.param(lambda jobs, lease, made: jobs.release(lease), id="release"),
        pytest.param(lambda jobs, lease, made: jobq.Runner(jobs).drain(), id="drain"),
        pytest.param(lambda jobs, lease, made: jobq.Runner(jobs).run_once(), id="run_once"),
        pytest.param(lambda jobs, lease, made: running_job(jobs=jobs).transaction().__enter__(), id="job.transaction"),
        pytest.param(lambda jobs, lease, made: jobs.close(), id="close"),
    ],
)
def test_what_cannot_be_a_part_of_it_is_refused(jobs: jobq.JobQueue, refused: Callable[..., object]) -> None:
    """With the fix; nothing is done, and the block goes on."""
    jobs.enqueue("a")
    (lease,) = jobs.lease()
    with jobs.transaction():
        made = jobs.enqueue("b")
        with pytest.raises(jobq.InsideTransaction) as caught:
            refused(jobs, lease, made)
        assert caught.value.fix

    assert (jobs.get(made.id).state, jobs.get(lease.id).token) == ("queued", lease.token)


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "rolled back"])
def test_a_running_handler_is_asked_to_stop_after_the_commit(jobs: jobq.JobQueue, fails: bool) -> None:
    """Not before it, and not when the cancel was rolled back."""
    seen: list[tuple[bool, bool]] = []

    @jobs.job
    def work(payload: object, job: jobq.RunningJob) -> None:
        try:
            with jobs.transaction():
                jobs.cancel(job.id)
                inside = job.cancel_token.requested
                if fails:
                    raise ValueError
        except ValueError:
            pass
        seen.append((inside, job.cancel_token.requested))

    work.enqueue()
    jobq.Runner(jobs).drain()

    assert seen == [(False, not fails)]


def test_a_registration_that_was_rolled_back_is_made_again(jobs: jobq.JobQueue) -> None:
    """A handler that is registered inside a block is known to the database after the next verb."""
    with aborted(jobs.transaction()):

        @jobs.job(queue="mail", max_attempts=2)
        def late(payload: object) -> None: ...

        late.enqueue()
    jobs.enqueue("other")

    (kind,) = (kind for kind in jobs.kinds() if kind.name == "late")
    assert kind.queue == "mail"


def test_a_declared_schedule_that_was_rolled_back_is_stored_again(jobs: jobq.JobQueue) -> None:
    """By the next verb about schedules."""
    jobs.handlers.schedule("nightly", cron="0 3 * * *", kind="a")
    with aborted(jobs.transaction()):
        assert [one.name for one in jobs.schedules.list()] == ["nightly"]

    assert [one.name for one in jobs.schedules.list()] == ["nightly"]


def test_a_block_that_stays_open_is_reported(
    jobs: jobq.JobQueue, clock: FakeClock, open_again: Callable[..., jobq.JobQueue], caplog: pytest.LogCaptureFixture
) -> None:
    """Once: by whoever waited for it in vain, or at its end; a short one is not."""
    caplog.set_level(logging.WARNING, logger="jobq")
    impatient = open_again(config=jobq.Config(busy_timeout=0.02))

    def prolonged() -> int:
        return sum("jobq.transaction.prolonged" in record.getMessage() for record in caplog.records)

    with jobs.transaction():
        clock.advance(0.9)
        with pytest.raises(jobq.StoreBusy):
            in_a_thread(impatient.enqueue, "a")
        assert prolonged() == 0
        clock.advance(0.2)
        with pytest.raises(jobq.StoreBusy):
            in_a_thread(impatient.enqueue, "a")
        assert prolonged() == 1
        clock.advance(5)
    assert prolonged() == 1
    with jobs.transaction():
        clock.advance(1.1)
    assert prolonged() == 2


def test_nothing_is_logged_of_what_was_rolled_back(jobs: jobq.JobQueue, caplog: pytest.LogCaptureFixture) -> None:
    """A line about a job that does not exist would mislead."""
    caplog.set_level(logging.INFO, logger="jobq")
    with aborted(jobs.transaction()):
        made = jobs.enqueue("a")
        jobs.enqueue_many([jobq.NewJob("a")])
        jobs.cancel(made.id)
        jobs.requeue(made.id)

    assert caplog.records == []


def test_a_block_that_cannot_begin_is_busy(jobs: jobq.JobQueue, open_again: Callable[..., jobq.JobQueue]) -> None:
    """Its body does not run, and a later block does."""
    impatient = open_again(config=jobq.Config(busy_timeout=0.02))
    ran: list[int] = []

    def attempt() -> None:
        with impatient.transaction():
            ran.append(1)

    with jobs.transaction(), pytest.raises(jobq.StoreBusy):
        in_a_thread(attempt)
    in_a_thread(attempt)

    assert ran == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("orders")
def test_a_child_forked_inside_a_block_is_refused(jobs: jobq.JobQueue) -> None:
    """Its verbs, its statements and the end of its block raise ForkedHandle; the parent commits once."""
    reading, writing = os.pipe()
    child = -1
    try:
        with jobs.transaction() as tx:
            tx.execute("INSERT INTO orders VALUES (1)")
            jobs.enqueue("apart", join=False)
            child = os.fork()
            if child == 0:
                for call in (lambda: jobs.enqueue("a"), lambda: tx.execute("SELECT 1"), jobs.find):
                    try:
                        call()
                    except jobq.ForkedHandle:
                        os.write(writing, b"refused ")
    except jobq.ForkedHandle:
        os.write(writing, b"ended")
    finally:
        if child == 0:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert told.read() == "refused refused refused ended"
    os.waitpid(child, 0)

    assert stored(jobs) == [(1,)]
    assert [job.kind for job in jobs.find()] == ["apart"]


def test_a_waiting_reader_does_not_hold_up_a_writer(jobs: jobq.JobQueue) -> None:
    """A snapshot takes no lock, and verbs inside its block do not join it."""
    with jobs.read() as snapshot:
        made = jobs.enqueue("a")
        assert snapshot.execute("SELECT count(*) FROM jobq_job") == [(0,)]
        assert jobs.get(made.id).kind == "a"
        with pytest.raises(jobq.StatementRefused):
            snapshot.execute("DELETE FROM jobq_job")
