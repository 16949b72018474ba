"""Insert jobs, one or many, at most one for each dedupe key."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any

import apsw

from jobq.errors import DedupeConflict, JobNotFound, RetiredKind
from jobq.model.events import Change
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, Job, JobState, Priority
from jobq.store.base import Draft, Placed
from jobq.store.sqlite import accepting, labels, lookup, rows, texts

# Primary keys of jobq_kind, jobq_queue and jobq_job.
KIND = "SELECT retired, queue, priority, max_attempts, max_deferrals FROM jobq_kind WHERE name = ?"
ADD_KIND = "INSERT OR IGNORE INTO jobq_kind (name) VALUES (?)"
ADD_QUEUE = "INSERT OR IGNORE INTO jobq_queue (name) VALUES (?)"
PARENT = "SELECT 1 FROM jobq_job WHERE id = ?"

INSERT = """
INSERT INTO jobq_job (kind, queue, state, priority, payload, max_attempts, max_deferrals, run_at, dedupe_key,
                      parent_id, actor, tenant_id, subject, meta, schedule, slot, catch_up, created_at)
VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_PAYLOAD = "INSERT INTO jobq_payload (job_id, body) VALUES (?, ?)"

# jobq_job_dedupe.
HOLDER = """
SELECT id, kind FROM jobq_job WHERE dedupe_key = ? AND state IN ('queued', 'running')
"""


def enqueue(
    conn: apsw.Connection, changes: list[Change], drafts: Sequence[Draft], *, now: datetime
) -> list[Placed]:
    """Insert the drafts in order; those without a key that follow each other go in one statement."""
    filled = _introduce(conn, drafts)
    if not any(map(_has_key, filled)):  # nearly always
        return _insert_plain(conn, changes, filled, now)
    placed: list[Placed] = []
    for keyed, run in groupby(filled, key=_has_key):
        insert = _insert_keyed if keyed else _insert_plain
        placed.extend(insert(conn, changes, list(run), now))
    return placed


def holder(conn: apsw.Connection, dedupe_key: str) -> tuple[int, str] | None:
    """Return id and kind of the queued or running job that holds a key."""
    return conn.execute(HOLDER, (dedupe_key,)).fetchone()


def _has_key(draft: Draft) -> bool:
    return draft.dedupe_key is not None


def _introduce(conn: apsw.Connection, drafts: Sequence[Draft]) -> list[Draft]:
    """Fill in what the kinds say, note kinds and queues that are new; refuse kinds that are retired, or that
    their queue does not accept, and unknown parents."""
    says: dict[str, tuple[str, int, int, int | None]] = {}
    # What was looked up already: a batch is of few kinds, queues and parents.
    lanes: set[tuple[str, str | None]] = set()
    parents: set[int] = set()
    filled = []
    for draft in drafts:
        if draft.kind not in says:
            says[draft.kind] = _kind(conn, draft.kind)
        draft = _routed(conn, draft).filled(*says[draft.kind])
        filled.append(draft)
        lane = (draft.kind, draft.queue)
        if lane not in lanes:
            lanes.add(lane)
            if not accepting.require(conn, str(draft.queue), (draft.kind,)):
                conn.execute(ADD_QUEUE, (draft.queue,))
        if draft.parent_id is not None and draft.parent_id not in parents:
            parents.add(draft.parent_id)
            if conn.execute(PARENT, (draft.parent_id,)).fetchone() is None:
                raise JobNotFound(draft.parent_id)
    return filled


def _kind(conn: apsw.Connection, kind: str) -> tuple[str, int, int, int | None]:
    """Return queue, priority, attempts and deferrals of a kind's jobs, as it was registered or by default."""
    known: Any = conn.execute(KIND, (kind,)).fetchone()
    if known is None:
        conn.execute(ADD_KIND, (kind,))
        return DEFAULT_QUEUE, Priority.INGEST.value, DEFAULT_ATTEMPTS, None
    retired, queue, priority, max_attempts, max_deferrals = known
    if retired:
        raise RetiredKind(kind)
    priority = Priority.INGEST.value if priority is None else priority
    return queue or DEFAULT_QUEUE, priority, max_attempts or DEFAULT_ATTEMPTS, max_deferrals


