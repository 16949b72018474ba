"""Leases for outside workers, and the five verbs that take one."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from jobq import (
    ArgumentError,
    Config,
    Deferred,
    FailureClass,
    Handlers,
    JobQueue,
    JobState,
    Lease,
    LeaseLost,
    PermanentJobError,
    ResultError,
    RetryPolicy,
    TransientJobError,
    Verdict,
)
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]


@attrs.frozen
class Receipt:
    """A result."""

    message_id: str


def take(jobs: JobQueue, **options: Any) -> Lease:
    """Enqueue a job and lease it."""
    made = jobs.enqueue("review", {"n": 1}, **options)
    (lease,) = jobs.lease(worker="agent-7")
    assert lease.id == made.id
    return lease


def test_complete_ends_the_job_with_its_result(jobs: JobQueue, clock: FakeClock) -> None:
    """Any JSON value, or none."""
    lease = take(jobs)
    clock.advance("10s")

    assert jobs.complete(lease, {"ok": True}) is Verdict.SUCCEEDED
    job = jobs.get(lease.id)
    assert (job.state, job.result, job.finished_at) == (JobState.SUCCEEDED, {"ok": True}, clock.now())
    lease = take(jobs)
    jobs.complete(lease)
    assert jobs.get(lease.id).result is None


@pytest.mark.parametrize(
    "result",
    [
        pytest.param({"x": {1}}, id="no JSON"),
        pytest.param("x" * 101, id="too large"),
    ],
)
def test_complete_with_a_bad_result_writes_nothing(open_again: Again, result: Any) -> None:
    """The lease goes on, and can still be completed."""
    jobs = open_again(config=Config(result_max_bytes=100))
    lease = take(jobs)

    with pytest.raises(ResultError):
        jobs.complete(lease, result)

    assert jobs.get(lease.id) == lease.job
    assert jobs.complete(lease, "fine") is Verdict.SUCCEEDED


def test_complete_checks_the_result_against_the_kind(jobs: JobQueue) -> None:
    """Where its handler is registered here; typed values are taken too."""
    jobs.job(name="review", result=Receipt)(lambda payload: None)
    lease = take(jobs)

    for bad in ({"message_id": 7}, {}, None):
        with pytest.raises(ResultError):
            jobs.complete(lease, bad)
    assert jobs.get(lease.id) == lease.job
    jobs.complete(lease, Receipt("7"))
    assert jobs.get(lease.id).result == {"message_id": "7"}


def test_fail_retries_while_attempts_are_left(jobs: JobQueue, clock: FakeClock) -> None:
    """The text and the code are kept; the delay is the configuration's, without jitter under a fake clock."""
    lease = take(jobs, max_attempts=2)

    assert jobs.fail(lease, "smtp down", code="smtp") is Verdict.RETRIED
    job = jobs.get(lease.id)
    assert (job.state, job.last_error, job.run_at) == ("queued", "smtp down", clock.now() + timedelta(seconds=5))
    clock.advance("5s")
    (lease,) = jobs.lease(worker="w")
    assert jobs.fail(lease, "smtp down", code="smtp") is Verdict.FAILED
    assert jobs.get(lease.id).failure_reason == "smtp"


@pytest.mark.parametrize(
    ("error", "options", "reason", "failure_class"),
    [
        pytest.param("no mailbox", {"permanent": True, "code": "bounced"}, "bounced", "unrecoverable", id="said so"),
        pytest.param(PermanentJobError("no", code="bounced"), {}, "bounced", "unrecoverable", id="permanent error"),
        pytest.param(PermanentJobError("no", code="a"), {"code": "b"}, "b", "unrecoverable", id="the keyword wins"),
    ],
)
def test_fail_for_good(
    jobs: JobQueue, error: str | BaseException, options: dict[str, Any], reason: str, failure_class: str
) -> None:
    """A permanent failure is not tried again, whatever attempts are left."""
    lease = take(jobs)

    assert jobs.fail(lease, error, **options) is Verdict.FAILED
    job = jobs.get(lease.id)
    assert (job.failure_reason, job.failure_class) == (reason, failure_class)


def test_fail_with_a_transient_error_keeps_class_and_code(jobs: JobQueue) -> None:
    """On the last attempt they show on the row."""
    lease = take(jobs, max_attempts=1)

    jobs.fail(lease, TransientJobError("later", code="busy"))

    job = jobs.get(lease.id)
    assert (job.failure_reason, job.failure_class) == ("busy", FailureClass.TRANSIENT)
    assert job.last_error == "TransientJobError: later"


