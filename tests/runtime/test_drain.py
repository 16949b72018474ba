"""drain() and run_once(): the worker's steps on the calling thread."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock

START = datetime(2024, 1, 1, tzinfo=UTC)


def test_counts_say_how_each_run_ended(jobs: jobq.JobQueue, caplog: Any) -> None:
    """Each outcome has its own number."""

    @jobs.job(max_attempts=2)
    def act(payload: Any) -> None:
        match payload:
            case "fail":
                raise jobq.PermanentJobError("no")
            case "retry":
                raise ValueError("again")
            case "defer":
                raise jobq.Deferred(delay="1h")

    jobs.enqueue_many([jobq.NewJob("act", what) for what in ("ok", "ok", "fail", "retry", "defer")])

    expected = jobq.Counts(claimed=5, succeeded=2, failed=1, retried=1, deferred=1)
    assert jobq.Runner(jobs).drain() == expected


def test_jobs_enqueued_meanwhile_are_followed(jobs: jobq.JobQueue) -> None:
    """A drain ends when nothing is due, not when what was there at first is done."""

    @jobs.job
    def chain(payload: int, job: jobq.RunningJob) -> None:
        if payload:
            job.enqueue("chain", payload - 1)

    chain.enqueue(3)
    assert jobq.Runner(jobs).drain().succeeded == 4


def test_every_queue_is_drained_in_priority_order(jobs: jobq.JobQueue) -> None:
    """The order over all queues is priority, then due time, then id."""
    order: list[Any] = []
    jobs.job(name="note")(order.append)
    for number, (queue, priority) in enumerate([("a", 1), ("b", 9), ("default", 5)]):
        jobs.enqueue("note", number, queue=queue, priority=priority)

    jobq.Runner(jobs, workers={"a": 1}).drain()
    assert order == [1, 2, 0]


def test_limit_bounds_the_claims(jobs: jobq.JobQueue) -> None:
    """At most that many jobs are claimed; the rest stays queued with no attempt."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue_many([jobq.NewJob("note") for _ in range(3)])

    assert jobq.Runner(jobs).drain(limit=2).claimed == 2
    assert jobs.counts()[jobq.JobState.QUEUED] == 1
    assert jobq.Runner(jobs).drain(limit=0).claimed == 0


def test_run_once_says_whether_there_was_a_job(jobs: jobq.JobQueue) -> None:
    """True for a job, whatever became of it; False for none."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    runner = jobq.Runner(jobs)

    assert [runner.run_once(), runner.run_once()] == [True, False]


def test_raise_errors_raises_after_the_failure_is_written(jobs: jobq.JobQueue) -> None:
    """The handler's own exception comes out, and the job is retried all the same."""

    @jobs.job
    def boom(payload: Any) -> None:
        raise KeyError("boom")

    made = boom.enqueue()
    with pytest.raises(KeyError, match="boom"):
        jobq.Runner(jobs).drain(raise_errors=True)

    assert (jobs.get(made.id).state, jobs.get(made.id).attempts) == ("queued", 1)


