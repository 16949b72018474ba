"""How far a run is: seldom written, never lost, told to the bus."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock, running_job
from tests.runtime.conftest import PATIENCE, Changes


@pytest.fixture
def told(jobs: jobq.JobQueue) -> list[jobq.JobProgressed]:
    """Every word that the bus tells."""
    heard: list[jobq.JobProgressed] = []
    jobs.bus.subscribe(jobq.JobProgressed, heard.append)
    return heard


def run(jobs: jobq.JobQueue, handler: Callable[[jobq.RunningJob], object], **options: Any) -> int:
    """Run one job whose handler is given its run, and return its id."""

    @jobs.job(name="far", **options)
    def far(payload: Any, job: jobq.RunningJob) -> None:
        handler(job)

    made = jobs.enqueue("far")
    jobq.Runner(jobs).drain()
    assert made.id is not None
    return made.id


def test_the_first_and_the_last_word_are_written_at_once(jobs: jobq.JobQueue, told: list[Any]) -> None:
    """Between them nothing is, while the half second is not over."""
    rows = []

    def work(job: jobq.RunningJob) -> None:
        for done in range(5):
            job.progress(done, 4, f"part {done}")
            rows.append(jobs.get(job.id).progress)

    job_id = run(jobs, work)

    first, last = ({"done": done, "total": 4, "note": f"part {done}"} for done in (0, 4))
    assert rows == [first, first, first, first, last]
    assert [(event.job_id, event.attempt, event.done) for event in told] == [(job_id, 1, 0), (job_id, 1, 4)]
    assert jobs.get(job_id).progress == last


def test_one_word_is_written_each_half_second(jobs: jobq.JobQueue, told: list[Any], clock: FakeClock) -> None:
    """However many are said."""

    def work(job: jobq.RunningJob) -> None:
        for done in range(100):
            job.progress(done)
            clock.advance(0.05)

    run(jobs, work)

    assert [event.done for event in told] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99]


def test_a_handler_that_has_said_all_several_times_writes_it_once(jobs: jobq.JobQueue, told: list[Any]) -> None:
    """Only the first word that says so is written at once."""

    def work(job: jobq.RunningJob) -> None:
        job.progress(0, 1)
        for done in range(1, 50):
            job.progress(done, 1)

    job_id = run(jobs, work)

    assert [event.done for event in told] == [0, 1, 49]
    assert jobs.get(job_id).progress == {"done": 49, "total": 1, "note": None}


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)], ids=["error", "exit"])
def test_the_last_word_of_a_run_that_fails_is_kept(jobs: jobq.JobQueue, error: BaseException, caplog: Any) -> None:
    """It tells how far the run came."""

    @jobs.job(max_attempts=1)
    def fails(payload: Any, job: jobq.RunningJob) -> None:
        job.progress(1, 3)
        job.progress(2, 3)
        raise error

    made = fails.enqueue()
    with jobq.Runner(jobs):
        made.wait(PATIENCE)

    assert jobs.get(made.id).progress == {"done": 2, "total": 3, "note": None}


def test_maintenance_writes_what_waits(jobs: jobq.JobQueue, clock: FakeClock, told: list[Any]) -> None:
    """A handler that says nothing more for a while leaves nothing unsaid."""
    runner = jobq.Runner(jobs)
    rows = []

    @jobs.job
    def slow(payload: Any, job: jobq.RunningJob) -> None:
        job.progress(1)
        job.progress(2)
        runner.maintenance.tick()
        rows.append(jobs.get(job.id).progress["done"])  # type: ignore[call-overload, index]
        clock.advance(1)
        runner.maintenance.tick()
        rows.append(jobs.get(job.id).progress["done"])  # type: ignore[call-overload, index]

    slow.enqueue()
    runner.drain()

    assert rows == [1, 2]
    assert [event.done for event in told] == [1, 2]


def test_a_lost_lease_writes_nothing_and_the_token_says_so(
    jobs: jobq.JobQueue, clock: FakeClock, told: list[Any], caplog: Any
) -> None:
    """The job is somebody else's, and so is its progress."""
    reasons = []

    def work(job: jobq.RunningJob) -> None:
        clock.advance(jobs.config.lease)
        (lease,) = jobs.lease("far", worker="other")
        assert lease.id == job.id
        job.progress(1, 2)
        reasons.append(job.cancel_token.reason)

    job_id = run(jobs, work)

    assert reasons == [jobq.CancelReason.LEASE_LOST]
    assert (jobs.get(job_id).progress, told) == (None, [])


@pytest.mark.parametrize(
    ("done", "total"),
    [(-1, None), (float("nan"), None), (float("inf"), None), (True, None), ("1", None), (1, -1), (1, 2**60), (None, 1)],
)
def test_a_bad_number_is_refused(done: Any, total: Any) -> None:
    """With the argument's name, and nothing is written."""
    job = running_job()
    with pytest.raises(jobq.ArgumentError, match=r"done|total"):
        job.progress(done, total)
    assert job.reporter is None


def test_a_note_that_is_no_text_is_refused() -> None:
    """A note is text."""
    with pytest.raises(jobq.ArgumentError, match="note"):
        running_job().progress(1, note=5)  # type: ignore[arg-type]


