"""What a run ends as: everything a handler may return or raise, through a real drain."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

import jobq
from jobq.errors import StoreFull
from jobq.testing import FakeClock


class Odd(BaseException):
    """Neither an Exception nor known to anybody."""


class Unprintable(Exception):
    """Raises when it is asked for its text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def end_of(jobs: jobq.JobQueue, function: Callable[..., Any], payload: object = None, **options: Any) -> jobq.Job:
    """Run one job of this function by a drain and return what became of it."""
    handler = jobs.job(name="subject", max_attempts=1, **options)(function)
    made = handler.enqueue(payload)
    jobq.Runner(jobs).drain()
    return jobs.get(made.id)


def raising(error: BaseException, cause: BaseException | None = None) -> Callable[[Any], None]:
    """Return a handler that raises this."""

    def handler(payload: Any) -> None:
        raise error from cause

    return handler


@pytest.mark.parametrize(
    ("error", "reason", "failure_class"),
    [
        pytest.param(ValueError("x"), None, None, id="any-error"),
        pytest.param(jobq.PermanentJobError("x", code="bounced"), "bounced", "unrecoverable", id="permanent"),
        pytest.param(jobq.TransientJobError("x", code="rate"), "rate", "transient", id="transient"),
        pytest.param(jobq.TransientJobError("x", code=429), "429", "transient", id="number-as-code"),  # type: ignore[arg-type]
        pytest.param(TimeoutError("x"), None, "transient", id="timeout"),
        pytest.param(ConnectionResetError("x"), None, "transient", id="connection"),
        pytest.param(jobq.StoreBusy("f", "locked"), None, "transient", id="store-busy"),
        pytest.param(StoreFull("f", "full"), None, "transient", id="store-full"),
        pytest.param(jobq.StoreCorrupt("f", "bad"), None, None, id="store-corrupt"),
        pytest.param(Unprintable(), None, None, id="unprintable"),
    ],
)
def test_exceptions_become_reason_and_class(
    jobs: jobq.JobQueue, error: BaseException, reason: str | None, failure_class: str | None, caplog: Any
) -> None:
    """Each kind of exception is a failed attempt with its own code and class."""
    job = end_of(jobs, raising(error))

    assert (job.state, job.failure_reason, job.failure_class) == ("failed", reason, failure_class)
    assert (job.last_error or "").startswith(type(error).__name__)


def test_sqlite_busy_of_any_driver_is_transient(jobs: jobq.JobQueue, caplog: Any) -> None:
    """A busy database is recognised by its code, whatever driver the handler uses."""
    error = RuntimeError("database is locked")
    error.sqlite_errorcode = 517  # type: ignore[attr-defined]

    assert end_of(jobs, raising(error)).failure_class == "transient"


@pytest.mark.parametrize(
    ("error", "cause", "failure_class"),
    [
        pytest.param(RuntimeError("x"), jobq.PermanentJobError("y"), "unrecoverable", id="permanent-inside"),
        pytest.param(RuntimeError("x"), ConnectionError("y"), "transient", id="builtin-inside"),
        pytest.param(jobq.PermanentJobError("x"), ConnectionError("y"), "unrecoverable", id="typed-beats-builtin"),
        pytest.param(ConnectionError("x"), jobq.PermanentJobError("y"), "unrecoverable", id="typed-deeper-still-wins"),
    ],
)
def test_the_typed_error_is_found_through_the_causes(
    jobs: jobq.JobQueue, error: Exception, cause: Exception, failure_class: str, caplog: Any
) -> None:
    """A library that wraps exceptions does not hide what the handler meant."""
    assert end_of(jobs, raising(error, cause)).failure_class == failure_class


def test_a_circle_of_causes_ends(jobs: jobq.JobQueue, caplog: Any) -> None:
    """Causes that lead back to themselves are walked a bounded way."""
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    def handler(payload: Any) -> None:
        raise one

    assert end_of(jobs, handler).state == "failed"


def test_a_suppressed_context_is_no_cause(jobs: jobq.JobQueue, caplog: Any) -> None:
    """``raise ... from None`` says that the earlier error does not matter."""

    def handler(payload: Any) -> None:
        try:
            raise jobq.PermanentJobError("inner")
        except jobq.PermanentJobError:
            raise ValueError("outer") from None

    assert end_of(jobs, handler).failure_class is None


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(jobq.Deferred("later", delay="1m"), id="delay"),
        pytest.param(jobq.Deferred("later", delay=-5), id="negative"),
    ],
)
def test_deferred_comes_back_uncounted(jobs: jobq.JobQueue, error: jobq.Deferred) -> None:
    """A deferral puts the job back with its reason and without an attempt; a negative delay means now."""
    runs = []

    def handler(payload: Any) -> None:
        runs.append(1)
        if len(runs) == 1:
            raise RuntimeError("wrapped") from error

    job = end_of(jobs, handler)
    if error.delay == "1m":
        assert (job.state, job.attempts, job.deferrals, job.last_error) == ("queued", 0, 1, "later")
    else:
        assert (job.state, job.deferrals) == ("succeeded", 1)


