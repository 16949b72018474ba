"""Insert jobs, one or many, at most one for each dedupe key."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
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
    """Insert the drafts in order; those without a key that follow each other go in one statement."""
    values = _values(conn, drafts, rows.to_ms(now))
    if not any(map(_has_key, drafts)):  # nearly always
        return _insert_plain(conn, changes, values, now)
    placed: list[Placed] = []
    for keyed, run in groupby(zip(drafts, values, strict=True), key=lambda pair: _has_key(pair[0])):
        insert = _insert_keyed if keyed else _insert_plain
        placed.extend(insert(conn, changes, [one for _, one in run], now))
    return placed


def holder(conn: apsw.Connection, dedupe_key: str) -> tuple[int, str] | None:
    """Return id and kind of the queued or running job that holds a key."""
    held: Any = conn.execute(HOLDER, (dedupe_key,)).fetchone()
    return None if held is None else (held[0], str(texts.lenient(held[1])))


def _has_key(draft: Draft) -> bool:
    return draft.dedupe_key is not None


def _values(conn: apsw.Connection, drafts: Sequence[Draft], now_ms: int) -> list[Values]:
    """Return the values of the drafts' rows, what they leave open filled in; note kinds and queues that are new;
    refuse kinds that are retired, or that their queue does not accept, and unknown parents."""
    # What was looked up already: a batch is of few kinds, queues and parents.
    places: dict[tuple[str, str | None], Place] = {}
    parents: set[int] = set()
    values = []
    for draft in drafts:
        queue = labels.route(conn, draft.subject or "", draft.kind) if draft.subject and draft.routable else None
        lane = (draft.kind, queue or draft.queue)
        place = places.get(lane)
        if place is None:
            place = places[lane] = placing.introduce(conn, *lane)
        if draft.parent_id is not None and draft.parent_id not in parents:
            parents.add(draft.parent_id)
            if conn.execute(PARENT, (draft.parent_id,)).fetchone() is None:
                raise JobNotFound(draft.parent_id)
        values.append(_values_of(draft, place, now_ms))
    return values


def _values_of(draft: Draft, place: Place, now_ms: int) -> Values:
    priority, max_attempts, max_deferrals = draft.limits(place.priority, place.max_attempts, place.max_deferrals)
    return (
        draft.kind,
        place.queue,
        priority,
        draft.payload,
        max_attempts,
        max_deferrals,
        _due(draft, now_ms),
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


def _due(draft: Draft, now_ms: int) -> int:
    if draft.run_at is not None:
        return rows.to_ms(draft.run_at)
    return now_ms + max(0, rows.span_ms(draft.delay)) if draft.delay else now_ms


def _insert_plain(
    conn: apsw.Connection, changes: list[Change], values: Sequence[Values], now: datetime
) -> list[Placed]:
    long = [number for number, one in enumerate(values) if texts.is_long(one[_PAYLOAD])]
    inline = [_inline(one) for one in values] if long else values
    if len(inline) == 1:
        conn.execute(INSERT, inline[0])
    else:
        conn.executemany(INSERT, inline)
    # AUTOINCREMENT under the write lock: the ids of consecutive inserts are consecutive.
    first = conn.last_insert_rowid() - len(values) + 1
    if long:
        conn.executemany(INSERT_PAYLOAD, [(first + number, values[number][_PAYLOAD]) for number in long])
    return [_placed(changes, job_id, one, now) for job_id, one in enumerate(values, first)]


def _insert_keyed(
    conn: apsw.Connection, changes: list[Change], values: Sequence[Values], now: datetime
) -> Iterator[Placed]:
    for one in values:
        # Looked up under the write lock instead of left to the index: an INSERT that does nothing still writes the
        # AUTOINCREMENT counter, and a repeated enqueue would be synced for it.
        held = holder(conn, one[_KEY])
        if held is not None:
            yield _held(conn, one, *held)
            continue
        yield from _insert_plain(conn, changes, [one], now)


def _inline(values: Values) -> Values:
    """Return what goes into the row itself."""
    return (*values[:_PAYLOAD], None, *values[_PAYLOAD + 1 :]) if texts.is_long(values[_PAYLOAD]) else values


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
