"""Taking leases, for workers outside."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import apsw
import pytest

from jobq import (
    Config,
    FailureClass,
    Handlers,
    JobQueue,
    JobState,
)
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]


def test_lease_claims_a_job_for_a_named_worker(jobs: JobQueue, clock: FakeClock) -> None:
    """The lease holds the whole job as it is now: running, with the attempt counted."""
    made = jobs.enqueue("review", {"n": 1})

    (lease,) = jobs.lease(kinds=["review"], worker="agent-7", limit=1, length="2m")

    assert lease.job == jobs.get(made.id)
    assert (lease.job.state, lease.job.attempts, lease.job.payload) == (JobState.RUNNING, 1, {"n": 1})
    assert (lease.worker, lease.length, lease.until) == ("agent-7", 120.0, clock.now() + timedelta(minutes=2))
    assert (lease.token, lease.cancel_requested) == (lease.job.token, False)
    assert jobs.lease(worker="agent-8") == []


def test_lease_takes_its_length_from_the_configuration(open_again: Again, clock: FakeClock) -> None:
    """Unless it is named."""
    jobs = open_again(config=Config(lease="90s"))
    jobs.enqueue("review")

    (lease,) = jobs.lease(worker="w")

    assert (lease.length, lease.until) == (90.0, clock.now() + timedelta(seconds=90))


def test_lease_takes_the_best_jobs_up_to_the_limit(jobs: JobQueue) -> None:
    """By priority, then by time, then by id; each may be any job, also one tried before or with one attempt."""
    low, high = jobs.enqueue("review", priority=1), jobs.enqueue("review", priority=9, max_attempts=1)
    middle = jobs.enqueue("review", priority=5)

    assert [lease.id for lease in jobs.lease(worker="w", limit=2)] == [high.id, middle.id]
    assert [lease.id for lease in jobs.lease(worker="w", limit=2)] == [low.id]


def test_lease_narrows_by_kinds_and_queues(jobs: JobQueue) -> None:
    """One name or several; a name that nobody knows finds nothing, no name at all finds nothing either."""
    mail, review = jobs.enqueue("mail", queue="out"), jobs.enqueue("review")

    assert jobs.lease(kinds=["other"], worker="w") == []
    assert jobs.lease(kinds=[], worker="w") == []
    assert jobs.lease(queues=(), worker="w") == []
    assert [lease.id for lease in jobs.lease("review", worker="w", limit=9)] == [review.id]
    assert [lease.id for lease in jobs.lease(queues="out", worker="w", limit=9)] == [mail.id]


def test_lease_respects_caps_and_the_configured_limits(jobs: JobQueue, open_again: Again) -> None:
    """The last registered cap is stored with the kind; kind_limits of this job queue win."""
    handlers = Handlers()
    handlers.job(name="review", concurrency=2)(lambda payload: None)
    open_again(handlers=handlers).register()
    limited = open_again(config=Config(kind_limits={"review": 1}))
    for _ in range(4):
        jobs.enqueue("review")

    assert len(limited.lease(worker="w", limit=9)) == 1
    assert len(jobs.lease(worker="w", limit=9)) == 1
    assert jobs.lease(worker="w", limit=9) == []


def test_lease_does_not_ask_for_gates(jobs: JobQueue) -> None:
    """A gate belongs to the worker threads of one process."""
    jobs.job(name="review", gate="llm")(lambda payload: None)
    jobs.enqueue("review")

    with jobs.gate("llm", permits=1).acquire():
        assert len(jobs.lease(worker="w")) == 1


def test_lease_names_its_worker_unless_told(jobs: JobQueue) -> None:
    """Host, process and thread."""
    jobs.enqueue("review")

    (lease,) = jobs.lease()

    assert lease.worker.count(":") == 2
    assert lease.job.worker == lease.worker


def test_lease_that_was_taken_over_meanwhile_is_left_out(
    jobs: JobQueue, open_again: Again, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever paused between the claim and the look at the job does not get another's lease."""
    jobs.enqueue("review")
    claim, taken = jobs.store.claim, []

    def overslept(*arguments: Any, **options: Any) -> Any:
        claims = claim(*arguments, **options)
        clock.advance("2m")
        taken.extend(open_again().lease(worker="other"))
        return claims

    monkeypatch.setattr(jobs.store, "claim", overslept)

    assert jobs.lease(worker="w") == []
    assert [lease.worker for lease in taken] == ["other"]


def test_b24_lease_of_a_broken_payload_fails_that_job_alone(jobs: JobQueue) -> None:
    """Failed with attempts 1; the error names the payload and none of its content."""
    broken, whole = jobs.enqueue("review", {"n": "secret"}), jobs.enqueue("review")
    connection = apsw.Connection(jobs.path)
    connection.execute("UPDATE jobq_job SET payload = '{secret' WHERE id = ?", (broken.id,))
    connection.close()

    (lease,) = jobs.lease(worker="w", limit=2)

    assert lease.id == whole.id
    job = jobs.get(broken.id)
    assert (job.state, job.attempts, job.failure_class) == (JobState.FAILED, 1, FailureClass.UNRECOVERABLE)
    assert "payload" in str(job.last_error)
    assert "secret" not in str(job.last_error)
