"""Insert jobs, one or many, at most one for each dedupe key."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.errors import DedupeConflict, JobNotFound
from jobq.model.events import Change
from jobq.model.job import Job, JobState
from jobq.store.base import Draft, Placed
from jobq.store.sqlite import labels, lookup, placing, rows, texts
from jobq.store.sqlite.placing import Place

# The primary key.
PARENT = "SELECT 1 FROM jobq_job WHERE id = ?"

INSERT = """
INSERT INTO jobq_job (kind, queue, state, priority, payload, max_attempts, max_deferrals, run_at, dedupe_key,
                      parent_id, actor, tenant_id, subject, meta, schedule, slot, catch_up, created_at)
VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_PAYLOAD = "INSERT INTO jobq_payload (job_id, body) VALUES (?, ?)"

# jobq_job_dedupe.
HOLDER = """
SELECT id, CAST(kind AS BLOB) FROM jobq_job WHERE dedupe_key = ? AND state IN ('queued', 'running')
"""

_QUEUED = JobState.QUEUED

#: The values of INSERT. The payload is among them, long or not.
Values = tuple[Any, ...]
_KIND, _QUEUE, _PAYLOAD, _RUN_AT, _KEY = 0, 1, 3, 6, 7


def enqueue(
    conn: apsw.Connection, changes: list[Change], drafts: Sequence[Draft], *, now: datetime
) -> list[Placed]:
    """Insert the drafts in order: several in one statement, unless one of them has a key or a long payload."""
    values = _values(conn, drafts, rows.to_ms(now))
    if len(values) == 1 or any(one[_KEY] is not None or texts.is_long(one[_PAYLOAD]) for one in values):
        return _insert_each(conn, changes, values, now)
    return _insert_together(conn, changes, values, now)


def holder(conn: apsw.Connection, dedupe_key: str) -> tuple[int, str] | None:
    """Return id and kind of the queued or running job that holds a key."""
    held: Any = conn.execute(HOLDER, (dedupe_key,)).fetchone()
    return None if held is None else (held[0], str(texts.lenient(held[1])))


def _values(conn: apsw.Connection, drafts: Sequence[Draft], now_ms: int) -> list[Values]:
    """Return the values of the drafts' rows, what they leave open filled in; note kinds and queues that are new;
    refuse kinds that are retired, or that their queue does not accept, and unknown parents."""
    # What was looked up already: a batch is of few kinds, queues and parents.
    places: dict[tuple[str, str | None], Place] = {}
    parents: set[int] = set()
    values = []
    for draft in drafts:
        kind = draft.kind
        routed = labels.route(conn, draft.subject, kind) if draft.subject is not None and draft.routable else None
        lane = (kind, routed or draft.queue)
        place = places.get(lane)
        if place is None:
            place = places[lane] = placing.look(conn, *lane)
            if not place[-1]:
                placing.note(conn, kind, place[0])
        if draft.parent_id is not None and draft.parent_id not in parents:
            parents.add(draft.parent_id)
            if conn.execute(PARENT, (draft.parent_id,)).fetchone() is None:
                raise JobNotFound(draft.parent_id)
        queue, priority, max_attempts, max_deferrals, _ = place
        priority, max_attempts, max_deferrals = draft.limits(priority, max_attempts, max_deferrals)
        values.append(
            (
                kind,
                queue,
                priority,
                draft.payload,
                max_attempts,
                max_deferrals,
                now_ms if draft.run_at is None and not draft.delay else _due(draft, now_ms),
                draft.dedupe_key,
                draft.parent_id,
                draft.actor,
                draft.tenant_id,
                draft.subject,
                draft.meta,
                draft.schedule,
                None if draft.slot is None else rows.to_ms(draft.slot),
                draft.catch_up,
                now_ms,
            )
        )
    return values


def _due(draft: Draft, now_ms: int) -> int:
    if draft.run_at is not None:
        return rows.to_ms(draft.run_at)
    return now_ms + max(0, rows.span_ms(draft.delay))


def _insert_each(
    conn: apsw.Connection, changes: list[Change], values: Sequence[Values], now: datetime
) -> list[Placed]:
    placed: list[Placed] = []
    for one in values:
        # Looked up under the write lock instead of left to the index: an INSERT that does nothing still writes the
        # AUTOINCREMENT counter, and a repeated enqueue would be synced for it.
        held = None if one[_KEY] is None else holder(conn, one[_KEY])
        if held is not None:
            placed.append(_held(conn, one, *held))
            continue
        if texts.is_long(one[_PAYLOAD]):
            job_id = _insert_long(conn, one)
        else:
            conn.execute(INSERT, one)
            job_id = conn.last_insert_rowid()
        placed.append(_placed(changes, job_id, one, now))
    return placed


def _insert_together(
    conn: apsw.Connection, changes: list[Change], values: Sequence[Values], now: datetime
) -> list[Placed]:
    conn.executemany(INSERT, values)
    # AUTOINCREMENT under the write lock: the ids of consecutive inserts are consecutive.
    first = conn.last_insert_rowid() - len(values) + 1
    return [_placed(changes, job_id, one, now) for job_id, one in enumerate(values, first)]


def _insert_long(conn: apsw.Connection, values: Values) -> int:
    """Insert a row without its payload, which goes beside it; return the job's id."""
    conn.execute(INSERT, (*values[:_PAYLOAD], None, *values[_PAYLOAD + 1 :]))
    job_id = conn.last_insert_rowid()
    conn.execute(INSERT_PAYLOAD, (job_id, values[_PAYLOAD]))
    return job_id


def _placed(changes: list[Change], job_id: int, values: Values, now: datetime) -> Placed:
    queue, due = values[_QUEUE], values[_RUN_AT]
    run_at = now if due == values[-1] else rows.from_ms(due)
    changes.append(Change(job_id, values[_KIND], queue, None, _QUEUED, 0, run_at, now))
    return Placed(job_id, True, queue, rows.job_of_draft, values)


def _held(conn: apsw.Connection, values: Values, job_id: int, kind: str) -> Placed:
    if kind != values[_KIND]:
        raise DedupeConflict(job_id, why=f"a job of kind {kind!r}, not {values[_KIND]!r}")
    return Placed(job_id, False, values[_QUEUE], _readable, lookup.get(conn, [job_id]))


def _readable(job_id: int, found: dict[int, Job]) -> Job:
    # A row that somebody broke by hand still holds its key.
    if job_id not in found:
        raise JobNotFound(job_id)
    return found[job_id]
