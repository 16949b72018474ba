"""The conditions and effects of the state machine's rules: what exactly a transition writes.

Pure functions of the row's facts and of the moment; :mod:`jobq.model.state_machine` says which of them applies when.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from jobq.model.instant import MAX
from jobq.model.job import FailureClass, JobState
from jobq.model.outcome import Cancelled, Expired, Failed, Outcome, Postponed, Succeeded
from jobq.model.retry import RetryPolicy

LEASE_EXPIRED = "lease expired"
NOT_ASKED = "JobCancelled: raised although no cancel was asked"


class Verdict(StrEnum):
    """What became of a job, in the words of counters and logs."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    DEFERRED = "deferred"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RELEASED = "released"
    REQUEUED = "requeued"
    #: A cancel of a running job is recorded; its handler is asked to stop.
    REQUESTED = "requested"
    #: The token was old: nothing was written.
    SUPERSEDED = "superseded"


class Facts(NamedTuple):
    """What a decision needs to know of a row."""

    state: JobState
    attempts: int
    max_attempts: int
    deferrals: int
    max_deferrals: int | None
    cancel_requested: bool
    lease_until: datetime | None
    last_error: str | None


class Decision(NamedTuple):
    """The new column values. Every way out of running also clears token, worker, lease and cancel request."""

    verdict: Verdict
    state: JobState
    attempts: int
    deferrals: int
    #: None leaves it as it is.
    run_at: datetime | None = None
    last_error: str | None = None
    #: Kept on the row of a terminal job, and in the run history.
    reason: str | None = None
    failure_class: FailureClass | None = None
    result: str | None = None
    finished_at: datetime | None = None
    #: Whether the run leaves a row in the run history.
    recorded: bool = False


class Moment(NamedTuple):
    """What a decision needs besides the row: the outcome, the retry policy, the time and the dice."""

    now: datetime
    outcome: Outcome | None = None
    policy: RetryPolicy = RetryPolicy()
    roll: float = 0.0
    #: Why a queued job is cancelled, as a code.
    reason: str | None = None


Condition = Callable[[Facts, Moment], bool]
Effect = Callable[[Facts, Moment], Decision]


def always(facts: Facts, moment: Moment) -> bool:
    """Hold in any case."""
    return True


def cancel_asked(facts: Facts, moment: Moment) -> bool:
    """Hold when somebody asked to cancel the running job."""
    return facts.cancel_requested


def attempts_left(facts: Facts, moment: Moment) -> bool:
    """Hold while n < max."""
    return facts.attempts < facts.max_attempts


def may_retry(facts: Facts, moment: Moment) -> bool:
    """Hold for a retryable failure while n < max."""
    outcome = moment.outcome
    return facts.attempts < facts.max_attempts and not (isinstance(outcome, Failed) and not outcome.retryable)


def deferrals_left(facts: Facts, moment: Moment) -> bool:
    """Hold while one more deferral is within ``max_deferrals``."""
    return facts.max_deferrals is None or facts.deferrals < facts.max_deferrals


def start(facts: Facts, moment: Moment) -> Decision:
    """n + 1; the store mints the token and the lease."""
    return Decision(Verdict.STARTED, JobState.RUNNING, facts.attempts + 1, facts.deferrals, last_error=facts.last_error)


def exhaust(facts: Facts, moment: Moment) -> Decision:
    """A row with no attempts left, edited by hand say: it fails and harms nothing else."""
    error = facts.last_error or "no attempts left"
    return _ended(Verdict.FAILED, JobState.FAILED, facts, moment, error, reason="attempts_exhausted")


def finish_cancelled(facts: Facts, moment: Moment) -> Decision:
    """Finished now; the error of the run is kept."""
    counted = isinstance(moment.outcome, Failed | Cancelled | Expired)
    error, (reason, failure_class) = _error(facts, moment), _why(moment)
    return _ended(Verdict.CANCELLED, JobState.CANCELLED, facts, moment, error, reason, failure_class, recorded=counted)


def request_cancel(facts: Facts, moment: Moment) -> Decision:
    """The request is recorded once; the handler decides when it stops."""
    return Decision(Verdict.REQUESTED, JobState.RUNNING, facts.attempts, facts.deferrals, last_error=facts.last_error)


