"""What jobq offers to the tests of its users, besides the clock."""

import pytest

import jobq
from jobq.testing import FakeClock, running_job


def test_running_job_lets_a_handler_be_called_by_hand() -> None:
    """Facts, token and delegates are as named."""

    def handler(payload: str, job: jobq.RunningJob) -> str:
        job.cancel_token.raise_if_requested()
        return f"{payload} {job.attempt} {job.meta['trace']} {job.delegates}"

    assert handler("a", running_job(attempt=2, meta={"trace": "t"}, delegates="mailer")) == "a 2 t mailer"
    asked = running_job()
    asked.cancel_token.request(jobq.CancelReason.USER)
    with pytest.raises(jobq.JobCancelled):
        handler("a", asked)


def test_running_job_has_a_run_budget_on_its_clock() -> None:
    """The token says TIMEOUT once the clock was moved past it."""
    clock = FakeClock()
    job = running_job(clock=clock, time_limit="1m")
    assert not job.cancel_token.requested

    clock.advance("1m")

    assert job.cancel_token.reason is jobq.CancelReason.TIMEOUT


def test_running_job_enqueues_where_it_is_told(jobs: jobq.JobQueue) -> None:
    """On the job queue that the test names; without one the error says so."""
    parent = jobs.enqueue("parent")

    child = running_job(jobs=jobs, id=parent.id, priority=77).enqueue("child")

    assert (child.job.parent_id, child.job.priority) == (parent.id, 77)
    with pytest.raises(jobq.NoQueueInstalled):
        running_job().enqueue("child")
