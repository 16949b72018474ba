"""What people do to jobs and queues, and what they see of them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobq import (
    Actor,
    ArgumentError,
    CancelReason,
    CancelToken,
    DedupeConflict,
    InvalidTransition,
    JobNotFound,
    JobQueue,
    JobState,
    JobStateChanged,
    NewJob,
    QueueNotFound,
    Requeued,
)
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]


def make(jobs: JobQueue, state: str, **options: Any) -> int:
    """Make a job that is in this state and return its id."""
    made = jobs.enqueue("mail", {"n": 1}, **options)
    if state == "cancelled":
        jobs.cancel(made.id)
    elif state != "queued":
        (lease,) = [one for one in jobs.lease(worker="w", limit=100) if one.id == made.id]
        if state == "succeeded":
            jobs.complete(lease, 1)
        elif state == "failed":
            jobs.fail(lease, "no luck", permanent=True)
    return made.id


ENDED = ["succeeded", "failed", "cancelled"]


def test_cancel_ends_a_queued_job_at_once(jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """True for a bare id; the bus tells it."""
    job_id = make(jobs, "queued")

    assert jobs.cancel(job_id) is True
    assert jobs.get(job_id).state == JobState.CANCELLED
    assert [event.state for event in events] == [JobState.QUEUED, JobState.CANCELLED]


def test_cancel_records_a_request_for_a_running_job(jobs: JobQueue, clock: FakeClock) -> None:
    """The job runs on until its owner has heard of it."""
    job_id = make(jobs, "running")

    assert jobs.cancel(job_id) is True
    job = jobs.get(job_id)
    assert (job.state, job.cancel_requested_at) == (JobState.RUNNING, clock.now())


def test_cancel_sets_the_token_of_a_run_in_this_process_at_once(jobs: JobQueue, open_again: Again) -> None:
    """Also when another job queue on the same file is asked; other runs are left alone."""
    job_id, other_id = make(jobs, "running"), make(jobs, "running")
    token, other = CancelToken(jobs.clock), CancelToken(jobs.clock)
    jobs.live[(job_id, "t1")] = token
    jobs.live[(other_id, "t2")] = other

    open_again().cancel(job_id)

    assert (token.reason, other.reason) == (CancelReason.USER, None)


def test_cancel_leaves_a_run_alone_that_began_after_it_ended(jobs: JobQueue) -> None:
    """The token of a job that was cancelled while queued, say, is not touched."""
    job_id = make(jobs, "queued")
    token = CancelToken(jobs.clock)
    jobs.live[(job_id, "t1")] = token

    jobs.cancel(job_id)

    assert token.reason is None


@pytest.mark.parametrize("state", ENDED)
def test_b27_cancel_of_a_job_that_has_ended_is_false(jobs: JobQueue, state: str) -> None:
    """And the row is unchanged."""
    job_id = make(jobs, state)
    before = jobs.get(job_id)

    assert jobs.cancel(job_id) is False
    assert jobs.get(job_id) == before


def test_cancel_of_several_answers_with_those_it_reached(jobs: JobQueue) -> None:
    """Ended and unknown ones are left out; the order is the caller's."""
    queued, running, ended = make(jobs, "queued"), make(jobs, "running"), make(jobs, "succeeded")

    assert jobs.cancel([999, running, ended, queued, queued]) == (running, queued)
    assert jobs.cancel(iter(())) == ()


def test_cancel_of_an_unknown_bare_id_is_refused(jobs: JobQueue) -> None:
    """Whoever names one id wants to know that it is wrong."""
    for job_id in (99, 10**30):
        with pytest.raises(JobNotFound):
            jobs.cancel(job_id)


@pytest.mark.parametrize("state", ["queued", "failed", "cancelled"])
def test_requeue_lets_a_job_run_again_from_the_start(jobs: JobQueue, clock: FakeClock, state: str) -> None:
    """Attempts 0, due now, error cleared, a line in the change log."""
    job_id = make(jobs, state)
    clock.advance("1h")

    assert jobs.requeue(job_id, actor="user") == Requeued((job_id,))

    job = jobs.get(job_id)
    assert (job.state, job.attempts, job.run_at, job.last_error) == (JobState.QUEUED, 0, clock.now(), None)
    (line,) = jobs.changes(job_id)
    assert (line.what, line.actor, line.at) == ("requeued", Actor.USER, clock.now())
    assert (line.before["state"], line.after["state"]) == (state, "queued")


@pytest.mark.parametrize("state", ["running", "succeeded"])
def test_requeue_of_one_that_runs_or_succeeded_is_an_invalid_transition(jobs: JobQueue, state: str) -> None:
    """The row is unchanged, the error says its state."""
    job_id = make(jobs, state)
    before = jobs.get(job_id)

    with pytest.raises(InvalidTransition) as raised:
        jobs.requeue(job_id)

    assert (raised.value.job_id, raised.value.state) == (job_id, state)
    assert jobs.get(job_id) == before
    assert jobs.changes(job_id) == []


def test_b18_requeue_of_one_whose_key_is_taken_conflicts(jobs: JobQueue) -> None:
    """A newer job holds the key: the row is unchanged and the holder is named."""
    job_id = make(jobs, "failed", dedupe_key="k")
    holder = make(jobs, "queued", dedupe_key="k")
    before = jobs.get(job_id)

    with pytest.raises(DedupeConflict) as raised:
        jobs.requeue(job_id)

    assert raised.value.holder == holder
    assert jobs.get(job_id) == before


