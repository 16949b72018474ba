"""Let jobs run again from the start, by hand, with a line in the change log for each."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import apsw

from jobq.model.effects import Decision, Facts, Moment
from jobq.model.events import Change
from jobq.model.job import NOT_FOUND, Actor, Requeued
from jobq.model.state_machine import Trigger, decide
from jobq.store.base import Filter
from jobq.store.sqlite import accepting, changelog, enqueue, lookup, pauses, rows, settle, texts

# The primary key.
KEY = "SELECT dedupe_key, heals FROM jobq_job WHERE id = ?"
# The lease is gone but where somebody gave a row a part of one by hand.
WRITE = """
UPDATE jobq_job
SET state = ?, attempts = ?, deferrals = ?, run_at = ?, queue = ?, heals = ?, result = NULL, progress = NULL,
    last_error = NULL, failure_reason = NULL, failure_class = NULL, started_at = NULL, finished_at = NULL,
    token = NULL, worker = NULL, lease_until = NULL, lease_length = NULL, lease_held = 0, cancel_requested_at = NULL
WHERE id = ? AND state = ?
"""
DROP_RESULT = "DELETE FROM jobq_result WHERE job_id = ?"


class _Ready(NamedTuple):
    """A job that may be requeued."""

    subject: settle.Subject
    facts: Facts
    decision: Decision
    dedupe_key: str | None
    heals: int


def requeue(
    conn: apsw.Connection,
    changes: list[Change],
    ids: Sequence[int],
    *,
    wanted: Filter | None = None,
    queue: str | None,
    actor: Actor,
    now: datetime,
    healing: bool = False,
) -> Requeued:
    """Requeue each job that may be, and that still fits; refuse the others one by one, with the reason.

    A job that heals keeps count of it; one that is requeued by hand may heal as often as a new one.
    """
    _check_queue(conn, queue)
    done: list[int] = []
    refused: list[tuple[int, str]] = []
    for job_id in lookup.still(conn, wanted, dict.fromkeys(ids)):
        ready = _look(conn, job_id, queue, {}, now)
        if isinstance(ready, str):
            refused.append((job_id, ready))
        else:
            _write(conn, changes, ready, queue, actor, now, healing=healing)
            done.append(job_id)
    return Requeued(tuple(done), tuple(refused))


def rehearse(
    conn: apsw.Connection, ids: Sequence[int], *, wanted: Filter | None, queue: str | None, now: datetime
) -> Requeued:
    """Say what a requeue would answer; the keys that it would take count as taken."""
    _check_queue(conn, queue)
    done: list[int] = []
    refused: list[tuple[int, str]] = []
    taken: dict[str, int] = {}
    for job_id in lookup.still(conn, wanted, dict.fromkeys(ids)):
        ready = _look(conn, job_id, queue, taken, now)
        if isinstance(ready, str):
            refused.append((job_id, ready))
            continue
        done.append(job_id)
        if ready.dedupe_key is not None:
            taken[ready.dedupe_key] = job_id
    return Requeued(tuple(done), tuple(refused))


def _check_queue(conn: apsw.Connection, queue: str | None) -> None:
    if queue is not None:
        pauses.require_queue(conn, queue)


def _look(
    conn: apsw.Connection, job_id: int, queue: str | None, taken: dict[str, int], now: datetime
) -> _Ready | str:
    """Return what a requeue would make of a job, or why there is none."""
    found = settle.read(conn, job_id)
    if found is None:
        return NOT_FOUND
    subject, facts = found
    decision = decide(facts, Trigger.REQUEUE, Moment(now))
    if decision is None:
        return facts.state.value
    if queue is not None and not accepting.accepts(conn, queue, subject.kind):
        return f"the queue {queue} does not accept the kind {subject.kind}"
    key = texts.legible(conn.execute(KEY, (job_id,)))
    if not key:
        return NOT_FOUND
    dedupe_key, heals = key[0]
    if dedupe_key is not None:
        held = enqueue.holder(conn, dedupe_key)
        holder = taken.get(dedupe_key, job_id if held is None else held[0])
        if holder != job_id:
            return f"dedupe key held by job {holder}"
    return _Ready(subject, facts, decision, dedupe_key, heals)


def _write(
    conn: apsw.Connection,
    changes: list[Change],
    ready: _Ready,
    queue: str | None,
    actor: Actor,
    now: datetime,
    *,
    healing: bool,
) -> None:
    subject, facts, decision = ready.subject, ready.facts, ready.decision
    now_ms, new_queue = rows.to_ms(now), queue or subject.queue
    values = (decision.state.value, decision.attempts, decision.deferrals, now_ms, new_queue)
    heals = ready.heals + 1 if healing else 0
    conn.execute(WRITE, (*values, heals, subject.id, facts.state.value))
    conn.execute(DROP_RESULT, (subject.id,))
    before = {"state": facts.state.value, "queue": subject.queue, "attempts": facts.attempts}
    after = {"state": decision.state.value, "queue": new_queue, "attempts": decision.attempts}
    what = "healed" if healing else "requeued"
    changelog.write(conn, what, actor=actor, job_id=subject.id, before=before, after=after, now=now)
    changes.append(
        Change(subject.id, subject.kind, new_queue, facts.state, decision.state, decision.attempts, now, now)
    )