def test_fail_with_an_exception_means_what_it_means_in_a_handler(jobs: JobQueue) -> None:
    """The typed error is found among the causes, a timeout is transient, and Deferred defers."""
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = PermanentJobError("no such mailbox", code="bounced")

    lost, late, later = take(jobs), take(jobs, max_attempts=1), take(jobs)

    assert jobs.fail(lost, wrapped) is Verdict.FAILED
    assert jobs.get(lost.id).failure_reason == "bounced"
    assert jobs.fail(late, TimeoutError("slow")) is Verdict.FAILED
    assert jobs.get(late.id).failure_class is FailureClass.TRANSIENT
    assert jobs.fail(later, Deferred("full", delay="1m")) is Verdict.DEFERRED


def test_b26_fail_and_defer_redact_first_and_cut_afterwards(jobs: JobQueue) -> None:
    """A secret that straddles character 500 leaves no piece behind."""
    text = "x" * 490 + " password=hunter2hunter2 " + "y" * 600

    lease = take(jobs)
    jobs.defer(lease, delay=0, reason=text)
    deferred = str(jobs.get(lease.id).last_error)
    (lease,) = jobs.lease(worker="w")
    jobs.fail(lease, ValueError(text))
    failed = str(jobs.get(lease.id).last_error)

    for stored in (deferred, failed, str(jobs.history(lease.id)[0].error)):
        assert len(stored) <= 500
        assert "hunter" not in stored


def test_b26_hosts_redactor_is_applied_and_its_failure_stores_a_constant(open_again: Again) -> None:
    """A redactor that raises must not let the text through."""

    def broken(text: str) -> str:
        raise RuntimeError(text)

    jobs = open_again(redact=lambda text: text.replace("ada", "***"))
    lease = take(jobs, max_attempts=1)
    jobs.fail(lease, "no mail for ada")
    assert jobs.get(lease.id).last_error == "no mail for ***"

    jobs = open_again(redact=broken)
    lease = take(jobs, max_attempts=1)
    jobs.fail(lease, "no mail for ada")
    assert "ada" not in str(jobs.get(lease.id).last_error)


@pytest.mark.parametrize("by", ["delay", "until"])
def test_defer_gives_the_job_back_uncounted(jobs: JobQueue, clock: FakeClock, by: str) -> None:
    """Due when it was said, with the reason as last error."""
    lease, due = take(jobs), clock.now() + timedelta(hours=1)

    named: dict[str, Any] = {"delay": "1h"} if by == "delay" else {"until": due}
    assert jobs.defer(lease, reason="waiting for ada", **named) is Verdict.DEFERRED

    job = jobs.get(lease.id)
    assert (job.state, job.attempts, job.deferrals) == (JobState.QUEUED, 0, 1)
    assert (job.run_at, job.last_error) == (due, "waiting for ada")


def test_release_gives_the_job_back_to_be_claimed_at_once(jobs: JobQueue) -> None:
    """Uncounted, with nothing else changed."""
    lease = take(jobs)

    assert jobs.release(lease) is Verdict.RELEASED

    (again,) = jobs.lease(worker="w")
    assert (again.id, again.job.attempts) == (lease.id, 1)
    assert again.token != lease.token


def test_extend_renews_from_now_for_its_own_length_or_another(jobs: JobQueue, clock: FakeClock) -> None:
    """The answer is a new lease value under the same token."""
    lease = take(jobs)
    clock.advance("30s")

    renewed = jobs.extend(lease)
    longer = jobs.extend(renewed, "5m")

    assert (renewed.until, renewed.length, renewed.token) == (clock.now() + timedelta(seconds=60), 60.0, lease.token)
    assert (longer.until, longer.length) == (clock.now() + timedelta(minutes=5), 300.0)
    assert jobs.get(lease.id).lease_until == longer.until
    assert jobs.complete(longer) is Verdict.SUCCEEDED


def test_extend_keeps_the_new_length_for_the_next_time(jobs: JobQueue, clock: FakeClock) -> None:
    """What the lease value says is what the row does."""
    longer = jobs.extend(take(jobs), "5m")
    clock.advance("1m")

    again = jobs.extend(longer)

    assert (again.length, again.until) == (300.0, clock.now() + timedelta(minutes=5))


def test_extend_says_whether_a_cancel_was_asked(jobs: JobQueue) -> None:
    """The worker may stop, or finish: a completed job has succeeded."""
    lease = take(jobs)
    jobs.cancel(lease.id)

    lease = jobs.extend(lease)

    assert lease.cancel_requested
    assert jobs.complete(lease) is Verdict.SUCCEEDED


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda jobs, lease: jobs.fail(lease, "no"), id="fail"),
        pytest.param(lambda jobs, lease: jobs.defer(lease, delay=5), id="defer"),
        pytest.param(lambda jobs, lease: jobs.release(lease), id="release"),
    ],
)
def test_cancel_that_was_asked_wins_over_everything_but_success(
    jobs: JobQueue, end: Callable[[JobQueue, Lease], Verdict]
) -> None:
    """However the worker gives the job back."""
    lease = take(jobs)
    jobs.cancel(lease.id)

    assert end(jobs, lease) is Verdict.CANCELLED
    assert jobs.get(lease.id).state == JobState.CANCELLED


