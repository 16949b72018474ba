"""``job.transaction()``: the handler's rows and the success of its job in one commit."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock
from tests.conftest import ErrorLog
from tests.runtime.conftest import PATIENCE, Changes

Body = Callable[[jobq.RunningJob, jobq.JobTransaction], Any]


@pytest.fixture
def paid(jobs: jobq.JobQueue) -> Callable[[], list[int]]:
    """A table of the host's; returns what is in it."""
    return table(jobs)


def table(jobs: jobq.JobQueue) -> Callable[[], list[int]]:
    """Make the table and return what reads it."""
    with jobs.transaction() as tx:
        tx.execute("CREATE TABLE paid (job INTEGER NOT NULL)")

    def rows() -> list[int]:
        with jobs.read() as snapshot:
            return [job for (job,) in snapshot.execute("SELECT job FROM paid ORDER BY job")]

    return rows


def test_rows_result_and_follow_ups_come_with_the_success(
    jobs: jobq.JobQueue, paid: Callable[[], list[int]], events: list[jobq.JobStateChanged]
) -> None:
    """In one commit, after which the job has ended although its handler goes on; and it is settled once."""
    seen: list[str] = []

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> Any:
        job.follow_up("before")
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (?)", (job.id,))
            job.enqueue("child")
            job.follow_up("within")
            tx.result({"paid": 1})
            seen.append(str(jobs.get(job.id).state))
        seen.append(str(jobs.get(job.id).state))
        return "ignored"

    made = charge.enqueue()
    counts = jobq.Runner(jobs).drain()

    job = jobs.get(made.id)
    assert (seen, job.state, job.result, paid()) == (["running", "succeeded"], "succeeded", {"paid": 1}, [made.id])
    assert (counts.claimed, counts.succeeded) == (1, 1)
    assert [(event.kind, str(event.state)) for event in events[2:]] == [
        ("child", "queued"), ("charge", "succeeded"), ("before", "queued"), ("within", "queued"),
    ]  # fmt: skip


def test_a_lost_token_rolls_everything_back(
    jobs: jobq.JobQueue, paid: Callable[[], list[int]], clock: FakeClock
) -> None:
    """The late run writes nothing and gets LeaseLost; the one that took over does the work, once."""
    caught: list[type] = []

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        if job.attempt == 1:
            clock.advance("2m")
            jobs.store.reclaim(hold_expired=False)
        try:
            with job.transaction() as tx:
                tx.execute("INSERT INTO paid VALUES (?)", (job.attempt,))
                job.follow_up(f"by{job.attempt}")
                job.enqueue(f"child{job.attempt}")
        except jobq.LeaseLost as error:
            caught.append(type(error))
            raise

    made = charge.enqueue()
    counts = jobq.Runner(jobs).drain()

    assert (caught, paid()) == ([jobq.LeaseLost], [2])
    assert (counts.claimed, counts.succeeded, jobs.get(made.id).state) == (2, 1, "succeeded")
    assert sorted(job.kind for job in jobs.find()) == ["by2", "charge", "child2"]


