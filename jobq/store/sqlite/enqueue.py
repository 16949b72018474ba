"""Insert jobs, one or many, at most one for each dedupe key."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
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
#: Where these are among its bindings; the last is the time.
_QUEUE, _PAYLOAD, _RUN_AT = 1, 3, 6
INSERT_PAYLOAD = "INSERT INTO jobq_payload (job_id, body) VALUES (?, ?)"

# jobq_job_dedupe.
HOLDER = """
SELECT id, kind FROM jobq_job WHERE dedupe_key = ? AND state IN ('queued', 'running')
"""

_QUEUED = JobState.QUEUED

#: A draft and the bindings of its row.
Pair = tuple[Draft, tuple[Any, ...]]


def enqueue(
    conn: apsw.Connection, changes: list[Change], drafts: Sequence[Draft], *, now: datetime
) -> list[Placed]:
    """Insert the drafts in order; those without a key that follow each other go in one statement."""
    pairs = _prepared(conn, drafts, rows.to_ms(now))
    if not any(map(_has_key, pairs)):  # nearly always
        return _insert_plain(conn, changes, pairs, now)
    placed: list[Placed] = []
    for keyed, run in groupby(pairs, key=_has_key):
        insert = _insert_keyed if keyed else _insert_plain
        placed.extend(insert(conn, changes, list(run), now))
    return placed


def holder(conn: apsw.Connection, dedupe_key: str) -> tuple[int, str] | None:
    """Return id and kind of the queued or running job that holds a key."""
    return conn.execute(HOLDER, (dedupe_key,)).fetchone()


def _has_key(pair: Pair) -> bool:
    return pair[0].dedupe_key is not None


def _prepared(conn: apsw.Connection, drafts: Sequence[Draft], now_ms: int) -> list[Pair]:
    """Return the drafts with the bindings of their rows, what they leave open filled in; note kinds and queues that
    are new; refuse kinds that are retired, or that their queue does not accept, and unknown parents."""
    # What was looked up already: a batch is of few kinds, queues and parents.
    places: dict[tuple[str, str | None], Place] = {}
    parents: set[int] = set()
    prepared = []
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
        prepared.append((draft, _bindings(draft, place, now_ms)))
    return prepared


def _insert_plain(
    conn: apsw.Connection, changes: list[Change], pairs: Sequence[Pair], now: datetime
) -> list[Placed]:
    if len(pairs) == 1:
        conn.execute(INSERT, pairs[0][1])
    else:
        conn.executemany(INSERT, (bindings for _, bindings in pairs))
    # AUTOINCREMENT under the write lock: the ids of consecutive inserts are consecutive.
    first = conn.last_insert_rowid() - len(pairs) + 1
    return [
        _placed(conn, changes, job_id, draft, bindings, now)
        for job_id, (draft, bindings) in enumerate(pairs, first)
    ]


def _insert_keyed(
    conn: apsw.Connection, changes: list[Change], pairs: Sequence[Pair], now: datetime
) -> Iterator[Placed]:
    for draft, bindings in pairs:
        # Looked up under the write lock instead of left to the index: an INSERT that does nothing still writes the
        # AUTOINCREMENT counter, and a repeated enqueue would be synced for it.
        held = holder(conn, draft.dedupe_key or "")
        if held is not None:
            yield _held(conn, draft, bindings[_QUEUE], *held)
            continue
        conn.execute(INSERT, bindings)
        yield _placed(conn, changes, conn.last_insert_rowid(), draft, bindings, now)


def _placed(
    conn: apsw.Connection, changes: list[Change], job_id: int, draft: Draft, bindings: tuple[Any, ...], now: datetime
) -> Placed:
    if bindings[_PAYLOAD] is None:
        conn.execute(INSERT_PAYLOAD, (job_id, draft.payload))
    queue, due = bindings[_QUEUE], bindings[_RUN_AT]
    run_at = now if due == bindings[-1] else rows.from_ms(due)
    changes.append(Change(job_id, draft.kind, queue, None, _QUEUED, 0, run_at, now))
    return Placed(job_id, True, partial(rows.job_of_draft, job_id, draft, bindings), queue)


def _held(conn: apsw.Connection, draft: Draft, queue: str, job_id: int, kind: str) -> Placed:
    if kind != draft.kind:
        raise DedupeConflict(job_id, why=f"a job of kind {kind!r}, not {draft.kind!r}")
    return Placed(job_id, False, partial(_readable, job_id, lookup.get(conn, [job_id])), queue)


def _readable(job_id: int, found: dict[int, Job]) -> Job:
    # A row that somebody broke by hand still holds its key.
    if job_id not in found:
        raise JobNotFound(job_id)
    return found[job_id]


def _due(draft: Draft, now_ms: int) -> int:
    if draft.run_at is not None:
        return rows.to_ms(draft.run_at)
    return now_ms + max(0, rows.span_ms(draft.delay)) if draft.delay else now_ms


def _bindings(draft: Draft, place: Place, now_ms: int) -> tuple[Any, ...]:
    priority, max_attempts, max_deferrals = draft.limits(place.priority, place.max_attempts, place.max_deferrals)
    return (
        draft.kind,
        place.queue,
        priority,
        None if texts.is_long(draft.payload) else draft.payload,
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
