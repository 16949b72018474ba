"""The state machine, walked completely: each row of the contract's table, and every pair that the table leaves out."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.model.effects import Decision, Facts, Moment, Verdict, always
from jobq.model.job import FailureClass, JobState
from jobq.model.outcome import Cancelled, Expired, Failed, Outcome, Postponed, Released, Succeeded, Voided
from jobq.model.retry import RetryPolicy
from jobq.model.state_machine import TABLE, Trigger, decide, settle

NOW = datetime(2024, 1, 1, tzinfo=UTC)
LEASE_END = NOW + timedelta(seconds=60)
LATER = NOW + timedelta(hours=1)
POLICY = RetryPolicy(base=10, maximum=1000, jitter=0.5)
BOOM = Failed(error="ValueError: boom", reason="code", failure_class=FailureClass.TRANSIENT)
FATAL = Failed(error="ValueError: boom", reason="code", failure_class=FailureClass.UNRECOVERABLE, retryable=False)

OUTCOMES: dict[Trigger, Outcome] = {
    Trigger.SUCCESS: Succeeded("1"),
    Trigger.FAILURE: BOOM,
    Trigger.DEFERRAL: Postponed(until=LATER, reason="busy"),
    Trigger.RELEASE: Released(),
    Trigger.VOID: Voided(),
    Trigger.EXPIRY: Expired(),
    Trigger.CANCELLATION: Cancelled(),
}


def facts(state: JobState, **changes: Any) -> Facts:
    running = state is JobState.RUNNING
    plain = Facts(state, 1, 3, 2, None, False, LEASE_END if running else None, "old error")
    return plain._replace(**changes)


def run(outcome: Outcome, *, roll: float = 0.0, **changes: Any) -> Decision:
    decision = settle(facts(JobState.RUNNING, **changes), outcome, policy=POLICY, now=NOW, roll=roll)
    assert decision is not None
    return decision


def test_every_pair_that_the_table_does_not_name_leaves_the_row_as_it_is() -> None:
    """What no rule names is no transition."""
    named = {(rule.source, rule.trigger) for rule in TABLE}
    for state, trigger in product(JobState, Trigger):
        decision = decide(facts(state), trigger, Moment(NOW, OUTCOMES.get(trigger)))
        assert (decision is None) == ((state, trigger) not in named), (state, trigger)


def test_the_table_names_exactly_the_pairs_of_the_contract() -> None:
    """Queued rows can be claimed, cancelled, requeued; running ones cancelled or settled; dead ones requeued."""
    assert {(rule.source, rule.trigger) for rule in TABLE} == {
        *product([JobState.QUEUED], [Trigger.CLAIM, Trigger.CANCEL, Trigger.REQUEUE]),
        *product([JobState.RUNNING], [Trigger.CANCEL, *OUTCOMES]),
        *product([JobState.FAILED, JobState.CANCELLED], [Trigger.REQUEUE]),
    }


def test_every_rule_can_be_taken_and_leads_where_it_says() -> None:
    """No row of the table hides behind another, and its effect writes its target."""
    taken = set()
    for state, trigger, asked, attempts, left, kind in product(
        JobState, Trigger, [False, True], [1, 3], [None, 2], [BOOM, FATAL]
    ):
        row = facts(state, cancel_requested=asked, attempts=attempts, max_deferrals=left)
        moment = Moment(NOW, kind if trigger is Trigger.FAILURE else OUTCOMES.get(trigger), POLICY)
        rules = [r for r in TABLE if (r.source, r.trigger) == (state, trigger) and r.condition(row, moment)]
        if rules:
            decision = decide(row, trigger, moment)
            assert decision is not None
            assert decision.state is rules[0].target
            taken.add(rules[0])
    assert taken == set(TABLE)


@pytest.mark.parametrize("trigger", [trigger for trigger in OUTCOMES if trigger is not Trigger.SUCCESS])
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_cancel_that_was_asked_wins_over_everything_but_success(trigger: Trigger, attempts: int) -> None:
    """Every other end of the run makes the job cancelled, finished now, whatever attempts are left."""
    decision = run(OUTCOMES[trigger], cancel_requested=True, attempts=attempts, max_deferrals=0)
    assert (decision.verdict, decision.state) == (Verdict.CANCELLED, JobState.CANCELLED)
    assert decision.finished_at == NOW


@pytest.mark.parametrize("asked", [False, True])
def test_success_stores_its_result_and_clears_the_error_whether_or_not_a_cancel_was_asked(asked: bool) -> None:
    """The work is done, so it counts as done."""
    assert run(Succeeded('{"a": 1}'), cancel_requested=asked) == Decision(
        Verdict.SUCCEEDED, JobState.SUCCEEDED, 1, 2, result='{"a": 1}', finished_at=NOW
    )


def test_a_success_asks_nothing_of_the_row_but_that_it_runs() -> None:
    """The store writes successes without reading their rows before."""
    conditions = [rule.condition for rule in TABLE if rule[:2] == (JobState.RUNNING, Trigger.SUCCESS)]
    assert conditions == [always]


def test_claim_counts_the_attempt_and_keeps_the_last_error() -> None:
    """n + 1."""
    decision = decide(facts(JobState.QUEUED), Trigger.CLAIM, Moment(NOW))
    assert decision == Decision(Verdict.STARTED, JobState.RUNNING, 2, 2, last_error="old error")


@pytest.mark.parametrize(("attempts", "maximum"), [(3, 3), (7, 3), (0, 0)])
def test_claim_of_a_row_without_attempts_left_fails_it(attempts: int, maximum: int) -> None:
    """A row that was edited by hand ends with its own reason and without a run in the history."""
    decision = decide(facts(JobState.QUEUED, attempts=attempts, max_attempts=maximum), Trigger.CLAIM, Moment(NOW))
    assert decision is not None
    assert (decision.state, decision.reason) == (JobState.FAILED, "attempts_exhausted")
    assert (decision.attempts, decision.recorded, decision.finished_at) == (attempts, False, NOW)


def test_cancel_of_a_queued_job_finishes_it_now() -> None:
    """No run has taken place, so none is recorded."""
    decision = decide(facts(JobState.QUEUED), Trigger.CANCEL, Moment(NOW, reason="retired_kind"))
    assert decision is not None
    assert (decision.state, decision.finished_at) == (JobState.CANCELLED, NOW)
    assert (decision.reason, decision.recorded) == ("retired_kind", False)


def test_cancel_of_a_running_job_only_records_the_request() -> None:
    """The handler decides when it stops."""
    decision = decide(facts(JobState.RUNNING), Trigger.CANCEL, Moment(NOW))
    assert decision is not None
    assert (decision.verdict, decision.state, decision.attempts) == (Verdict.REQUESTED, JobState.RUNNING, 1)
    assert decision.finished_at is None


def test_a_retryable_failure_waits_the_delay_of_its_attempt_counted_from_now() -> None:
    """run_at = now + delay(n), error kept, the run recorded."""
    decision = run(BOOM, attempts=2)
    assert (decision.verdict, decision.state) == (Verdict.RETRIED, JobState.QUEUED)
    assert decision.run_at == NOW + timedelta(seconds=20)
    assert (decision.attempts, decision.last_error, decision.recorded) == (2, BOOM.error, True)


def test_jitter_only_shortens_the_delay() -> None:
    """The whole roll takes off the whole fraction."""
    assert run(BOOM, roll=1.0).run_at == NOW + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("outcome", "attempts"),
    [pytest.param(FATAL, 1, id="permanent"), pytest.param(BOOM, 3, id="last"), pytest.param(BOOM, 9, id="beyond")],
)
def test_a_permanent_or_last_failure_ends_the_job(outcome: Failed, attempts: int) -> None:
    """Error, reason and class are kept, finished now, the run recorded."""
    decision = run(outcome, attempts=attempts)
    assert (decision.verdict, decision.state, decision.finished_at) == (Verdict.FAILED, JobState.FAILED, NOW)
    assert (decision.last_error, decision.reason) == (outcome.error, "code")
    assert (decision.failure_class, decision.recorded) == (outcome.failure_class, True)


def test_a_deferral_gives_the_attempt_back() -> None:
    """n - 1, deferrals + 1, run_at as named, the reason as last error, nothing in the history."""
    decision = run(OUTCOMES[Trigger.DEFERRAL])
    assert decision == Decision(Verdict.DEFERRED, JobState.QUEUED, 0, 3, LATER, "busy")


def test_a_deferral_without_a_reason_keeps_the_last_error() -> None:
    """There is nothing to put in its place."""
    assert run(Postponed(until=LATER)).last_error == "old error"


@pytest.mark.parametrize(("maximum", "state"), [(3, JobState.QUEUED), (2, JobState.FAILED), (0, JobState.FAILED)])
def test_deferrals_are_allowed_up_to_their_maximum(maximum: int, state: JobState) -> None:
    """The third deferral is within a maximum of three, and one too many for two."""
    decision = run(OUTCOMES[Trigger.DEFERRAL], max_deferrals=maximum)
    assert decision.state is state
    assert decision.reason == (None if state is JobState.QUEUED else "deferrals_exhausted")


def test_a_release_gives_the_attempt_back_and_leaves_the_due_time() -> None:
    """n - 1, run_at unchanged, last error unchanged."""
    assert run(Released()) == Decision(Verdict.RELEASED, JobState.QUEUED, 0, 2, None, "old error")


def test_a_voided_run_waits_until_its_lease_would_have_ended() -> None:
    """n - 1; until then its thread may still be at work."""
    assert run(Voided()) == Decision(Verdict.RELEASED, JobState.QUEUED, 0, 2, LEASE_END, "old error")


@pytest.mark.parametrize("outcome", [Released(), Voided(), Postponed(until=LATER)])
def test_an_uncounted_run_never_makes_attempts_negative(outcome: Outcome) -> None:
    """A row that was edited by hand to run with attempts 0 stays at 0."""
    assert run(outcome, attempts=0).attempts == 0


def test_an_expired_lease_counts_and_the_job_is_due_now() -> None:
    """Its death may be the job's own doing."""
    decision = run(Expired())
    assert (decision.state, decision.attempts, decision.run_at) == (JobState.QUEUED, 1, NOW)
    assert (decision.last_error, decision.recorded) == ("lease expired", True)


