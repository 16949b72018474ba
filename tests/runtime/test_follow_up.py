"""``job.follow_up()``: children that are committed with the success of their job, or not at all."""

from collections.abc import Callable
from datetime import timedelta

import pytest

import jobq
from jobq.testing import FakeClock
from tests.conftest import ErrorLog
from tests.runtime.conftest import Changes


def kinds(jobs: jobq.JobQueue) -> list[str]:
    """Return the kinds of all jobs in the order in which they were made."""
    return [job.kind for job in reversed(jobs.find(limit=None))]


def test_follow_ups_come_with_the_success(jobs: jobq.JobQueue, events: list[jobq.JobStateChanged]) -> None:
    """In order and after the end of their job; nothing is written before it."""
    seen: list[int] = []

    @jobs.job
    def first(payload: object, job: jobq.RunningJob) -> str:
        job.follow_up("second", {"n": 1})
        job.follow_up("third", delay="1h")
        seen.append(len(jobs.find()))
        return "done"

    first.enqueue()
    counts = jobq.Runner(jobs).drain()

    assert (seen, counts.succeeded) == ([1], 1)
    assert kinds(jobs) == ["first", "second", "third"]
    assert [(event.kind, str(event.state)) for event in events[2:]] == [
        ("first", "succeeded"), ("second", "queued"), ("third", "queued"),
    ]  # fmt: skip


def test_follow_ups_inherit_like_children(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Parent, actor, tenant and priority, unless they are named; a delay counts from the success."""

    @jobs.job
    def first(payload: object, job: jobq.RunningJob) -> None:
        job.follow_up("heir", delay="1m")
        job.follow_up("own", priority=3, actor="agent", tenant_id="other", subject="s", queue="mail", max_attempts=2)
        clock.advance("5s")

    made = first.enqueue(priority=70, actor="user", tenant_id="acme")
    jobq.Runner(jobs).drain(limit=1)

    heir, own = jobs.find(kind="heir")[0], jobs.find(kind="own")[0]
    assert (heir.parent_id, heir.priority, heir.actor, heir.tenant_id) == (made.id, 70, "user", "acme")
    assert heir.run_at - clock.now() == timedelta(seconds=60)
    assert (own.priority, own.actor, own.tenant_id, own.subject, own.queue) == (3, "agent", "other", "s", "mail")
    assert (own.parent_id, own.max_attempts) == (made.id, 2)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(ValueError("no"), id="retried"),
        pytest.param(jobq.PermanentJobError("no"), id="failed"),
        pytest.param(jobq.Deferred(delay=1), id="deferred"),
        pytest.param(jobq.JobCancelled(), id="cancelled"),
    ],
)
def test_a_run_that_does_not_succeed_has_none(
    jobs: jobq.JobQueue, end: BaseException, errors: ErrorLog
) -> None:
    """However it ends."""

    @jobs.job
    def first(payload: object, job: jobq.RunningJob) -> None:
        job.follow_up("second")
        raise end

    first.enqueue()
    jobq.Runner(jobs).drain(limit=1)
    errors.take()

    assert kinds(jobs) == ["first"]


def test_a_later_attempt_does_not_inherit_those_of_an_earlier_one(jobs: jobq.JobQueue) -> None:
    """Each run collects its own."""

    @jobs.job(retry=jobq.RetryPolicy(base=0))
    def first(payload: object, job: jobq.RunningJob) -> None:
        job.follow_up(f"after{job.attempt}")
        if job.attempt == 1:
            raise ValueError

    first.enqueue()
    jobq.Runner(jobs).drain()

    assert kinds(jobs) == ["first", "after2"]


def test_it_is_checked_at_the_call(jobs: jobq.JobQueue) -> None:
    """The handler gets the error and may go on."""
    caught: list[type] = []

    @jobs.job
    def first(payload: object, job: jobq.RunningJob) -> None:
        for wrong in ({"payload": {1, 2}}, {"delay": "soon"}, {"dedupe_key": ""}, {"priority": 5000}):
            try:
                job.follow_up("second", **wrong)  # type: ignore[arg-type]
            except jobq.JobqError as error:
                caught.append(type(error))

    first.enqueue()
    jobq.Runner(jobs).drain()

    assert caught == [jobq.PayloadError, *[jobq.ArgumentError] * 3]
    assert kinds(jobs) == ["first"]


def test_a_job_follows_itself_under_its_own_key(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Its end frees the key before the follow-up takes it."""

    @jobs.job
    def poll(payload: object, job: jobq.RunningJob) -> None:
        job.follow_up("poll", delay="1m", dedupe_key="poll")

    poll.enqueue(dedupe_key="poll")
    runner = jobq.Runner(jobs)
    for _ in range(3):
        assert runner.drain().succeeded == 1
        clock.advance("1m")

    assert jobs.counts() == {"queued": 1, "running": 0, "succeeded": 3, "failed": 0, "cancelled": 0}


def test_a_taken_key_does_not_undo_the_success(jobs: jobq.JobQueue, caplog: pytest.LogCaptureFixture) -> None:
    """A job of the same kind that holds it is enough; one of another kind is logged."""

    @jobs.job
    def first(payload: object, job: jobq.RunningJob) -> None:
        job.follow_up("second", dedupe_key="k")
        job.follow_up("other", dedupe_key="k")
        job.follow_up("third")

    jobs.enqueue("second", dedupe_key="k")
    made = first.enqueue()
    jobq.Runner(jobs).drain()

    assert jobs.get(made.id).state == "succeeded"
    assert kinds(jobs) == ["second", "first", "third"]
    (line,) = [record.getMessage() for record in caplog.records if "followup" in record.getMessage()]
    assert line.startswith("jobq.followup.refused")
    assert "'other'" in line
    assert "DedupeConflict" in line


def test_a_lost_lease_has_none(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The run that took over has its own."""

    @jobs.job(max_attempts=2)
    def first(payload: object, job: jobq.RunningJob) -> None:
        job.follow_up(f"by{job.attempt}")
        if job.attempt == 1:
            clock.advance("2m")
            jobs.store.reclaim(hold_expired=False)

    first.enqueue()
    counts = jobq.Runner(jobs).drain()

    assert (counts.claimed, counts.succeeded) == (2, 1)
    assert kinds(jobs) == ["first", "by2"]


def test_worker_threads_and_hands_make_them_too(
    open_real: Callable[..., jobq.JobQueue], changes: Changes
) -> None:
    """Each job's, once, in hands as well as by settles between them."""
    jobs = open_real()

    @jobs.job
    def first(payload: int, job: jobq.RunningJob) -> None:
        job.follow_up("second", payload)

    jobs.bus.subscribe(jobq.JobStateChanged, changes.on_event)
    jobs.enqueue_many([jobq.NewJob("first", number) for number in range(40)])
    with jobq.Runner(jobs):
        changes.wait_for(lambda: jobs.counts(kind="first")["succeeded"] == 40)

    assert sorted(jobs.get(job.id).payload for job in jobs.find(kind="second", limit=None)) == list(range(40))