def test_a_deferral_that_makes_no_sense_is_a_failed_attempt(jobs: jobq.JobQueue, caplog: Any) -> None:
    """A delay that is no duration counts as an error of the handler and names the fault."""
    job = end_of(jobs, raising(jobq.Deferred(delay="soon")))

    assert (job.state, (job.last_error or "")[:13]) == ("failed", "ArgumentError")


def test_job_cancelled_unasked_is_a_failed_attempt(jobs: jobq.JobQueue, caplog: Any) -> None:
    """Raising JobCancelled with nothing asked does not end a job for good."""
    job = end_of(jobs, raising(jobq.JobCancelled("mine")))

    assert (job.state, job.attempts) == ("failed", 1)


def test_an_exhausted_budget_fails_as_timeout(jobs: jobq.JobQueue, clock: FakeClock, caplog: Any) -> None:
    """JobCancelled after the run budget is a failed attempt with reason and class."""

    def handler(payload: Any, job: jobq.RunningJob) -> None:
        assert job.cancel_token.wait("1h")
        job.cancel_token.raise_if_requested()

    job = end_of(jobs, handler, timeout="2s")

    assert (job.state, job.failure_reason, job.failure_class) == ("failed", "timeout", "transient")


def test_a_return_after_the_budget_succeeds(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The work is done: a budget that is over changes nothing about a normal return."""

    def handler(payload: Any, job: jobq.RunningJob) -> str:
        clock.advance("3s")
        return "done"

    assert end_of(jobs, handler, timeout="2s").result == "done"


@attrs.frozen
class Order:
    """A payload with a schema."""

    number: int


def test_b24_a_payload_that_does_not_fit_fails_at_once(jobs: jobq.JobQueue, caplog: Any) -> None:
    """The handler is not called, the attempt counts, and the error shows no content."""
    made = jobs.enqueue("order", {"number": "sesame"})
    called = []

    @jobs.job(name="order")
    def order(payload: Order) -> None:
        called.append(payload)

    jobq.Runner(jobs).drain()
    job = jobs.get(made.id)

    assert (job.state, job.attempts, job.failure_reason) == ("failed", 1, "bad_payload")
    assert job.failure_class == "unrecoverable"
    assert "sesame" not in (job.last_error or "")
    assert not called


@pytest.mark.parametrize(
    "result",
    [pytest.param({1, 2}, id="no-json"), pytest.param("x" * 2_000_000, id="too-large")],
)
def test_a_result_that_cannot_be_stored_fails_at_once(jobs: jobq.JobQueue, result: object, caplog: Any) -> None:
    """What is no JSON, or too large, is unrecoverable: another run would return it again."""
    job = end_of(jobs, lambda payload: result)

    assert (job.state, job.failure_reason, job.failure_class) == ("failed", "bad_result", "unrecoverable")


def test_a_base_exception_releases_the_job_and_goes_through(jobs: jobq.JobQueue) -> None:
    """In a drain Ctrl-C and a failing test reach the caller, and the job is queued, uncounted."""
    handler = jobs.job(name="subject")(raising(Odd()))
    made = handler.enqueue()

    with pytest.raises(Odd):
        jobq.Runner(jobs).drain()

    job = jobs.get(made.id)
    assert (job.state, job.attempts) == ("queued", 0)
    assert not jobs.live


def test_around_is_entered_around_each_run(jobs: jobq.JobQueue) -> None:
    """The host's context is there while the handler runs and closed afterwards."""
    steps = []

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        steps.append("enter")
        yield
        steps.append("exit")

    jobs.job(name="subject")(lambda payload: steps.append("run"))
    jobs.enqueue("subject")
    jobq.Runner(jobs, around=around).drain()

    assert steps == ["enter", "run", "exit"]


def test_around_that_swallows_does_not_make_a_success(jobs: jobq.JobQueue, caplog: Any) -> None:
    """A context that suppresses the exception of a handler does not hide that it failed."""
    jobs.job(name="subject", max_attempts=1)(raising(ValueError("x")))
    made = jobs.enqueue("subject")
    jobq.Runner(jobs, around=lambda: contextlib.suppress(ValueError)).drain()

    assert jobs.get(made.id).state == "failed"


def test_around_that_cannot_be_entered_is_a_failed_attempt(jobs: jobq.JobQueue) -> None:
    """The handler is not called; the job is tried again."""

    def around() -> contextlib.AbstractContextManager[None]:
        raise ConnectionError("no database")

    jobs.job(name="subject")(lambda payload: None)
    jobs.enqueue("subject")

    assert jobq.Runner(jobs, around=around).drain().retried == 1