def _routed(conn: apsw.Connection, draft: Draft) -> Draft:
    """Put a draft whose enqueue named no queue into that of its subject's label, if there is one."""
    queue = labels.route(conn, draft.subject or "", draft.kind) if draft.routable else None
    return draft if queue is None else draft._replace(queue=queue)


def _insert_plain(
    conn: apsw.Connection, changes: list[Change], drafts: Sequence[Draft], now: datetime
) -> list[Placed]:
    now_ms = rows.to_ms(now)
    due = [_due(draft, now_ms) for draft in drafts]
    if len(drafts) == 1:
        conn.execute(INSERT, _bindings(drafts[0], due[0], now_ms))
    else:
        conn.executemany(INSERT, (_bindings(draft, at, now_ms) for draft, at in zip(drafts, due, strict=True)))
    # AUTOINCREMENT under the write lock: the ids of consecutive inserts are consecutive.
    first = conn.last_insert_rowid() - len(drafts) + 1
    return [
        _placed(conn, changes, job_id, draft, at, now, now_ms)
        for job_id, (draft, at) in enumerate(zip(drafts, due, strict=True), first)
    ]


def _insert_keyed(
    conn: apsw.Connection, changes: list[Change], drafts: list[Draft], now: datetime
) -> Iterator[Placed]:
    now_ms = rows.to_ms(now)
    for draft in drafts:
        # Looked up under the write lock instead of left to the index: an INSERT that does nothing still writes the
        # AUTOINCREMENT counter, and a repeated enqueue would be synced for it.
        held = holder(conn, draft.dedupe_key or "")
        if held is not None:
            yield _held(conn, draft, *held)
            continue
        at = _due(draft, now_ms)
        conn.execute(INSERT, _bindings(draft, at, now_ms))
        yield _placed(conn, changes, conn.last_insert_rowid(), draft, at, now, now_ms)


def _placed(
    conn: apsw.Connection, changes: list[Change], job_id: int, draft: Draft, at: int, now: datetime, now_ms: int
) -> Placed:
    if texts.is_long(draft.payload):
        conn.execute(INSERT_PAYLOAD, (job_id, draft.payload))
    run_at = now if at == now_ms else rows.from_ms(at)
    assert draft.queue is not None, "a draft is filled in before it is inserted"
    changes.append(Change(job_id, draft.kind, draft.queue, None, JobState.QUEUED, 0, run_at, now))
    return Placed(job_id, True, partial(rows.job_of_draft, job_id, draft, at, now_ms), draft.queue)


def _held(conn: apsw.Connection, draft: Draft, job_id: int, kind: str) -> Placed:
    if kind != draft.kind:
        raise DedupeConflict(job_id, why=f"a job of kind {kind!r}, not {draft.kind!r}")
    return Placed(job_id, False, partial(_readable, job_id, lookup.get(conn, [job_id])), draft.queue)


def _readable(job_id: int, found: dict[int, Job]) -> Job:
    # A row that somebody broke by hand still holds its key.
    if job_id not in found:
        raise JobNotFound(job_id)
    return found[job_id]


def _due(draft: Draft, now_ms: int) -> int:
    if draft.run_at is not None:
        return rows.to_ms(draft.run_at)
    return now_ms + max(0, rows.span_ms(draft.delay)) if draft.delay else now_ms


def _bindings(draft: Draft, run_at: int, now_ms: int) -> tuple[Any, ...]:
    return (
        draft.kind,
        draft.queue,
        draft.priority,
        None if texts.is_long(draft.payload) else draft.payload,
        draft.max_attempts,
        draft.max_deferrals,
        run_at,
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
