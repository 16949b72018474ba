"""Which reasons hold for a job that is not running: the one place that decides it, and it is pure.

The facts come from the claim's own conditions. Each reason is a sentence for a person on call, and names the command
that helps where one does.
"""

import shlex
from collections.abc import Callable, Iterator
from datetime import datetime

from jobq.model.circumstances import MOST_BETTER, Circumstances, Pause, Staff
from jobq.model.duration import to_text
from jobq.model.explanation import Explanation, Reason, ReasonCode
from jobq.model.job import JSON, JobState


def explain(seen: Circumstances, staff: Staff, *, now: datetime) -> Explanation:
    """Return every reason that holds."""
    job = seen.job
    if job.state.terminal:
        reasons = [_ended(seen)]
    elif job.state is JobState.RUNNING:
        reasons = [_running(seen, now)]
    else:
        reasons = [found for check in _WAITING for found in check(seen, staff, now)]
        reasons = reasons or [_next(seen)]
    return Explanation(job_id=job.id, kind=job.kind, queue=job.queue, state=job.state, reasons=tuple(reasons))


def _reason(code: ReasonCode, text: str, **data: JSON) -> Reason:
    return Reason(code=code, text=text, data=data)


def _at(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S}Z"


def _ended(seen: Circumstances) -> Reason:
    job = seen.job
    when = "" if job.finished_at is None else f" at {_at(job.finished_at)}"
    error = "" if job.last_error is None else f": {job.last_error}"
    again = "" if job.state is JobState.SUCCEEDED else f"; `jobq job requeue {job.id}` runs it again"
    code = {"reason": job.failure_reason, "failure_class": job.failure_class, "error": job.last_error}
    text = f"It has {_PAST[job.state]}{when}{error}{again}."
    return _reason(ReasonCode.ENDED, text, state=job.state, finished_at=job.finished_at, **code)


_PAST = {JobState.SUCCEEDED: "succeeded", JobState.FAILED: "failed", JobState.CANCELLED: "been cancelled"}


def _running(seen: Circumstances, now: datetime) -> Reason:
    job, until = seen.job, seen.job.lease_until
    text = f"It is running: attempt {job.attempts} of {job.max_attempts}, by {job.worker}"
    if until is not None and until > now:
        text += f", under a lease until {_at(until)}"
    elif until is not None:
        text += f", but its lease ended at {_at(until)}: the next claim by any worker takes it back"
    if job.cancel_requested_at is not None:
        text += f"; it was asked to stop at {_at(job.cancel_requested_at)}"
    return _reason(
        ReasonCode.RUNNING,
        f"{text}.",
        worker=job.worker,
        attempt=job.attempts,
        started_at=job.started_at,
        lease_until=until,
        lease_expired=until is not None and until <= now,
        cancel_requested_at=job.cancel_requested_at,
    )


