"""Each row of the transition table, through a store: what the row holds afterwards."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
import pytest

from jobq.model.effects import Verdict
from jobq.model.instant import EPOCH
from jobq.model.job import FailureClass, JobState
from jobq.model.lease import Claim, Settlement
from jobq.model.outcome import Cancelled, Expired, Failed, Outcome, Postponed, Released, Succeeded, Voided
from tests.store.bench import LEASE, POLICY, Stores, Workbench

BOOM = Failed(error="ValueError: boom", reason="code", failure_class=FailureClass.TRANSIENT)
FATAL = attrs.evolve(BOOM, failure_class=FailureClass.UNRECOVERABLE, retryable=False)
NO_LEASE = {
    "worker": None,
    "token": None,
    "lease_until": None,
    "lease_length": None,
    "cancel_requested_at": None,
}


def has(job: Any, **fields: Any) -> None:
    assert {name: getattr(job, name) for name in fields} == fields


def test_enqueue_makes_a_queued_row_with_no_attempts(bench: Workbench) -> None:
    """n = 0, due now."""
    job = bench.get(bench.enqueue())
    has(job, state=JobState.QUEUED, attempts=0, deferrals=0, run_at=bench.now, created_at=bench.now)
    has(job, started_at=None, finished_at=None, last_error=None, **NO_LEASE)


def test_claim_starts_the_run_under_a_lease(bench: Workbench) -> None:
    """n + 1, a new token, lease until now + lease length."""
    claim = bench.start()
    job = bench.get(claim.id)
    has(job, state=JobState.RUNNING, attempts=1, worker="w", token=claim.token, lease_until=bench.after(LEASE))
    has(job, lease_length=LEASE, started_at=bench.now, finished_at=None)
    assert (claim.attempts, claim.worker) == (1, "w")


def test_every_claim_mints_another_token(bench: Workbench) -> None:
    """A token is used once, also for the same job."""
    first = bench.start()
    bench.settle(first, Released())
    (second,) = bench.claim()
    assert second.id == first.id
    assert second.token != first.token


def test_cancel_of_a_queued_job_finishes_it(bench: Workbench) -> None:
    """It never starts."""
    job_id = bench.enqueue()
    assert bench.cancel(job_id) is Verdict.CANCELLED
    has(bench.get(job_id), state=JobState.CANCELLED, finished_at=bench.now, attempts=0)
    assert bench.claim() == []


@pytest.mark.parametrize("asked", [False, True])
def test_success_stores_the_result(bench: Workbench, asked: bool) -> None:
    """Also when a cancel was asked: the work is done."""
    claim = bench.start()
    if asked:
        assert bench.cancel(claim.id) is Verdict.REQUESTED
    bench.clock.advance(5)
    assert bench.settle(claim, Succeeded('{"n": 1}')) is Verdict.SUCCEEDED
    has(bench.get(claim.id), state=JobState.SUCCEEDED, result={"n": 1}, finished_at=bench.now, attempts=1)


def test_success_clears_the_last_error_and_the_history_keeps_it(bench: Workbench) -> None:
    """The row tells how it stands, the history what happened."""
    first = bench.start()
    bench.settle(first, BOOM)
    bench.clock.advance(10)
    (second,) = bench.claim()
    assert second.last_error == BOOM.error
    bench.settle(second, Succeeded())
    has(bench.get(first.id), last_error=None, failure_reason=None, failure_class=None)
    assert [run.error for run in bench.store.history(first.id)] == [BOOM.error]


@pytest.mark.parametrize(
    "outcome",
    [BOOM, FATAL, Postponed(until=EPOCH), Released(), Voided(), Cancelled()],
    ids=["failed", "permanent", "deferred", "released", "voided", "cancelled"],
)
def test_a_cancel_that_was_asked_wins_over_every_end_but_success(bench: Workbench, outcome: Outcome) -> None:
    """The job is cancelled, finished now, and never runs again."""
    if isinstance(outcome, Postponed):
        outcome = Postponed(until=bench.after(60), reason="busy")
    claim = bench.start()
    bench.cancel(claim.id)
    assert bench.settle(claim, outcome) is Verdict.CANCELLED
    job = bench.get(claim.id)
    has(job, state=JobState.CANCELLED, finished_at=bench.now, **NO_LEASE)
    assert job.last_error == (outcome.error if isinstance(outcome, Failed) else job.last_error)


def test_an_expired_lease_with_a_cancel_asked_ends_cancelled(bench: Workbench) -> None:
    """Reclaiming is one more way out of running."""
    claim = bench.start()
    bench.cancel(claim.id)
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) == 1
    has(bench.get(claim.id), state=JobState.CANCELLED, finished_at=bench.now, last_error="lease expired", **NO_LEASE)


def test_a_retryable_failure_waits_for_its_delay(bench: Workbench) -> None:
    """run_at = now + delay(n) counted from now, error kept."""
    claim = bench.start()
    bench.clock.advance(30)
    assert bench.settle(claim, BOOM) is Verdict.RETRIED
    job = bench.get(claim.id)
    has(job, state=JobState.QUEUED, attempts=1, run_at=bench.after(10), last_error=BOOM.error, finished_at=None)


@pytest.mark.parametrize("options", [{"max_attempts": 1}, {"max_attempts": 9, "outcome": FATAL}], ids=["last", "fatal"])
def test_a_permanent_or_last_failure_fails_the_job(bench: Workbench, options: dict[str, Any]) -> None:
    """Error, reason and class kept; finished now."""
    outcome = options.pop("outcome", BOOM)
    claim = bench.start(**options)
    assert bench.settle(claim, outcome) is Verdict.FAILED
    job = bench.get(claim.id)
    has(job, state=JobState.FAILED, attempts=1, finished_at=bench.now, last_error=outcome.error)
    has(job, failure_reason="code", failure_class=outcome.failure_class)


def test_each_settlement_of_a_batch_rolls_its_own_jitter(stores: Stores, bench: Workbench) -> None:
    """Jobs that failed together are not due together again."""
    stores.dice = iter((0.0, 0.5)).__next__
    claims = [bench.start(), bench.start()]
    policy = attrs.evolve(POLICY, jitter=0.5)
    outcome = Failed(error="E: e")
    bench.store.settle([Settlement(claim.id, claim.token, outcome, policy) for claim in claims], durable=False)
    assert [bench.get(claim.id).run_at for claim in claims] == [bench.after(10), bench.after(7.5)]


def test_a_deferral_is_not_counted(bench: Workbench) -> None:
    """n - 1, deferrals + 1, run_at as named, the reason as last error, nothing in the history."""
    claim, until = bench.start(), bench.after(3600)
    assert bench.settle(claim, Postponed(until=until, reason="smtp down")) is Verdict.DEFERRED
    has(bench.get(claim.id), state=JobState.QUEUED, attempts=0, deferrals=1, run_at=until, last_error="smtp down")
    assert bench.store.history(claim.id) == []


def test_one_deferral_too_many_fails_the_job(bench: Workbench) -> None:
    """Reason deferrals_exhausted."""
    claim = bench.start(max_deferrals=1)
    assert bench.settle(claim, Postponed(until=bench.now)) is Verdict.DEFERRED
    (claim,) = bench.claim()
    assert bench.settle(claim, Postponed(until=bench.now, reason="still down")) is Verdict.FAILED
    has(bench.get(claim.id), state=JobState.FAILED, failure_reason="deferrals_exhausted", last_error="still down")
    assert [run.reason for run in bench.store.history(claim.id)] == ["deferrals_exhausted"]


def test_a_release_is_not_counted_and_leaves_the_due_time(bench: Workbench) -> None:
    """n - 1, run_at unchanged."""
    due = bench.now
    claim = bench.start()
    bench.clock.advance(7)
    assert bench.settle(claim, Released()) is Verdict.RELEASED
    has(bench.get(claim.id), state=JobState.QUEUED, attempts=0, run_at=due)


def test_a_voided_run_is_due_when_its_lease_would_have_ended(bench: Workbench) -> None:
    """n - 1; until then its thread may still be at work."""
    claim = bench.start()
    end = bench.after(LEASE)
    bench.clock.advance(7)
    assert bench.settle(claim, Voided()) is Verdict.RELEASED
    has(bench.get(claim.id), state=JobState.QUEUED, attempts=0, run_at=end)
    assert bench.claim() == []


def test_an_expired_lease_makes_the_job_due_now(bench: Workbench) -> None:
    """The run counts, the error says why."""
    claim = bench.start()
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) == 1
    has(bench.get(claim.id), state=JobState.QUEUED, attempts=1, run_at=bench.now, last_error="lease expired")


def test_an_expired_lease_of_the_last_attempt_fails_the_job(bench: Workbench) -> None:
    """Reason lease_expired, class null."""
    claim = bench.start(max_attempts=1)
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) == 1
    job = bench.get(claim.id)
    has(job, state=JobState.FAILED, failure_reason="lease_expired", failure_class=None, finished_at=bench.now)
    has(job, last_error="lease expired")


def _expire(bench: Workbench, claim: Claim) -> None:
    bench.clock.advance(LEASE)
    bench.store.reclaim(hold_expired=False)


WAYS_OUT: dict[str, Callable[[Workbench, Claim], object]] = {
    "succeeded": lambda bench, claim: bench.settle(claim, Succeeded()),
    "retried": lambda bench, claim: bench.settle(claim, BOOM),
    "failed": lambda bench, claim: bench.settle(claim, FATAL),
    "deferred": lambda bench, claim: bench.settle(claim, Postponed(until=bench.now)),
    "released": lambda bench, claim: bench.settle(claim, Released()),
    "voided": lambda bench, claim: bench.settle(claim, Voided()),
    "cancelled": lambda bench, claim: bench.settle(claim, Cancelled()),
    "expired": _expire,
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("asked", [False, True])
def test_every_way_out_of_running_clears_the_lease(bench: Workbench, way: str, asked: bool) -> None:
    """Token, worker, lease and cancel request are gone, and the old token is worth nothing."""
    claim = bench.start()
    if asked:
        bench.cancel(claim.id)
    WAYS_OUT[way](bench, claim)
    has(bench.get(claim.id), **NO_LEASE)
    assert bench.store.cancel_requests() == []
    assert bench.settle(claim, Succeeded('"late"')) is Verdict.SUPERSEDED


ENDS: dict[JobState, Callable[[Workbench], int]] = {
    JobState.SUCCEEDED: lambda bench: _end(bench, Succeeded("1")),
    JobState.FAILED: lambda bench: _end(bench, FATAL),
    JobState.CANCELLED: lambda bench: _end(bench, Cancelled()),
}


def _end(bench: Workbench, outcome: Outcome) -> int:
    claim = bench.start()
    if isinstance(outcome, Cancelled):
        bench.cancel(claim.id)
    bench.settle(claim, outcome)
    return claim.id


@pytest.mark.parametrize("state", ENDS)
def test_nothing_but_a_requeue_changes_a_terminal_job(bench: Workbench, state: JobState) -> None:
    """Claims, cancels, reclaims, reschedules and settles leave the whole row as it is."""
    job_id = ENDS[state](bench)
    before = bench.get(job_id)
    assert before.state is state
    bench.clock.advance(10 * LEASE)
    assert bench.claim() == []
    assert bench.cancel(job_id) is None
    assert bench.store.reclaim(hold_expired=False) == 0
    assert bench.store.reschedule(job_id, run_at=bench.now, delay=None, priority=7) is False
    assert bench.store.extend([(job_id, "")], durable=False) == []
    assert bench.store.move_due_times(since=bench.now, stepped_back=1e6) == 0
    assert bench.get(job_id) == before


def test_a_settle_of_a_queued_job_is_superseded(bench: Workbench) -> None:
    """Only a running row has a token."""
    claim = bench.start()
    bench.settle(claim, Released())
    before = bench.get(claim.id)
    for outcome in (Succeeded(), BOOM, Released(), Voided(), Cancelled(), Expired()):
        assert bench.settle(claim, outcome) is Verdict.SUPERSEDED
    assert bench.get(claim.id) == before


def test_a_row_without_attempts_left_fails_alone(bench: Workbench) -> None:
    """A claim meets it, ends it with its reason, and takes the next one all the same."""
    hopeless, fine = bench.enqueue(max_attempts=0), bench.enqueue()
    assert [claim.id for claim in bench.claim()] == [fine]
    job = bench.get(hopeless)
    has(job, state=JobState.FAILED, failure_reason="attempts_exhausted", attempts=0, finished_at=bench.now)


def test_a_second_cancel_of_a_running_job_keeps_the_first_request(bench: Workbench) -> None:
    """The request is recorded once."""
    claim = bench.start()
    asked_at = bench.now
    bench.cancel(claim.id)
    bench.clock.advance(1)
    assert bench.cancel(claim.id) is Verdict.REQUESTED
    assert bench.get(claim.id).cancel_requested_at == asked_at
    assert bench.store.cancel_requests() == [(claim.id, claim.token)]


def test_cancel_answers_for_each_id_and_leaves_unknown_ones_out(bench: Workbench) -> None:
    """One call, one transaction, every state at once."""
    ended, running, queued = _end(bench, Succeeded()), bench.start().id, bench.enqueue()
    assert bench.store.cancel([queued, running, ended, 999]) == {
        queued: Verdict.CANCELLED,
        running: Verdict.REQUESTED,
        ended: None,
    }


def test_times_keep_milliseconds(bench: Workbench) -> None:
    """What is finer is dropped, and never rounded up into the future."""
    due = bench.now + timedelta(microseconds=1_999)
    job_id = bench.enqueue(run_at=due)
    assert bench.get(job_id).run_at == bench.now + timedelta(milliseconds=1)
