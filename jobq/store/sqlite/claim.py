"""Take the best claimable jobs under new tokens, those of expired leases included.

A claim finds the first row of each queue and kind, then merges in exact order: its cost grows with the number of lanes,
never with the backlog.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.effects import Facts, Moment
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.model.lease import Claim, ClaimRequest
from jobq.model.state_machine import Trigger, decide
from jobq.store.sqlite import candidates, lease, rows, settle, texts
from jobq.store.sqlite.candidates import Head
from jobq.store.sqlite.lease import Expiry

# The primary key.
BODY = "SELECT CAST(body AS BLOB) FROM jobq_payload WHERE job_id = ?"
START = """
UPDATE jobq_job
SET state = 'running', attempts = ?, worker = ?, token = ?, lease_until = ?, lease_length = ?, started_at = ?,
    progress = NULL, finished_at = NULL
WHERE id = ? AND state = 'queued'
"""


#: What nearly every job has of tenant, subject, meta and schedule.
_NO_TEXTS = (None, None, None, None)


class Budget:
    """How many more jobs of each capped or gated kind this claim may start."""

    def __init__(self, heads: Sequence[Head], request: ClaimRequest) -> None:
        self._room = {head.kind: head.room for head in heads if head.room is not None}
        self._gates = request.gates
        self._permits = dict(request.permits)

    def limits(self, kind: str) -> bool:
        """Whether the kind has a cap or a gate at all."""
        return kind in self._room or kind in self._gates

    def allows(self, kind: str) -> bool:
        """Whether one more job of the kind may start."""
        gate = self._gates.get(kind)
        return self._room.get(kind, 1) > 0 and (gate is None or self._permits.get(gate, 0) > 0)

    def spend(self, kind: str) -> None:
        """Count one started job."""
        if kind in self._room:
            self._room[kind] -= 1
        if kind in self._gates:
            self._permits[self._gates[kind]] -= 1


def claim(
    conn: apsw.Connection,
    changes: list[Change],
    request: ClaimRequest,
    *,
    now: datetime,
    tokens: Sequence[str],
) -> tuple[list[Claim], list[Expiry]]:
    """Take expired leases back, then start the best jobs in exact order; ``tokens`` has one for each that may start."""
    now_ms = rows.to_ms(now)
    heads = candidates.first(conn, request)
    expiries: list[Expiry] = []
    # Without a head nobody has said when the first lease ends.
    if not heads or (heads[0].expiry is not None and heads[0].expiry <= now_ms):
        expiries = lease.reclaim(conn, changes, now=now, hold_expired=request.hold_expired)
        if expiries:
            heads = candidates.first(conn, request)
    return _start(conn, changes, request, heads, now=now, now_ms=now_ms, tokens=tokens), expiries


def _start(
    conn: apsw.Connection,
    changes: list[Change],
    request: ClaimRequest,
    heads: Sequence[Head],
    *,
    now: datetime,
    now_ms: int,
    tokens: Sequence[str],
) -> list[Claim]:
    length, threads, most = rows.span_ms(request.lease_length), len(request.workers), len(tokens)
    if most < 1:
        return []
    budget = Budget(heads, request)
    moment = Moment(now)
    claims: list[Claim] = []
    starts: list[tuple[Any, ...]] = []
    for queue, kind, row in candidates.in_order(conn, heads, budget.allows, now_ms, most):
        facts = rows.facts(row[12:])
        decision = decide(facts, Trigger.CLAIM, moment)
        assert decision is not None, "the machine has a rule for every claim of a queued row"
        if decision.state is not JobState.RUNNING:
            settle.write(conn, changes, settle.Subject(row[0], kind, queue), facts, decision, now=now)
            continue
        # Beyond the first job of each thread: a process that dies costs an unstarted job one attempt.
        if len(claims) >= threads and (facts.attempts > 0 or facts.max_attempts < 2 or budget.limits(kind)):
            break
        worker, token = request.workers[len(claims) % threads], tokens[len(claims)]
        starts.append((decision.attempts, worker, token, now_ms + length, length, now_ms, row[0]))
        changes.append(
            Change(row[0], kind, queue, JobState.QUEUED, JobState.RUNNING, decision.attempts, None, now)
        )
        claims.append(_claim(conn, queue, kind, row, facts, decision.attempts, token, worker, now_ms))
        budget.spend(kind)
        if len(claims) == most:
            break
    if starts:
        conn.executemany(START, starts)
    return claims


def _claim(
    conn: apsw.Connection,
    queue: str,
    kind: str,
    row: tuple[Any, ...],
    facts: Facts,
    attempt: int,
    token: str,
    worker: str,
    now_ms: int,
) -> Claim:
    job_id, priority, run_at, payload, parent_id, actor, _, _, _, _, slot, catch_up = row[:12]
    tenant_id, subject, meta, schedule = _NO_TEXTS if row[6:10] == _NO_TEXTS else map(texts.lenient, row[6:10])
    return Claim(
        job_id,
        kind,
        queue,
        priority,
        texts.strict(_body(conn, job_id) if payload is None else payload),
        attempt,
        facts.max_attempts,
        facts.deferrals,
        parent_id,
        actor.decode(errors="replace"),
        tenant_id,
        subject,
        meta,
        schedule,
        None if slot is None else rows.from_ms(slot),
        facts.last_error,
        token,
        worker,
        now_ms - run_at,
        bool(catch_up),
    )


def _body(conn: apsw.Connection, job_id: int) -> bytes:
    """Return a payload that lives beside its row; what somebody removed by hand is empty, and so no JSON."""
    found: list[Any] = conn.execute(BODY, (job_id,)).fetchall()
    return found[0][0] if found else b""
