"""Let jobs run again from the start, by hand, with a line in the change log for each."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.errors import QueueNotFound
from jobq.model.effects import Moment
from jobq.model.events import Change
from jobq.model.job import Actor, Requeued
from jobq.model.state_machine import Trigger, decide
from jobq.store.sqlite import enqueue, queues, rows, settle

# The primary key.
KEY = "SELECT dedupe_key FROM jobq_job WHERE id = ?"
WRITE = """
UPDATE jobq_job
SET state = ?, attempts = ?, deferrals = ?, run_at = ?, queue = ?, result = NULL, progress = NULL, last_error = NULL,
    failure_reason = NULL, failure_class = NULL, started_at = NULL, finished_at = NULL
WHERE id = ? AND state = ?
"""
DROP_RESULT = "DELETE FROM jobq_result WHERE job_id = ?"
LOG = "INSERT INTO jobq_change (at, actor, what, job_id, before, after) VALUES (?, ?, 'requeued', ?, ?, ?)"

REHEARSE = "SAVEPOINT jobq_rehearsal"
UNDO = "ROLLBACK TO jobq_rehearsal"
END = "RELEASE jobq_rehearsal"


def requeue(
    conn: apsw.Connection,
    changes: list[Change],
    ids: Sequence[int],
    *,
    queue: str | None,
    actor: Actor,
    dry_run: bool,
    now: datetime,
) -> Requeued:
    """Requeue each job that may be; refuse the others one by one, with the reason."""
    if queue is not None and not queues.exists(conn, queue):
        raise QueueNotFound(queue, known=queues.names(conn))
    if not dry_run:
        return _requeue(conn, changes, ids, queue, actor, now)
    # The real thing, undone: so that it refuses what the real one would, keys within the call included.
    conn.execute(REHEARSE)
    answer = _requeue(conn, [], ids, queue, actor, now)
    conn.execute(UNDO)
    conn.execute(END)
    return answer


def _requeue(
    conn: apsw.Connection,
    changes: list[Change],
    ids: Sequence[int],
    queue: str | None,
    actor: Actor,
    now: datetime,
) -> Requeued:
    done: list[int] = []
    refused: list[tuple[int, str]] = []
    for job_id in dict.fromkeys(ids):
        why = _requeue_one(conn, changes, job_id, queue, actor, now)
        if why is None:
            done.append(job_id)
        else:
            refused.append((job_id, why))
    return Requeued(tuple(done), tuple(refused))


def _requeue_one(
    conn: apsw.Connection,
    changes: list[Change],
    job_id: int,
    queue: str | None,
    actor: Actor,
    now: datetime,
) -> str | None:
    """Requeue a job, or return why not."""
    found = settle.read(conn, job_id)
    if found is None:
        return "not found"
    (_, kind, old_queue, *_), facts = found
    dedupe_key: Any = conn.execute(KEY, (job_id,)).fetchall()[0][0]
    decision = decide(facts, Trigger.REQUEUE, Moment(now))
    if decision is None:
        return facts.state.value
    holder = enqueue.holder(conn, dedupe_key) if dedupe_key is not None else None
    if holder is not None and holder[0] != job_id:
        return f"dedupe key held by job {holder[0]}"
    now_ms, new_queue = rows.to_ms(now), queue or old_queue
    values = (decision.state.value, decision.attempts, decision.deferrals, now_ms, new_queue)
    conn.execute(WRITE, (*values, job_id, facts.state.value))
    conn.execute(DROP_RESULT, (job_id,))
    before = {"state": facts.state.value, "queue": old_queue, "attempts": facts.attempts}
    after = {"state": decision.state.value, "queue": new_queue, "attempts": decision.attempts}
    conn.execute(LOG, (now_ms, actor.value, job_id, json.dumps(before), json.dumps(after)))
    changes.append(Change(job_id, kind, new_queue, facts.state, decision.state, decision.attempts, now, now))
    return None
