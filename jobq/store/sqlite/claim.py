"""Take the best claimable jobs under new tokens.

A claim finds the heads of the lanes, then merges the lanes in exact order: its cost grows with the number of lanes,
never with the backlog.
"""

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.effects import Facts, Moment
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.model.lease import Claim, ClaimRequest
from jobq.model.state_machine import Trigger, decide
from jobq.store.sqlite import rows, settle, texts
from jobq.store.sqlite.lanes import Lane, heads

# jobq_job_lane: the rows of one lane in the order in which they run. Texts travel as bytes: one that somebody wrote in
# another encoding must not make the driver raise in the middle of a claim.
ROWS = """
SELECT id, run_at, CAST(coalesce(payload, (SELECT body FROM jobq_payload WHERE job_id = jobq_job.id), '') AS BLOB),
       parent_id, actor, CAST(tenant_id AS BLOB), CAST(subject AS BLOB), CAST(meta AS BLOB),
       CAST(schedule AS BLOB), slot, catch_up,
       """ + rows.FACT_COLUMNS + """
FROM jobq_job
WHERE state = 'queued' AND queue = ? AND kind = ? AND priority = ? AND (run_at, id) > (?, ?) AND run_at <= ?
ORDER BY run_at, id LIMIT ?
"""

START = """
UPDATE jobq_job
SET state = 'running', attempts = ?, worker = ?, token = ?, lease_until = ?, lease_length = ?, started_at = ?,
    progress = NULL
WHERE id = ? AND state = 'queued'
"""


class Budget:
    """How many more jobs of each capped or gated kind this claim may start."""

    def __init__(self, lanes: Sequence[Lane], request: ClaimRequest) -> None:
        self._room = {lane.kind: lane.room for lane in lanes if lane.room is not None}
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
) -> list[Claim]:
    """Start the best jobs in exact order; ``tokens`` has one for each that may start."""
    now_ms, length = rows.to_ms(now), rows.span_ms(request.lease_length)
    threads, most = len(request.workers), len(request.workers) * request.hand
    if most < 1:
        return []
    lanes = heads(conn, request, now_ms)
    budget = Budget(lanes, request)
    claims: list[Claim] = []
    starts: list[tuple[Any, ...]] = []
    for lane, row in _in_order(conn, lanes, budget, now_ms, most):
        facts = rows.facts(row[11:])
        decision = decide(facts, Trigger.CLAIM, Moment(now))
        assert decision is not None, "the machine has a rule for every claim of a queued row"
        if decision.state is not JobState.RUNNING:
            settle.write(conn, changes, settle.Subject(row[0], lane.kind, lane.queue), facts, decision, now=now)
            continue
        # Beyond the first job of each thread: a process that dies costs an unstarted job one attempt.
        if len(claims) >= threads and (facts.attempts > 0 or facts.max_attempts < 2 or budget.limits(lane.kind)):
            break
        worker, token = request.workers[len(claims) % threads], tokens[len(claims)]
        starts.append((decision.attempts, worker, token, now_ms + length, length, now_ms, row[0]))
        changes.append(
            Change(row[0], lane.kind, lane.queue, JobState.QUEUED, JobState.RUNNING, decision.attempts, None, now)
        )
        claims.append(_claim(lane, row, facts, decision.attempts, token, worker, now_ms))
        budget.spend(lane.kind)
        if len(claims) == most:
            break
    conn.executemany(START, starts)
    return claims


def _in_order(
    conn: apsw.Connection, lanes: Sequence[Lane], budget: Budget, now_ms: int, most: int
) -> Iterator[tuple[Lane, tuple[Any, ...]]]:
    """Merge the lanes: yield their rows, best first. A lane whose kind ran out of budget is dropped, not walked."""
    heap: list[tuple[tuple[int, int, int], Lane, tuple[Any, ...] | None, Iterator[tuple[Any, ...]]]] = [
        ((-lane.priority, lane.run_at, lane.head), lane, None, _rows(conn, lane, now_ms, most)) for lane in lanes
    ]
    heapq.heapify(heap)
    while heap:
        _, lane, row, following = heapq.heappop(heap)
        if not budget.allows(lane.kind):
            continue
        yield lane, row or next(following)
        row = next(following, None)
        if row is not None:
            heapq.heappush(heap, ((-lane.priority, row[1], row[0]), lane, row, following))


def _rows(conn: apsw.Connection, lane: Lane, now_ms: int, size: int) -> Iterator[tuple[Any, ...]]:
    """Read a lane from its head on, a page at a time."""
    run_at, job_id = lane.run_at, lane.head - 1
    while True:
        bindings = (lane.queue, lane.kind, lane.priority, run_at, job_id, now_ms, size)
        page: list[Any] = conn.execute(ROWS, bindings).fetchall()
        yield from page
        if len(page) < size:
            return
        job_id, run_at = page[-1][:2]


def _claim(
    lane: Lane, row: tuple[Any, ...], facts: Facts, attempt: int, token: str, worker: str, now_ms: int
) -> Claim:
    job_id, run_at, payload, parent_id, actor, tenant_id, subject, meta, schedule, slot, catch_up = row[:11]
    return Claim(
        job_id,
        lane.kind,
        lane.queue,
        lane.priority,
        texts.strict(payload),
        attempt,
        facts.max_attempts,
        facts.deferrals,
        parent_id,
        actor,
        texts.lenient(tenant_id),
        texts.lenient(subject),
        texts.lenient(meta),
        texts.lenient(schedule),
        None if slot is None else rows.from_ms(slot),
        facts.last_error,
        token,
        worker,
        now_ms - run_at,
        bool(catch_up),
    )