def test_an_expired_lease_of_the_last_attempt_fails_the_job() -> None:
    """Reason lease_expired, without a class."""
    decision = run(Expired(), attempts=3)
    assert (decision.state, decision.reason, decision.failure_class) == (JobState.FAILED, "lease_expired", None)
    assert (decision.last_error, decision.finished_at) == ("lease expired", NOW)


@pytest.mark.parametrize(("attempts", "state"), [(1, JobState.QUEUED), (3, JobState.FAILED)])
def test_job_cancelled_with_nothing_asked_is_a_failed_attempt(attempts: int, state: JobState) -> None:
    """It says so in the error, and is retried like any failure."""
    decision = run(Cancelled(), attempts=attempts)
    assert (decision.state, decision.recorded) == (state, True)
    assert decision.last_error is not None
    assert decision.last_error.startswith("JobCancelled")


@pytest.mark.parametrize("outcome", [BOOM, Cancelled(), Expired()], ids=["failed", "cancelled", "expired"])
def test_a_counted_run_that_ends_cancelled_is_recorded(outcome: Outcome) -> None:
    """Each counted run that did not succeed is in the history."""
    assert run(outcome, cancel_requested=True).recorded


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.FAILED, JobState.CANCELLED])
def test_requeue_starts_over(state: JobState) -> None:
    """n = 0, deferrals 0, due now, error and result cleared."""
    decision = decide(facts(state), Trigger.REQUEUE, Moment(NOW))
    assert decision == Decision(Verdict.REQUEUED, JobState.QUEUED, 0, 0, NOW)