def test_a_run_made_by_hand_takes_progress() -> None:
    """A handler that reports can be called in a unit test."""
    job = running_job()
    job.progress(1, 2, "half")
    job.progress(2, 2)


def test_b26_a_note_is_redacted_then_cut(jobs: jobq.JobQueue, told: list[Any]) -> None:
    """In the row and in the event."""
    secret = "hunter2hunter2"
    job_id = run(jobs, lambda job: job.progress(1, note="x" * 480 + f" password={secret} " + "y" * 900))
    (note,) = {event.note for event in told}

    assert jobs.get(job_id).progress == {"done": 1, "total": None, "note": note}
    assert len(note) <= 500
    assert "hunter" not in note


def test_the_next_attempt_and_a_requeue_start_without(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """While it waits for its retry the row says how far the attempt before came."""
    seen = []

    @jobs.job(max_attempts=2)
    def twice(payload: Any, job: jobq.RunningJob) -> None:
        seen.append(jobs.get(job.id).progress)
        job.progress(job.attempt, 2)
        if job.attempt == 1:
            raise ConnectionError("again")

    made = twice.enqueue()
    assert jobq.Runner(jobs).drain().retried == 1
    seen.append(jobs.get(made.id).progress)
    jobq.Runner(jobs).drain(until="1m")

    first, second = ({"done": done, "total": 2, "note": None} for done in (1, 2))
    assert seen == [None, first, None]
    assert jobs.get(made.id).progress == second


def test_a_requeue_clears_it(jobs: jobq.JobQueue, caplog: Any) -> None:
    """The job runs from the start."""

    def work(job: jobq.RunningJob) -> None:
        job.progress(1)
        raise jobq.PermanentJobError("no")

    job_id = run(jobs, work)
    jobs.requeue(job_id)

    assert jobs.get(job_id).progress is None


def test_inside_a_host_transaction_it_waits_for_the_end(jobs: jobq.JobQueue, told: list[Any]) -> None:
    """Nothing of it is in the transaction, so a rollback does not undo it."""
    rows = []

    def work(job: jobq.RunningJob) -> None:
        with contextlib.suppress(ZeroDivisionError), jobs.transaction():
            job.progress(1, 2)
            rows.append(jobs.get(job.id).progress)
            raise ZeroDivisionError
        rows.append(jobs.get(job.id).progress)

    job_id = run(jobs, work)

    assert rows == [None, None]
    assert jobs.get(job_id).progress == {"done": 1, "total": 2, "note": None}
    assert [event.done for event in told] == [1]


def test_what_is_said_in_a_transaction_of_the_job_is_committed_with_it(jobs: jobq.JobQueue, told: list[Any]) -> None:
    """It is the last word of the run."""

    def work(job: jobq.RunningJob) -> None:
        job.progress(1, 2)
        with job.transaction():
            job.progress(2, 2)

    job_id = run(jobs, work)

    assert jobs.get(job_id).progress == {"done": 2, "total": 2, "note": None}
    assert [event.done for event in told] == [1, 2]


def test_what_a_rolled_back_transaction_took_along_is_written_later(jobs: jobq.JobQueue, told: list[Any]) -> None:
    """The run goes on, and so does its progress."""
    store = jobs.store
    settle = store.settle

    def full(*arguments: Any, **options: Any) -> Any:
        store.settle = settle  # type: ignore[method-assign]
        raise jobq.StoreFull(jobs.path, "no space", code=13)

    def work(job: jobq.RunningJob) -> None:
        store.settle = full  # type: ignore[method-assign]
        with pytest.raises(jobq.StoreFull), job.transaction():
            job.progress(2, 3)

    job_id = run(jobs, work)

    assert jobs.get(job_id).progress == {"done": 2, "total": 3, "note": None}
    assert [event.done for event in told] == [2]


def test_a_database_in_trouble_does_not_fail_the_handler(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The word is written when the trouble is over."""
    store, failing = jobs.store, True
    report = store.report

    def fails(*arguments: Any) -> bool:
        if failing:
            raise jobq.StoreBusy(jobs.path, "held", code=5)
        return report(*arguments)

    store.report = fails  # type: ignore[method-assign]

    def work(job: jobq.RunningJob) -> None:
        nonlocal failing
        job.progress(1, 3)
        assert jobs.get(job.id).progress is None
        failing = False
        clock.advance(1)
        job.progress(2, 3)

    job_id = run(jobs, work)

    assert jobs.get(job_id).progress == {"done": 2, "total": 3, "note": None}


def test_threads_of_one_handler_lose_nothing(open_real: Callable[..., jobq.JobQueue], changes: Changes) -> None:
    """Whoever says it last, the last word of the last thread is in the row."""
    jobs = open_real()

    @jobs.job
    def many(payload: Any, job: jobq.RunningJob) -> None:
        threads = [threading.Thread(target=lambda: [job.progress(n) for n in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        job.progress(1000, 2000)

    made = many.enqueue()
    with jobq.Runner(jobs):
        job = made.wait(PATIENCE)

    assert job.progress == {"done": 1000, "total": 2000, "note": None}