def test_until_visits_each_due_time_and_ends_exactly(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The clock stops at every retry and at last at the named instant."""
    at = []

    @jobs.job(max_attempts=4, retry=jobq.RetryPolicy(base=10))
    def again(payload: Any) -> None:
        at.append((clock.now() - START).total_seconds())
        raise ValueError("no")

    again.enqueue(delay="5s")
    counts = jobq.Runner(jobs).drain(until=START + timedelta(seconds=50.5))

    assert at == [5, 15, 35]
    assert counts.retried == 3
    assert clock.now() == START + timedelta(seconds=50.5)


def test_until_takes_back_a_lease_when_it_ends(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A job of a worker that died is run as soon as its lease is over."""
    runs = []
    jobs.job(name="note")(lambda payload: runs.append(clock.now() - START))
    jobs.enqueue("note")
    jobs.lease(worker="dead", length="30s")

    jobq.Runner(jobs).drain(until="1m")
    assert runs == [timedelta(seconds=30)]


def test_until_is_not_misled_by_work_that_cannot_be_done(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Paused queues and unknown kinds neither stop the clock nor keep it from moving."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note", queue="closed")
    jobs.enqueue("stranger")
    jobs.pause("closed")
    jobs.enqueue("note", delay="10s")

    assert jobq.Runner(jobs).drain(until="1h").succeeded == 1
    assert clock.now() == START + timedelta(hours=1)


def test_until_needs_a_clock_that_can_be_moved() -> None:
    """Under the system's clock the argument is refused."""
    with jobq.open() as jobs, pytest.raises(jobq.ArgumentError):
        jobq.Runner(jobs).drain(until="1s")


def test_a_drain_inside_a_handler_is_refused(jobs: jobq.JobQueue) -> None:
    """A handler cannot drain, with its own runner or another."""
    refused = []

    @jobs.job
    def nested(payload: Any) -> None:
        for runner in (outer, jobq.Runner(jobs)):
            try:
                runner.drain()
            except jobq.RunnerBusy as error:
                refused.append(error)

    nested.enqueue()
    outer = jobq.Runner(jobs)

    assert outer.drain().succeeded == 1
    assert len(refused) == 2


def test_a_drain_beside_the_threads_is_refused(jobs: jobq.JobQueue) -> None:
    """A started runner has threads for that; after the stop it can be drained."""
    with jobq.Runner(jobs) as runner, pytest.raises(jobq.RunnerBusy):
        runner.drain()

    assert runner.drain().claimed == 0


def test_gates_are_respected_and_given_back(jobs: jobq.JobQueue) -> None:
    """A drain runs gated jobs only with a permit, and holds none afterwards."""
    gate = jobs.gate("llm", permits=1)
    free = []
    jobs.job(name="ask", gate="llm")(lambda payload: free.append(gate.free))
    jobs.job(name="note")(lambda payload: free.append("note"))
    jobs.enqueue_many([jobq.NewJob("ask"), jobq.NewJob("note"), jobq.NewJob("ask")])

    with gate.acquire():
        assert jobq.Runner(jobs).drain().succeeded == 1
    assert jobq.Runner(jobs).drain().succeeded == 2
    assert free == ["note", 0, 0]
    assert gate.free == 1


def test_b10_a_long_handler_that_beats_runs_once(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A handler of twenty leases is never taken over while the heart beats."""
    starts = []
    runner, other = jobq.Runner(jobs), jobq.Runner(jobs)

    @jobs.job
    def slow(payload: Any, job: jobq.RunningJob) -> None:
        starts.append(job.attempt)
        for _ in range(60):
            clock.advance(20)
            runner.heartbeat.tick()
            other.maintenance.tick()

    made = slow.enqueue()
    runner.drain()

    assert starts == [1]
    assert (jobs.get(made.id).state, jobs.get(made.id).attempts) == ("succeeded", 1)


def test_b41_unknown_kinds_wait_and_are_in_nobodys_way(jobs: jobq.JobQueue, open_again: Any) -> None:
    """A kind without a handler here stays queued with no attempt until a worker that knows it comes."""
    jobs.job(name="a")(lambda payload: None)
    b = jobs.enqueue("b", priority=900)
    jobs.enqueue("a")

    assert jobq.Runner(jobs).drain() == jobq.Counts(claimed=1, succeeded=1)
    assert (jobs.get(b.id).state, jobs.get(b.id).attempts) == ("queued", 0)

    newer = open_again()
    newer.job(name="b")(lambda payload: None)
    assert jobq.Runner(newer).drain() == jobq.Counts(claimed=1, succeeded=1)


def test_a_cancel_during_the_run_is_seen_and_ends_it(jobs: jobq.JobQueue) -> None:
    """The token says USER at once, and JobCancelled makes the job cancelled, not retried."""
    reasons = []

    @jobs.job
    def stoppable(payload: Any, job: jobq.RunningJob) -> None:
        assert jobs.cancel(job.id) is True
        reasons.append(job.cancel_token.reason)
        job.cancel_token.raise_if_requested()

    made = stoppable.enqueue()
    assert jobq.Runner(jobs).drain().cancelled == 1
    assert reasons == [jobq.CancelReason.USER]
    assert jobs.get(made.id).state == "cancelled"


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_b27_a_cancel_never_leads_to_a_retry(jobs: jobq.JobQueue, when: str) -> None:
    """Before the claim it never starts; during the run an error does not retry; afterwards it answers False."""
    runs, answers = [], []

    @jobs.job
    def work(payload: Any, job: jobq.RunningJob) -> None:
        runs.append(1)
        if when == "during":
            answers.append(jobs.cancel(job.id))
            raise ValueError("an error after the cancel")

    made = work.enqueue()
    if when == "before":
        answers.append(jobs.cancel(made.id))
    jobq.Runner(jobs).drain(until="1h")
    if when == "after":
        answers.append(jobs.cancel(made.id))

    ends = {
        "before": ([], [True], "cancelled"),
        "during": ([1], [True], "cancelled"),
        "after": ([1], [False], "succeeded"),
    }
    assert (runs, answers, jobs.get(made.id).state) == ends[when]


def test_b27_a_return_after_a_cancel_has_succeeded(jobs: jobq.JobQueue) -> None:
    """The work is done: a handler that returns normally succeeded, whatever was asked."""

    @jobs.job
    def work(payload: Any, job: jobq.RunningJob) -> str:
        jobs.cancel(job.id)
        return "done"

    made = work.enqueue()
    assert jobq.Runner(jobs).drain().succeeded == 1
    assert jobs.get(made.id).result == "done"


def test_a_lost_lease_is_claimed_and_nothing_else(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A run that was taken over meanwhile settles nothing; the newer run decides."""
    tokens: list[jobq.CancelToken] = []

    @jobs.job
    def work(payload: Any, job: jobq.RunningJob) -> str:
        if job.attempt == 1:
            clock.advance("2m")
            jobs.complete(jobs.lease(worker="thief")[0], "thief")
        tokens.append(job.cancel_token)
        return "first"

    made = work.enqueue()
    assert jobq.Runner(jobs).drain() == jobq.Counts(claimed=1)
    assert jobs.get(made.id).result == "thief"
    assert tokens[0].reason is jobq.CancelReason.LEASE_LOST
    assert not jobs.live