VERBS = [
    pytest.param(lambda jobs, lease: jobs.extend(lease), id="extend"),
    pytest.param(lambda jobs, lease: jobs.complete(lease, 1), id="complete"),
    pytest.param(lambda jobs, lease: jobs.fail(lease, "no"), id="fail"),
    pytest.param(lambda jobs, lease: jobs.defer(lease, delay=5), id="defer"),
    pytest.param(lambda jobs, lease: jobs.release(lease), id="release"),
]


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_on_a_lease_that_was_taken_over_raise_and_write_nothing(
    jobs: JobQueue, open_again: Again, clock: FakeClock, verb: Callable[[JobQueue, Lease], object]
) -> None:
    """The token decides: the second worker's run goes on untouched."""
    lost = take(jobs)
    clock.advance("61s")
    (held,) = open_again().lease(worker="agent-7")

    with pytest.raises(LeaseLost) as raised:
        verb(jobs, lost)

    assert raised.value.job_id == lost.id
    assert jobs.get(lost.id) == held.job
    assert jobs.complete(held, "second") is Verdict.SUCCEEDED


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_on_a_lease_that_has_ended_raise(
    jobs: JobQueue, verb: Callable[[JobQueue, Lease], object]
) -> None:
    """A job ends once."""
    lease = take(jobs)
    jobs.complete(lease, "first")

    with pytest.raises(LeaseLost):
        verb(jobs, lease)
    assert jobs.get(lease.id).result == "first"


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_on_a_lease_that_lapsed_untaken_are_good(
    jobs: JobQueue, clock: FakeClock, verb: Callable[[JobQueue, Lease], object]
) -> None:
    """The token is the fence, not the clock."""
    lease = take(jobs)
    clock.advance("1h")

    verb(jobs, lease)


def test_retry_delay_is_the_handlers_else_the_rows_else_the_configurations(
    jobs: JobQueue, open_again: Again, clock: FakeClock
) -> None:
    """Whoever fails the job: a worker without the handler uses the policy that was registered."""
    handlers = Handlers()
    handlers.job(name="review", retry=RetryPolicy(base=7))(lambda payload: None)
    configured = open_again(config=Config(backoff_base=3))
    unregistered = configured.policy("review")
    open_again(handlers=handlers).register()

    jobs.fail(take(jobs), "no")

    assert unregistered.base == 3
    assert configured.policy("review").base == 7
    (job,) = jobs.find()
    assert job.run_at == clock.now() + timedelta(seconds=7)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda jobs, lease: jobs.lease(worker=""), id="worker without a name"),
        pytest.param(lambda jobs, lease: jobs.lease(limit=0), id="limit 0"),
        pytest.param(lambda jobs, lease: jobs.lease(limit=True), id="limit a bool"),
        pytest.param(lambda jobs, lease: jobs.lease(length=0.01), id="too short"),
        pytest.param(lambda jobs, lease: jobs.lease(length=float("nan")), id="NaN"),
        pytest.param(lambda jobs, lease: jobs.lease(kinds=5), id="kinds a number"),
        pytest.param(lambda jobs, lease: jobs.extend(lease, 0), id="extend by nothing"),
        pytest.param(lambda jobs, lease: jobs.defer(lease), id="defer without a time"),
        pytest.param(lambda jobs, lease: jobs.defer(lease, delay=1, until=datetime.now(UTC)), id="defer twice"),
        pytest.param(lambda jobs, lease: jobs.defer(lease, delay=True), id="defer by a bool"),
        pytest.param(lambda jobs, lease: jobs.defer(lease, delay=1, reason=5), id="reason a number"),
        pytest.param(lambda jobs, lease: jobs.defer(lease, until=datetime(2024, 1, 1)), id="naive"),  # noqa: DTZ001
        pytest.param(lambda jobs, lease: jobs.fail(lease, None), id="no error"),
        pytest.param(lambda jobs, lease: jobs.fail(lease, "no", code=""), id="empty code"),
    ],
)
def test_lease_verbs_refuse_bad_arguments(jobs: JobQueue, call: Callable[[JobQueue, Lease], object]) -> None:
    """And the lease goes on."""
    lease = take(jobs)

    with pytest.raises(ArgumentError):
        call(jobs, lease)
    assert jobs.get(lease.id) == lease.job