def test_b18_requeue_of_three_of_which_one_clashes_lets_the_others_run(jobs: JobQueue) -> None:
    """The clash is reported beside them, with the job that holds the key."""
    first, clash, third = make(jobs, "failed"), make(jobs, "failed", dedupe_key="k"), make(jobs, "failed")
    holder = make(jobs, "queued", dedupe_key="k")

    answer = jobs.requeue([first, clash, third])

    assert answer.ids == (first, third)
    ((refused, why),) = answer.refused
    assert (refused, str(holder) in why) == (clash, True)
    assert [jobs.get(one).state for one in (first, clash, third)] == ["queued", "failed", "queued"]


def test_b18_requeue_of_two_with_one_key_lets_the_first_run(jobs: JobQueue) -> None:
    """The unique key holds inside a batch too."""
    first, second = make(jobs, "failed", dedupe_key="k"), make(jobs, "failed", dedupe_key="k")

    answer = jobs.requeue([first, second])

    assert (answer.ids, [job_id for job_id, _ in answer.refused]) == ((first,), [second])


def test_requeue_of_unknown_ids(jobs: JobQueue) -> None:
    """Refused beside the others, raised for a bare one."""
    with pytest.raises(JobNotFound):
        jobs.requeue(99)
    assert [job_id for job_id, _ in jobs.requeue([99]).refused] == [99]


def test_requeue_into_another_queue(jobs: JobQueue) -> None:
    """Which has to exist; a queue that a handler here names does."""
    jobs.job(name="slow", queue="slow")(lambda payload: None)
    job_id = make(jobs, "failed")

    with pytest.raises(QueueNotFound) as raised:
        jobs.requeue(job_id, queue="nowhere")
    assert jobs.get(job_id).state == JobState.FAILED
    assert "default" in raised.value.known
    jobs.requeue(job_id, queue="slow")
    assert jobs.get(job_id).queue == "slow"


def test_requeue_dry_run_answers_the_same_and_writes_nothing(
    jobs: JobQueue, events: list[JobStateChanged]
) -> None:
    """Neither rows nor change log nor events."""
    failed, running = make(jobs, "failed"), make(jobs, "running")
    before, told = jobs.get(failed), len(events)

    dry = jobs.requeue([failed, running], dry_run=True)

    assert (jobs.get(failed), jobs.changes(), len(events)) == (before, [], told)
    assert jobs.requeue([failed, running]) == dry


def test_many_jobs_are_told_of_batch_by_batch(jobs: JobQueue) -> None:
    """After each transaction, with how many were looked at so far, refused ones included; not in a rehearsal."""
    ids = [one.id for one in jobs.enqueue_many([NewJob("note", None) for _ in range(120)])]
    told: list[int] = []

    jobs.cancel(ids, progress=told.append)
    jobs.requeue(ids[:-1], dry_run=True, progress=told.append)
    jobs.requeue([*ids, 10**6], progress=told.append)

    assert told == [50, 100, 120, 50, 100, 121]


def test_reschedule_changes_due_time_and_priority(jobs: JobQueue, clock: FakeClock) -> None:
    """Of a queued job; delays count from now."""
    job_id = make(jobs, "queued")
    when = datetime(2024, 6, 1, tzinfo=UTC)

    assert jobs.reschedule(job_id, delay="1h") is True
    assert jobs.get(job_id).run_at == clock.now() + timedelta(hours=1)
    assert jobs.reschedule(job_id, delay=-5) is True
    assert jobs.get(job_id).run_at == clock.now()
    assert jobs.reschedule(job_id, run_at=when, priority=-3) is True
    assert (jobs.get(job_id).run_at, jobs.get(job_id).priority) == (when, -3)


@pytest.mark.parametrize("state", ["running", *ENDED])
def test_reschedule_of_a_job_that_is_not_queued_is_false(jobs: JobQueue, state: str) -> None:
    """And changes nothing."""
    job_id = make(jobs, state)
    before = jobs.get(job_id)

    assert jobs.reschedule(job_id, priority=9) is False
    assert jobs.get(job_id) == before


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda jobs: jobs.get("1"), id="get text"),
        pytest.param(lambda jobs: jobs.get(True), id="get bool"),
        pytest.param(lambda jobs: jobs.cancel(True), id="cancel bool"),
        pytest.param(lambda jobs: jobs.cancel("12"), id="cancel text"),
        pytest.param(lambda jobs: jobs.cancel(["1"]), id="cancel texts"),
        pytest.param(lambda jobs: jobs.cancel(None), id="cancel nothing"),
        pytest.param(lambda jobs: jobs.requeue([1.0]), id="requeue floats"),
        pytest.param(lambda jobs: jobs.requeue(1, actor="robot"), id="requeue as robot"),
        pytest.param(lambda jobs: jobs.requeue(1, queue="No"), id="requeue to a bad name"),
        pytest.param(lambda jobs: jobs.reschedule(1), id="reschedule nothing"),
        pytest.param(lambda jobs: jobs.reschedule(1, delay=float("nan")), id="reschedule NaN"),
        pytest.param(lambda jobs: jobs.reschedule(1, priority=5000), id="reschedule priority"),
        pytest.param(lambda jobs: jobs.find(state="done"), id="find state"),
        pytest.param(lambda jobs: jobs.find(limit=-1), id="find limit"),
        pytest.param(lambda jobs: jobs.find(limit=True), id="find limit bool"),
        pytest.param(lambda jobs: jobs.find(queue="No"), id="find queue"),
        pytest.param(lambda jobs: jobs.changes(limit=-1), id="changes limit"),
        pytest.param(lambda jobs: jobs.counts(kind=""), id="counts kind"),
    ],
)
def test_verbs_refuse_bad_arguments(jobs: JobQueue, call: Callable[[JobQueue], object]) -> None:
    """With the argument's name."""
    with pytest.raises(ArgumentError):
        call(jobs)
