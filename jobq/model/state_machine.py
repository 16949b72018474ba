"""The states of a job and every way between them: the one place that decides what a state becomes.

:data:`TABLE` is the whole machine, read from top to bottom: the first rule whose condition holds is taken, and what no
rule names leaves the row as it is. In the comments n is ``attempts`` and max is ``max_attempts``. The SQL of the
store carries out what this module decides.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from jobq.model import effects
from jobq.model.effects import Condition, Decision, Effect, Facts, Moment
from jobq.model.job import JobState
from jobq.model.outcome import Cancelled, Expired, Failed, Outcome, Postponed, Released, Succeeded, Voided
from jobq.model.retry import RetryPolicy

QUEUED, RUNNING = JobState.QUEUED, JobState.RUNNING
SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


class Trigger(StrEnum):
    """What can happen to a job."""

    CLAIM = "claim"
    CANCEL = "cancel"
    REQUEUE = "requeue"
    SUCCESS = "success"
    FAILURE = "failure"
    DEFERRAL = "deferral"
    RELEASE = "release"
    VOID = "void"
    EXPIRY = "expiry"
    CANCELLATION = "cancellation"


class Rule(NamedTuple):
    """One row of the machine."""

    source: JobState
    trigger: Trigger
    condition: Condition
    target: JobState
    effect: Effect


#: The machine. A cancel that was asked wins over everything but success: the work is done then.
TABLE: tuple[Rule, ...] = (
    Rule(QUEUED, Trigger.CLAIM, effects.attempts_left, RUNNING, effects.start),
    Rule(QUEUED, Trigger.CLAIM, effects.always, FAILED, effects.exhaust),
    Rule(QUEUED, Trigger.CANCEL, effects.always, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.CANCEL, effects.always, RUNNING, effects.request_cancel),
    Rule(RUNNING, Trigger.SUCCESS, effects.always, SUCCEEDED, effects.succeed),
    Rule(RUNNING, Trigger.FAILURE, effects.cancel_asked, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.FAILURE, effects.may_retry, QUEUED, effects.retry),
    Rule(RUNNING, Trigger.FAILURE, effects.always, FAILED, effects.fail),
    Rule(RUNNING, Trigger.DEFERRAL, effects.cancel_asked, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.DEFERRAL, effects.deferrals_left, QUEUED, effects.defer),
    Rule(RUNNING, Trigger.DEFERRAL, effects.always, FAILED, effects.exhaust_deferrals),
    Rule(RUNNING, Trigger.RELEASE, effects.cancel_asked, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.RELEASE, effects.always, QUEUED, effects.release),
    Rule(RUNNING, Trigger.VOID, effects.cancel_asked, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.VOID, effects.always, QUEUED, effects.void),
    Rule(RUNNING, Trigger.EXPIRY, effects.cancel_asked, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.EXPIRY, effects.attempts_left, QUEUED, effects.reclaim),
    Rule(RUNNING, Trigger.EXPIRY, effects.always, FAILED, effects.fail),
    Rule(RUNNING, Trigger.CANCELLATION, effects.cancel_asked, CANCELLED, effects.finish_cancelled),
    Rule(RUNNING, Trigger.CANCELLATION, effects.attempts_left, QUEUED, effects.retry),
    Rule(RUNNING, Trigger.CANCELLATION, effects.always, FAILED, effects.fail),
    Rule(QUEUED, Trigger.REQUEUE, effects.always, QUEUED, effects.start_over),
    Rule(FAILED, Trigger.REQUEUE, effects.always, QUEUED, effects.start_over),
    Rule(CANCELLED, Trigger.REQUEUE, effects.always, QUEUED, effects.start_over),
)

_TRIGGERS: Mapping[type[Outcome], Trigger] = {
    Succeeded: Trigger.SUCCESS,
    Failed: Trigger.FAILURE,
    Postponed: Trigger.DEFERRAL,
    Released: Trigger.RELEASE,
    Voided: Trigger.VOID,
    Expired: Trigger.EXPIRY,
    Cancelled: Trigger.CANCELLATION,
}
_RULES: Mapping[tuple[JobState, Trigger], tuple[Rule, ...]] = {
    (rule.source, rule.trigger): tuple(r for r in TABLE if (r.source, r.trigger) == (rule.source, rule.trigger))
    for rule in TABLE
}


def decide(facts: Facts, trigger: Trigger, moment: Moment) -> Decision | None:
    """Return what a row becomes, or None when nothing about it changes."""
    for rule in _RULES.get((facts.state, trigger), ()):
        if rule.condition(facts, moment):
            return rule.effect(facts, moment)
    return None


def settle(facts: Facts, outcome: Outcome, *, policy: RetryPolicy, now: datetime, roll: float) -> Decision | None:
    """Return what a run's end makes of its row, or None for a row that is not running.

    ``roll`` is the dice for the retry's jitter, from 0 to 1.
    """
    return decide(facts, _TRIGGERS[type(outcome)], Moment(now, outcome, policy, roll))