def test_a_cancel_request_does_not_hinder_it(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """The work is done; the success stands."""

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        jobs.cancel(job.id)
        assert job.cancel_token.requested
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (?)", (job.id,))

    made = charge.enqueue()

    assert jobq.Runner(jobs).drain().succeeded == 1
    assert (jobs.get(made.id).state, paid()) == ("succeeded", [made.id])


def test_an_exception_inside_is_a_failed_attempt(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """Nothing of the block is written; the next attempt begins afresh."""

    @jobs.job(retry=jobq.RetryPolicy(base=0))
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (?)", (job.attempt,))
            if job.attempt == 1:
                raise ValueError("no")

    made = charge.enqueue()
    counts = jobq.Runner(jobs).drain()

    assert (counts.retried, counts.succeeded, paid()) == (1, 1, [2])
    assert [run.error for run in jobs.history(made.id)] == ["ValueError: no"]


def test_a_handler_may_catch_it_and_go_on(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """After a block that was rolled back the run is as it was: it may open another, or simply return."""

    @jobs.job
    def charge(payload: str, job: jobq.RunningJob) -> Any:
        try:
            with job.transaction() as tx:
                tx.execute("INSERT INTO paid VALUES (1)")
                raise ValueError
        except ValueError:
            pass
        if payload == "again":
            with job.transaction() as tx:
                tx.execute("INSERT INTO paid VALUES (2)")
        return "returned"

    again, returned = charge.enqueue("again"), charge.enqueue("return")

    assert jobq.Runner(jobs).drain().succeeded == 2
    assert (jobs.get(again.id).result, jobs.get(returned.id).result, paid()) == (None, "returned", [2])


@pytest.mark.parametrize("error", [ValueError("late"), jobq.Deferred(delay=1), jobq.JobCancelled()])
def test_what_is_raised_after_it_is_only_logged(
    jobs: jobq.JobQueue, paid: Callable[[], list[int]], caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """The job has succeeded already."""

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
        raise error

    made = charge.enqueue()
    counts = jobq.Runner(jobs).drain(raise_errors=True)

    assert (counts.succeeded, jobs.get(made.id).state, jobs.history(made.id), paid()) == (1, "succeeded", [], [1])
    assert [record.getMessage().split(" ")[0] for record in caplog.records] == ["jobq.handler.failed"]


def test_ctrl_c_after_it_gets_through_and_changes_nothing(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """In a drain; the job is not released, its token is not told that the lease was lost."""
    tokens: list[jobq.CancelToken] = []

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        tokens.append(job.cancel_token)
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
        raise KeyboardInterrupt

    made = charge.enqueue()
    with pytest.raises(KeyboardInterrupt):
        jobq.Runner(jobs).drain()

    assert (jobs.get(made.id).state, paid(), tokens[0].requested) == ("succeeded", [1], False)


def test_ctrl_c_inside_it_releases_the_job(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """As anywhere in a drain, with nothing written."""

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
            raise KeyboardInterrupt

    made = charge.enqueue()
    with pytest.raises(KeyboardInterrupt):
        jobq.Runner(jobs).drain()

    assert (jobs.get(made.id).state, jobs.get(made.id).attempts, paid()) == ("queued", 0, [])


def test_a_beat_after_it_does_not_call_the_lease_lost(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """The lease is over, not lost, while the handler still runs."""
    runner = jobq.Runner(jobs)
    seen: list[bool] = []

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
        runner.heartbeat.tick()
        seen.append(job.cancel_token.requested)

    charge.enqueue()
    runner.drain()

    assert seen == [False]


def test_a_run_is_settled_once(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """A second block, and a follow-up that would come too late, are refused."""
    refused: list[str] = []

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
        for call in (lambda: job.transaction().__enter__(), lambda: job.follow_up("late")):
            try:
                call()
            except jobq.TransactionEnded as error:
                refused.append(error.why)

    charge.enqueue()
    jobq.Runner(jobs).drain()

    assert len(refused) == 2
    assert paid() == [1]
    assert len(jobs.find()) == 1


def test_a_refused_result_fails_the_job_at_once(
    jobs: jobq.JobQueue, paid: Callable[[], list[int]], errors: ErrorLog
) -> None:
    """Nothing is written, as with a result that is returned."""

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
            tx.result({1, 2})

    made = charge.enqueue()
    assert jobq.Runner(jobs).drain().failed == 1
    assert errors.take() == ["jobq.job.failed"]

    assert (jobs.get(made.id).failure_reason, paid()) == ("bad_result", [])


def test_a_missing_result_is_refused_where_the_kind_declares_one(
    jobs: jobq.JobQueue, paid: Callable[[], list[int]], errors: ErrorLog
) -> None:
    """The schema holds here too."""

    @jobs.job(result=int)
    def charge(payload: object, job: jobq.RunningJob) -> Any:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
        return 1

    made = charge.enqueue()
    jobq.Runner(jobs).drain()
    errors.take()

    assert (jobs.get(made.id).failure_reason, paid()) == ("bad_result", [])


def test_it_is_refused_inside_a_transaction(jobs: jobq.JobQueue, paid: Callable[[], list[int]]) -> None:
    """The success must be its own commit."""
    caught: list[str] = []

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with jobs.transaction():
            try:
                with job.transaction():
                    pass
            except jobq.InsideTransaction as error:
                caught.append(error.verb)

    charge.enqueue()
    jobq.Runner(jobs).drain()

    assert caught == ["job.transaction"]


def test_a_failure_after_the_commit_does_not_undo_it(
    jobs: jobq.JobQueue, paid: Callable[[], list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    """An enqueue with join=False that fails at the end of the block comes after the success."""
    jobs.enqueue("holder", dedupe_key="k")

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
            job.enqueue("apart", dedupe_key="k", join=False)

    made = charge.enqueue()
    counts = jobq.Runner(jobs).drain()

    assert (counts.succeeded, jobs.get(made.id).state, paid()) == (1, "succeeded", [1])
    assert [record.getMessage().split(" ")[0] for record in caplog.records] == ["jobq.handler.failed"]


def test_worker_threads_do_not_settle_again(
    open_real: Callable[..., jobq.JobQueue], changes: Changes, caplog: pytest.LogCaptureFixture
) -> None:
    """On threads, in hands and beside jobs that return: each row once, each success once, no lease lost."""
    caplog.set_level("WARNING", logger="jobq")
    jobs = open_real()
    rows = table(jobs)
    ends: list[int] = []

    @jobs.job
    def charge(payload: int, job: jobq.RunningJob) -> int | None:
        if payload % 3 == 0:
            return payload
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (?)", (payload,))
            tx.result(payload)
        return None

    def count(event: jobq.JobStateChanged) -> None:
        if event.state == "succeeded":
            ends.append(event.job_id)
        changes.on_event(event)

    jobs.bus.subscribe(jobq.JobStateChanged, count)
    jobs.enqueue_many([jobq.NewJob("charge", number) for number in range(60)])
    with jobq.Runner(jobs, workers={"default": 3}):
        changes.wait_for(lambda: jobs.counts()["succeeded"] == 60)

    assert rows() == [number for number in range(60) if number % 3]
    assert sorted(ends) == sorted(job.id for job in jobs.find(limit=None))
    assert all(jobs.get(job.id).result == jobs.get(job.id).payload for job in jobs.find(limit=None))
    assert [record.getMessage() for record in caplog.records] == []


def test_a_stop_does_not_void_a_run_that_has_settled_itself(
    open_real: Callable[..., jobq.JobQueue], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler may hang afterwards: the job has succeeded, and nobody says that its lease was lost."""
    caplog.set_level("WARNING", logger="jobq")
    monkeypatch.setattr("jobq.runtime.shutdown.NOTICE", 0.05)
    jobs = open_real()
    rows = table(jobs)
    settled, leave = threading.Event(), threading.Event()

    @jobs.job
    def charge(payload: object, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO paid VALUES (1)")
        settled.set()
        leave.wait(PATIENCE)

    made = charge.enqueue()
    runner = jobq.Runner(jobs)
    runner.start()
    assert settled.wait(PATIENCE)
    runner.stop(grace=0)
    leave.set()

    assert (jobs.get(made.id).state, rows()) == ("succeeded", [1])
    assert not [record for record in caplog.records if "lease.lost" in record.getMessage()]
