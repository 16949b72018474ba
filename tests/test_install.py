"""``jobq.install``: the job queue of handlers that are attached to none."""

from collections.abc import Iterator

import pytest

import jobq
from jobq.testing import FakeClock
from tests.aborting import aborted


@pytest.fixture(autouse=True)
def _nothing_installed() -> Iterator[None]:
    """Take back what a test installed."""
    yield
    jobq.install(None)


@pytest.fixture
def send() -> jobq.Handler[..., None]:
    """A handler that is attached to no job queue."""
    handlers = jobq.Handlers()

    @handlers.job(queue="mail", priority=77, max_attempts=2)
    def send(payload: dict) -> None: ...

    return send


def test_a_handler_enqueues_on_the_installed_job_queue(jobs: jobq.JobQueue, send: jobq.Handler[..., None]) -> None:
    """With what its registration declares."""
    jobq.install(jobs)

    job = send.enqueue({"n": 1}).job

    assert (job.kind, job.queue, job.priority, job.max_attempts) == ("send", "mail", 77, 2)


def test_it_is_looked_up_at_each_call(jobs: jobq.JobQueue, send: jobq.Handler[..., None], clock: FakeClock) -> None:
    """Another one takes effect at once, and None takes it back; the error says what to call."""
    with jobq.open(clock=clock) as other:
        jobq.install(jobs)
        send.enqueue({})
        jobq.install(other)
        send.enqueue({})
        jobq.install(None)
        with pytest.raises(jobq.NoQueueInstalled, match=r"jobq.install\(jobs\)") as caught:
            send.enqueue({})

        assert "jobq.install(jobs)" in str(caught.value.fix)
        assert (len(jobs.find()), len(other.find())) == (1, 1)


def test_a_handler_prefers_the_job_queue_that_it_is_attached_to(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The installed one is for those that have none."""
    with jobq.open(clock=clock) as other:

        @other.job
        def own(payload: object) -> None: ...

        jobq.install(jobs)
        own.enqueue()

        assert (len(jobs.find()), len(other.find())) == (0, 1)


def test_another_handler_of_the_kind_is_not_passed_over(jobs: jobq.JobQueue, send: jobq.Handler[..., None]) -> None:
    """Where the installed job queue knows the kind by a handler of its own, a stranger is refused."""

    @jobs.job(name="send")
    def other(payload: object) -> None: ...

    jobq.install(jobs)
    with pytest.raises(jobq.UnknownKind):
        send.enqueue({})


def test_an_installed_job_queue_joins_the_transaction(jobs: jobq.JobQueue, send: jobq.Handler[..., None]) -> None:
    """Like every verb on the thread."""
    jobq.install(jobs)
    with aborted(jobs.transaction()):
        send.enqueue({})

    assert jobs.find() == []


def test_only_a_job_queue_can_be_installed() -> None:
    """Not its path, for instance."""
    with pytest.raises(jobq.ArgumentError):
        jobq.install("app.db")  # type: ignore[arg-type]