def succeed(facts: Facts, moment: Moment) -> Decision:
    """Result stored, finished now, last error cleared."""
    result = moment.outcome.result if isinstance(moment.outcome, Succeeded) else None
    return Decision(
        Verdict.SUCCEEDED, JobState.SUCCEEDED, facts.attempts, facts.deferrals, result=result, finished_at=moment.now
    )


def retry(facts: Facts, moment: Moment) -> Decision:
    """run_at = now + delay(n), counted from now and not from the old due time; the last instant there is at most."""
    delay = timedelta(seconds=moment.policy.delay(facts.attempts, moment.roll))
    return _counted(facts, moment, moment.now + min(delay, MAX - moment.now))


def fail(facts: Facts, moment: Moment) -> Decision:
    """Error, reason and class kept; finished now."""
    error, (reason, failure_class) = _error(facts, moment), _why(moment)
    return _ended(Verdict.FAILED, JobState.FAILED, facts, moment, error, reason, failure_class, recorded=True)


def defer(facts: Facts, moment: Moment) -> Decision:
    """n - 1, deferrals + 1, run_at as named, the reason kept as last error."""
    until = moment.outcome.until if isinstance(moment.outcome, Postponed) else moment.now
    again = _uncounted(Verdict.DEFERRED, facts, until, _error(facts, moment))
    return again._replace(deferrals=facts.deferrals + 1)


def exhaust_deferrals(facts: Facts, moment: Moment) -> Decision:
    """One deferral more than ``max_deferrals``: failed, and this run counts."""
    error = _error(facts, moment)
    return _ended(Verdict.FAILED, JobState.FAILED, facts, moment, error, "deferrals_exhausted", recorded=True)


def release(facts: Facts, moment: Moment) -> Decision:
    """n - 1, run_at unchanged."""
    return _uncounted(Verdict.RELEASED, facts, None, facts.last_error)


def void(facts: Facts, moment: Moment) -> Decision:
    """n - 1, due when the lease would have ended: until then the stuck thread may still be at work."""
    return _uncounted(Verdict.RELEASED, facts, facts.lease_until, facts.last_error)


def reclaim(facts: Facts, moment: Moment) -> Decision:
    """run_at = now, the run counts."""
    return _counted(facts, moment, moment.now)


def start_over(facts: Facts, moment: Moment) -> Decision:
    """n = 0, deferrals 0, run_at = now, result and error cleared."""
    return Decision(Verdict.REQUEUED, JobState.QUEUED, 0, 0, run_at=moment.now)


def _counted(facts: Facts, moment: Moment, run_at: datetime) -> Decision:
    reason, failure_class = _why(moment)
    again = Decision(Verdict.RETRIED, JobState.QUEUED, facts.attempts, facts.deferrals, run_at, _error(facts, moment))
    return again._replace(reason=reason, failure_class=failure_class, recorded=True)


def _uncounted(verdict: Verdict, facts: Facts, run_at: datetime | None, last_error: str | None) -> Decision:
    # A row edited by hand may run with attempts 0; what is not counted never goes below that.
    return Decision(verdict, JobState.QUEUED, max(0, facts.attempts - 1), facts.deferrals, run_at, last_error)


def _ended(
    verdict: Verdict,
    state: JobState,
    facts: Facts,
    moment: Moment,
    error: str | None,
    reason: str | None = None,
    failure_class: FailureClass | None = None,
    *,
    recorded: bool = False,
) -> Decision:
    return Decision(
        verdict,
        state,
        facts.attempts,
        facts.deferrals,
        last_error=error,
        reason=reason,
        failure_class=failure_class,
        finished_at=moment.now,
        recorded=recorded,
    )


def _error(facts: Facts, moment: Moment) -> str | None:
    match moment.outcome:
        case Failed(error=error):
            return error
        case Postponed(reason=str(reason)):
            return reason
        case Expired():
            return LEASE_EXPIRED
        case Cancelled() if not facts.cancel_requested:
            return NOT_ASKED
        case _:
            return facts.last_error


def _why(moment: Moment) -> tuple[str | None, FailureClass | None]:
    match moment.outcome:
        case Failed(reason=reason, failure_class=failure_class):
            return reason, failure_class
        case Expired():
            return "lease_expired", None
        case _:
            return moment.reason, None