@given(
    attempts=st.integers(1, 10**9),
    base=st.floats(0, 3e11),
    maximum=st.floats(0, 3e11),
    jitter=st.floats(0, 1),
    roll=st.floats(0, 1),
)
def test_b21_a_retry_is_always_due_between_now_and_the_maximum(
    attempts: int, base: float, maximum: float, jitter: float, roll: float
) -> None:
    """No policy that can be made overflows, for any attempt; beyond the year 9999 it is due in the last instant."""
    policy = RetryPolicy(base=base, maximum=maximum, jitter=jitter)
    row = facts(JobState.RUNNING, attempts=attempts, max_attempts=10**9 + 1)
    decision = settle(row, BOOM, policy=policy, now=NOW, roll=roll)
    assert decision is not None
    assert decision.run_at is not None
    assert decision.run_at >= NOW
    assert (decision.run_at - NOW).total_seconds() <= maximum + 1e-6


@given(st.lists(st.sampled_from([*Trigger]), max_size=30), st.integers(1, 4), st.sampled_from([None, 0, 1]))
def test_a_random_walk_keeps_the_invariants(triggers: list[Trigger], most: int, deferrals: int | None) -> None:
    """Attempts stay within 0 and max, and exactly the terminal states are finished."""
    row = Facts(JobState.QUEUED, 0, most, 0, deferrals, False, None, None)
    for trigger in triggers:
        decision = decide(row, trigger, Moment(NOW, OUTCOMES.get(trigger), POLICY))
        if decision is None:
            continue
        asked = decision.verdict is Verdict.REQUESTED or (row.cancel_requested and decision.state is row.state)
        assert 0 <= decision.attempts <= most
        assert decision.state.terminal == (decision.finished_at is not None)
        assert deferrals is None or decision.deferrals <= deferrals
        row = row._replace(
            state=decision.state,
            attempts=decision.attempts,
            deferrals=decision.deferrals,
            cancel_requested=asked,
            lease_until=LEASE_END if decision.state is JobState.RUNNING else None,
        )
