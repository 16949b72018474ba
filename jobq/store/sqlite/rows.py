"""Rows become values and values become bindings; in the store nobody else knows that times are stored as milliseconds.

Nothing is validated here: the schema's CHECKs and the verbs did that. A row that somebody broke by hand makes
:class:`BadRow`, and its reader leaves out that row alone.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jobq.model.effects import Decision, Facts
from jobq.model.events import LogLine
from jobq.model.instant import from_ms as from_ms
from jobq.model.instant import to_ms as to_ms
from jobq.model.job import JSON, Actor, FailureClass, Job, JobInfo, JobState, LoggedChange, Run
from jobq.model.runner import RunnerRow
from jobq.store.sqlite import texts

#: A look-up here costs a fifth of ``JobState(text)``.
_STATES = {state.value: state for state in JobState}

#: The columns of a listing, in the order that :func:`job_info` reads them.
INFO_COLUMNS = (
    "id, kind, queue, state, priority, parent_id, actor, tenant_id, subject, dedupe_key, schedule, slot, meta, "
    "attempts, max_attempts, deferrals, max_deferrals, run_at, last_error, failure_reason, failure_class, progress, "
    "worker, token, lease_until, lease_length, cancel_requested_at, created_at, started_at, finished_at, catch_up"
)
#: The same and both texts, wherever they live, in the order that :func:`job` reads them.
JOB_COLUMNS = (
    INFO_COLUMNS + ", CAST(coalesce(payload, (SELECT body FROM jobq_payload WHERE job_id = jobq_job.id)) AS BLOB),"
    " CAST(coalesce(result, (SELECT body FROM jobq_result WHERE job_id = jobq_job.id)) AS BLOB)"
)
#: The columns that a decision needs, in the order that :func:`facts` reads them.
FACT_COLUMNS = (
    "state, attempts, max_attempts, deferrals, max_deferrals, cancel_requested_at IS NOT NULL, lease_until, "
    "CAST(last_error AS BLOB)"
)


class BadRow(ValueError):
    """A row holds something that no verb of jobq writes."""


def span_ms(seconds: float) -> int:
    """Return a duration in whole milliseconds."""
    return round(seconds * 1000)


def optional_ms(when: datetime | None) -> int | None:
    """Return the binding of a time that may be missing."""
    return None if when is None else to_ms(when)


def _time(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def _json(text: str | None) -> JSON:
    return None if text is None else json.loads(text)


def facts(row: Sequence[Any]) -> Facts:
    """Read :data:`FACT_COLUMNS`; counts below 0 are 0, or a write of them would break a CHECK for all beside it."""
    state, attempts, max_attempts, deferrals, max_deferrals, asked, lease_until, last_error = row
    known = _STATES.get(state)
    if known is None:
        raise BadRow(f"unknown state {state!r}")
    try:
        error = None if last_error is None else texts.lenient(last_error)
        until = None if lease_until is None else from_ms(lease_until)
        if attempts < 0 or deferrals < 0 or max_attempts < 0 or (max_deferrals or 0) < 0:
            attempts, deferrals = max(0, attempts), max(0, deferrals)
    except (TypeError, AttributeError):  # a value that its column does not take: bytes of the file have changed
        raise BadRow("a value has another type") from None
    return Facts(known, attempts, max_attempts, deferrals, max_deferrals, bool(asked), until, error)


def _info_fields(row: Sequence[Any]) -> dict[str, Any]:
    try:
        return {
            "id": row[0],
            "kind": row[1],
            "queue": row[2],
            "state": JobState(row[3]),
            "priority": row[4],
            "parent_id": row[5],
            "actor": Actor(row[6]),
            "tenant_id": row[7],
            "subject": row[8],
            "dedupe_key": row[9],
            "schedule": row[10],
            "slot": _time(row[11]),
            "meta": _object(row[12]),
            "attempts": row[13],
            "max_attempts": row[14],
            "deferrals": row[15],
            "max_deferrals": row[16],
            "run_at": from_ms(row[17]),
            "last_error": row[18],
            "failure_reason": row[19],
            "failure_class": None if row[20] is None else FailureClass(row[20]),
            "progress": _lenient(row[21]),
            "worker": row[22],
            "token": row[23],
            "lease_until": _time(row[24]),
            "lease_length": None if row[25] is None else row[25] / 1000,
            "cancel_requested_at": _time(row[26]),
            "created_at": from_ms(row[27]),
            "started_at": _time(row[28]),
            "finished_at": _time(row[29]),
            "catch_up": bool(row[30]),
        }
    except (ValueError, RecursionError) as error:
        raise BadRow(f"job {row[0]} holds an unreadable value") from error


def job_info(row: Sequence[Any]) -> JobInfo:
    """Read :data:`INFO_COLUMNS`."""
    return JobInfo(**_info_fields(row))


def job(row: Sequence[Any]) -> Job:
    """Read :data:`JOB_COLUMNS`. JSON that somebody broke is shown as None: only the run of a job may refuse it."""
    return Job(**_info_fields(row), payload=_lenient(row[31]), result=_lenient(row[32]))


def _lenient(body: bytes | str | None) -> JSON:
    try:
        return None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        return None


def _object(body: str | None) -> Mapping[str, JSON]:
    found = _lenient(body)
    return found if isinstance(found, dict) else {}


def job_of_draft(job_id: int, values: Sequence[Any]) -> Job:
    """Return the job that a draft has become, from the values of enqueue.INSERT, without reading it back."""
    kind, queue, priority, payload, max_attempts, max_deferrals, run_at, dedupe_key, parent_id = values[:9]
    actor, tenant_id, subject, meta, schedule, slot, catch_up, now = values[9:]
    return Job(
        id=job_id,
        kind=kind,
        queue=queue,
        state=JobState.QUEUED,
        priority=priority,
        parent_id=parent_id,
        actor=Actor(actor),
        tenant_id=tenant_id,
        subject=subject,
        dedupe_key=dedupe_key,
        schedule=schedule,
        slot=_time(slot),
        catch_up=catch_up,
        meta=_json(meta) or {},
        attempts=0,
        max_attempts=max_attempts,
        deferrals=0,
        max_deferrals=max_deferrals,
        run_at=from_ms(run_at),
        last_error=None,
        failure_reason=None,
        failure_class=None,
        progress=None,
        worker=None,
        token=None,
        lease_until=None,
        lease_length=None,
        cancel_requested_at=None,
        created_at=from_ms(now),
        started_at=None,
        finished_at=None,
        payload=_json(payload),
        result=None,
    )


def run(row: Sequence[Any]) -> Run:
    """Read job_id, number, attempt, worker, started_at, ended_at, error, reason, class."""
    return Run(
        job_id=row[0],
        number=row[1],
        attempt=row[2],
        worker=row[3],
        started_at=_time(row[4]),
        ended_at=from_ms(row[5]),
        error=row[6],
        reason=row[7],
        failure_class=None if row[8] is None else FailureClass(row[8]),
    )


def log_line(row: Sequence[Any]) -> LogLine:
    """Read job_id, attempt, at, level, event, fields."""
    return LogLine(
        job_id=row[0], attempt=row[1], at=from_ms(row[2]), level=row[3], event=row[4], fields=_object(row[5])
    )


def logged_change(row: Sequence[Any]) -> LoggedChange:
    """Read id, at, actor, what, job_id, subject, before, after."""
    return LoggedChange(
        id=row[0],
        at=from_ms(row[1]),
        actor=Actor(row[2]),
        what=row[3],
        job_id=row[4],
        subject=row[5],
        before=_json(row[6]),
        after=_json(row[7]),
    )


def runner(row: Sequence[Any]) -> RunnerRow:
    """Read id, host, pid, queues, kinds, boot_id, monotonic, started_at, beat_at."""
    queues, kinds = _json(row[3]), _json(row[4])
    if not isinstance(queues, dict) or not isinstance(kinds, list):
        raise BadRow(f"runner {row[0]} serves nothing that can be read")
    return RunnerRow(
        id=row[0],
        host=row[1],
        pid=int(row[2]),
        queues={queue: int(threads) for queue, threads in queues.items()},
        kinds=tuple(map(str, kinds)),
        boot_id=row[5],
        monotonic=float(row[6]),
        started_at=from_ms(row[7]),
        beat_at=from_ms(row[8]),
    )


def decision_bindings(decision: Decision, inline_result: str | None) -> tuple[Any, ...]:
    """Return the bindings of a decision, in the order of settle.WRITE."""
    finished = decision.finished_at is not None
    return (
        decision.state.value,
        decision.attempts,
        decision.deferrals,
        optional_ms(decision.run_at),
        decision.last_error,
        decision.reason if finished else None,
        decision.failure_class if finished else None,
        inline_result,
        optional_ms(decision.finished_at),
    )