def _retired(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    if seen.retired:
        text = (
            f"Its kind {seen.job.kind} is retired: nobody runs it, and the next runner that retires it cancels it; "
            f"`jobq job cancel {seen.job.id}` does it now."
        )
        yield _reason(ReasonCode.RETIRED, text, kind=seen.job.kind)


def _queue_paused(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    if seen.queue_pause is not None:
        yield _paused(ReasonCode.QUEUE_PAUSED, "queue", seen.job.queue, seen.queue_pause)


def _kind_paused(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    if seen.kind_pause is not None:
        yield _paused(ReasonCode.KIND_PAUSED, "kind", seen.job.kind, seen.kind_pause)


def _paused(code: ReasonCode, noun: str, name: str, pause: Pause) -> Reason:
    by = "" if pause.by is None else f" by {pause.by}"
    why = "" if pause.why is None else f" ({pause.why})"
    text = f"Its {noun} {name} is paused since {_at(pause.at)}{by}{why}; `jobq {noun} resume {shlex.quote(name)}`."
    return _reason(code, text, **{noun: name}, paused_at=pause.at, paused_by=pause.by, paused_why=pause.why)


def _unserved(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    queue = seen.job.queue
    if not staff.alive:
        text = f"No runner is alive, so nobody serves the queue {queue}; `jobq work -A MODULE:ATTR` starts one."
        yield _reason(ReasonCode.UNSERVED, text, queue=queue, runners=0)
    elif not staff.serving:
        text = (
            f"Nobody serves the queue {queue}: {_runners(staff.alive)} alive, without workers for it; "
            f"`jobq work -A MODULE:ATTR --workers {queue}=1` starts one, "
            f"`jobq job requeue {seen.job.id} --queue QUEUE` moves the job."
        )
        yield _reason(ReasonCode.UNSERVED, text, queue=queue, runners=staff.alive)


def _no_handler(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    kind = seen.job.kind
    if staff.alive and not staff.handling:
        text = (
            f"No live runner has a handler of the kind {kind} ({_runners(staff.alive)} alive); "
            "`jobq work -A MODULE:ATTR` starts one, with the module that registers it."
        )
        yield _reason(ReasonCode.NO_HANDLER, text, kind=kind, runners=staff.alive)
    elif staff.serving and staff.handling and not staff.both:
        text = (
            f"No live runner both serves the queue {seen.job.queue} and has a handler of the kind {kind}; "
            f"`jobq work -A MODULE:ATTR --workers {seen.job.queue}=1` starts one, with the module of the handler."
        )
        yield _reason(ReasonCode.NO_HANDLER, text, kind=kind, runners=staff.alive)


def _runners(count: int) -> str:
    return f"{count} runner{' is' if count == 1 else 's are'}"


def _not_due(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    job = seen.job
    if job.run_at <= now:
        return
    seconds = (job.run_at - now).total_seconds()
    text = (
        f"It is not due until {_at(job.run_at)}, in {to_text(round(seconds, 3))}; "
        f"`jobq job reschedule {job.id} --delay 0` lets it run now."
    )
    yield _reason(ReasonCode.NOT_DUE, text, run_at=job.run_at, seconds=seconds)
    if seen.deferred:
        text = f"Its handler deferred it ({job.deferrals} so far), because: {job.last_error or 'no reason given'}."
        yield _reason(ReasonCode.DEFERRED, text, deferrals=job.deferrals, because=job.last_error)
    elif job.attempts:
        text = f"It waits to be retried: attempt {job.attempts} of {job.max_attempts} failed: {job.last_error}."
        data = {"attempt": job.attempts, "max_attempts": job.max_attempts, "error": job.last_error}
        yield _reason(ReasonCode.RETRYING, text, **data)


def _capped(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    if seen.cap is None or seen.running < seen.cap:
        return
    named = ", ".join(map(str, seen.running_ids))
    more = f" and {seen.running - len(seen.running_ids):,} more" if seen.running > len(seen.running_ids) else ""
    text = (
        f"Its kind {seen.job.kind} is at its cap: {seen.running:,} of at most {seen.cap:,} run, job"
        f"{'' if seen.running == 1 else 's'} {named}{more}; it runs when one of them has ended."
    )
    data = {"kind": seen.job.kind, "cap": seen.cap, "running": seen.running, "jobs": list(seen.running_ids)}
    yield _reason(ReasonCode.CAPPED, text, **data)


def _behind(seen: Circumstances, staff: Staff, now: datetime) -> Iterator[Reason]:
    if not seen.better:
        return
    over = seen.better > MOST_BETTER
    count = f"more than {MOST_BETTER:,}" if over else f"{seen.better:,}"
    plural = "" if seen.better == 1 else "s"
    text = (
        f"It waits behind {count} better job{plural} of the queue {seen.job.queue}, which have a higher priority than "
        f"{seen.job.priority} or were due earlier; `jobq job reschedule {seen.job.id} --priority N` moves it up."
    )
    yield _reason(ReasonCode.BEHIND, text, better=min(seen.better, MOST_BETTER), more=over)


def _next(seen: Circumstances) -> Reason:
    text = f"Nothing keeps it: it is the next in line, and the next free worker of the queue {seen.job.queue} takes it."
    return _reason(ReasonCode.NEXT, text, queue=seen.job.queue)


#: In the order of importance.
_WAITING: tuple[Callable[[Circumstances, Staff, datetime], Iterator[Reason]], ...] = (
    _retired,
    _queue_paused,
    _kind_paused,
    _unserved,
    _no_handler,
    _not_due,
    _capped,
    _behind,
)
