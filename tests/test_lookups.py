"""What people see of jobs, queues and kinds."""

from typing import Any

import pytest

from jobq import (
    JobNotFound,
    JobQueue,
    JobState,
)
from jobq.testing import FakeClock


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


def test_find_narrows_by_every_column(jobs: JobQueue) -> None:
    """Each keyword alone and all together; states in either spelling."""
    parent = make(jobs, "queued")
    wanted = make(
        jobs, "failed", queue="mail", parent_id=parent, tenant_id="t", subject="s", dedupe_key="k"
    )
    filters: dict[str, Any] = {
        "state": "failed",
        "queue": "mail",
        "parent_id": parent,
        "tenant_id": "t",
        "subject": "s",
        "dedupe_key": "k",
        "kind": "mail",
    }

    assert [job.id for job in jobs.find()] == [wanted, parent]
    for name, value in filters.items():
        found = [job.id for job in jobs.find(**{name: value})]
        assert found == ([wanted, parent] if name == "kind" else [wanted]), name
    assert [job.id for job in jobs.find(**filters)] == [wanted]
    assert jobs.find(state=JobState.CANCELLED) == []
    assert jobs.find(kind="letter") == []


def test_find_by_failure_reason(jobs: JobQueue) -> None:
    """The code that the failure gave."""
    make(jobs, "failed")
    jobs.enqueue("mail")
    (lease,) = jobs.lease(worker="w")
    jobs.fail(lease, "no", code="bounced", permanent=True)

    assert [job.id for job in jobs.find(failure_reason="bounced")] == [lease.id]


def test_find_pages_newest_first(jobs: JobQueue) -> None:
    """``before`` is the last id of the page before; ``limit`` is taken as it is."""
    ids = [make(jobs, "queued") for _ in range(60)]

    assert [job.id for job in jobs.find()] == ids[:9:-1]
    assert [job.id for job in jobs.find(before=ids[10])] == ids[9::-1]
    assert len(jobs.find(limit=None)) == len(jobs.find(limit=1000)) == 60
    assert jobs.find(limit=0) == []


def test_b54_find_does_not_load_payloads(jobs: JobQueue) -> None:
    """A JobInfo has neither payload nor result."""
    make(jobs, "succeeded")

    (found,) = jobs.find()

    assert not hasattr(found, "payload")
    assert not hasattr(found, "result")


def test_counts_has_every_state(jobs: JobQueue) -> None:
    """Of all jobs, of a queue, of a kind; what does not exist counts 0."""
    make(jobs, "failed")
    make(jobs, "queued", queue="mail")

    nothing = dict.fromkeys(JobState, 0)
    assert jobs.counts() == nothing | {JobState.FAILED: 1, JobState.QUEUED: 1}
    assert jobs.counts(queue="mail") == nothing | {JobState.QUEUED: 1}
    assert jobs.counts(kind="mail", queue="default") == nothing | {JobState.FAILED: 1}
    assert jobs.counts(kind="letter") == nothing


def test_history_lists_the_runs_that_did_not_succeed(jobs: JobQueue, clock: FakeClock) -> None:
    """Their numbers go on over a requeue; their errors stay when the job's own is cleared."""
    job_id = make(jobs, "failed")
    jobs.requeue(job_id)
    (lease,) = jobs.lease(worker="w2")
    jobs.fail(lease, "again")

    first, second = jobs.history(job_id)

    assert [(run.number, run.attempt, run.worker) for run in (first, second)] == [(1, 1, "w"), (2, 1, "w2")]
    assert [run.error for run in (first, second)] == ["no luck", "again"]
    assert jobs.history(make(jobs, "queued")) == []
    with pytest.raises(JobNotFound):
        jobs.history(999)


def test_changes_are_newest_first(jobs: JobQueue) -> None:
    """Of one job or of all, as many as asked for."""
    one, two = make(jobs, "failed"), make(jobs, "failed")
    jobs.requeue([one, two])

    assert [line.job_id for line in jobs.changes()] == [two, one]
    assert [line.job_id for line in jobs.changes(limit=1)] == [two]
    assert [line.job_id for line in jobs.changes(one)] == [one]


def test_get_of_an_unknown_id(jobs: JobQueue) -> None:
    """It was never there, or cannot be."""
    for job_id in (0, -1, 99, 2**63, 10**30):
        with pytest.raises(JobNotFound) as raised:
            jobs.get(job_id)
        assert raised.value.job_id == job_id
