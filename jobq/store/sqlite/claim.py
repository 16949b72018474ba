"""Take the best claimable jobs under new tokens; see what could be taken.

A lane is one (queue, kind, priority) among queued rows. The index jobq_job_lane stores each lane's rows together in the
order in which they run, so the head of a lane is one seek, whatever waits in it, in front of it or beside it. A claim
finds the heads, then merges the lanes in exact order: its cost grows with the number of lanes, never with the backlog.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

from jobq.model.effects import Facts, Moment
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.model.lease import Claim, ClaimRequest
from jobq.model.state_machine import Trigger, decide
from jobq.store.base import Outlook
from jobq.store.sqlite import rows, settle

KINDS = "SELECT name FROM jobq_kind WHERE retired = 0"
QUEUES = "SELECT name FROM jobq_queue WHERE paused_at IS NULL"

# kind: primary key of jobq_kind; running rows are counted in jobq_job_lease, and only for capped kinds.
# lane: one seek in jobq_job_lane for each priority of each (queue, kind), and one that finds no further priority.
LANES = """
WITH RECURSIVE
kind (name, room) AS MATERIALIZED (
    SELECT asked.value,
           coalesce(own.value, row.cap) - iif(
               coalesce(own.value, row.cap) IS NULL, 0,
               (SELECT count(*) FROM jobq_job WHERE state = 'running' AND kind = asked.value))
    FROM json_each(:kinds) AS asked
    LEFT JOIN jobq_kind AS row ON row.name = asked.value
    LEFT JOIN json_each(:limits) AS own ON own.key = asked.value
    WHERE coalesce(row.retired, 0) = 0
),
lane (queue, kind, room, priority) AS (
    SELECT queue.name, kind.name, kind.room,
           (SELECT max(priority) FROM jobq_job
            WHERE state = 'queued' AND queue = queue.name AND kind = kind.name)
    FROM json_each(:queues) AS wanted
    JOIN jobq_queue AS queue ON queue.name = wanted.value AND queue.paused_at IS NULL
    JOIN kind ON kind.room IS NULL OR kind.room > 0
    UNION ALL
    SELECT lane.queue, lane.kind, lane.room,
           (SELECT max(job.priority) FROM jobq_job AS job
            WHERE job.state = 'queued' AND job.queue = lane.queue AND job.kind = lane.kind
              AND job.priority < lane.priority)
    FROM lane WHERE lane.priority IS NOT NULL
)
"""

HEADS = LANES + """
SELECT lane.queue, lane.kind, lane.room, lane.priority, head.run_at, head.id
FROM lane JOIN jobq_job AS head ON head.id = (
    SELECT id FROM jobq_job
    WHERE state = 'queued' AND queue = lane.queue AND kind = lane.kind AND priority = lane.priority AND run_at <= :now
    ORDER BY run_at, id LIMIT 1)
WHERE lane.priority IS NOT NULL
"""

LOOK = LANES + """
SELECT lane.queue,
       EXISTS (SELECT 1 FROM jobq_job
               WHERE state = 'queued' AND queue = lane.queue AND kind = lane.kind AND priority = lane.priority
                 AND run_at <= :now),
       (SELECT min(run_at) FROM jobq_job
        WHERE state = 'queued' AND queue = lane.queue AND kind = lane.kind AND priority = lane.priority
          AND run_at > :now)
FROM lane WHERE lane.priority IS NOT NULL
"""

# jobq_job_lease.
NEXT_EXPIRY = "SELECT min(lease_until) FROM jobq_job WHERE state = 'running'"

# jobq_job_lane: the rows of one lane in the order in which they run.
ROWS = """
SELECT id, run_at, coalesce(payload, (SELECT body FROM jobq_payload WHERE job_id = jobq_job.id), ''),
       parent_id, actor, tenant_id, subject, meta, schedule, slot,
       state, attempts, max_attempts, deferrals, max_deferrals, cancel_requested_at IS NOT NULL, lease_until, last_error
FROM jobq_job
WHERE state = 'queued' AND queue = ? AND kind = ? AND priority = ? AND (run_at, id) > (?, ?) AND run_at <= ?
ORDER BY run_at, id LIMIT ?
"""

START = """
UPDATE jobq_job
SET state = 'running', attempts = ?, worker = ?, token = ?, lease_until = ?, lease_length = ?, started_at = ?
WHERE id = ? AND state = 'queued'
"""


class Lane(NamedTuple):
    """One lane with a claimable head; how many more rows of its kind may run is None without a cap."""

    queue: str
    kind: str
    room: int | None
    priority: int
    run_at: int
    head: int


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
    """Reclaim what expired, then start the best jobs in exact order; ``tokens`` has one for each that may start."""
    settle.reclaim(conn, changes, now=now, hold_expired=request.hold_expired)
    now_ms, length = rows.to_ms(now), rows.span_ms(request.lease_length)
    threads, most = len(request.workers), len(request.workers) * request.hand
    lanes = _heads(conn, request, now_ms)
    budget = Budget(lanes, request)
    claims: list[Claim] = []
    starts: list[tuple[Any, ...]] = []
    for lane, row in _in_order(conn, lanes, budget, now_ms, most):
        facts = rows.facts(row[10:])
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


def look(conn: apsw.Connection, request: ClaimRequest, *, now: datetime) -> Outlook:
    """Say what a claim would find, from one snapshot."""
    now_ms = rows.to_ms(now)
    ready, due = set(), []
    for queue, claimable, next_run in conn.execute(LOOK, _lane_bindings(conn, request, now_ms)).fetchall():
        if claimable:
            ready.add(queue)
        if next_run is not None:
            due.append(next_run)
    (expiry,) = conn.execute(NEXT_EXPIRY).fetchone()
    expired = expiry is not None and expiry <= now_ms
    if expiry is not None and not expired:
        due.append(expiry)
    return Outlook(frozenset(ready), expired, rows.from_ms(min(due)) if due else None)


def _heads(conn: apsw.Connection, request: ClaimRequest, now_ms: int) -> list[Lane]:
    return [Lane._make(found) for found in conn.execute(HEADS, _lane_bindings(conn, request, now_ms)).fetchall()]


def _lane_bindings(conn: apsw.Connection, request: ClaimRequest, now_ms: int) -> dict[str, Any]:
    kinds, queues, gates = request.kinds, request.queues, request.gates
    if kinds is None:
        kinds = tuple(name for (name,) in conn.execute(KINDS).fetchall())
    if queues is None:
        queues = tuple(name for (name,) in conn.execute(QUEUES).fetchall())
    if gates:
        kinds = tuple(kind for kind in kinds if kind not in gates or request.permits.get(gates[kind], 0) > 0)
    limits = json.dumps(dict(request.kind_limits)) if request.kind_limits else "{}"
    return {"kinds": _as_json(kinds), "queues": _as_json(queues), "limits": limits, "now": now_ms}


@lru_cache(maxsize=256)
def _as_json(names: tuple[str, ...]) -> str:
    return json.dumps(names)


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
        page = conn.execute(ROWS, (lane.queue, lane.kind, lane.priority, run_at, job_id, now_ms, size)).fetchall()
        yield from page
        if len(page) < size:
            return
        job_id, run_at = page[-1][:2]


def _claim(
    lane: Lane, row: tuple[Any, ...], facts: Facts, attempt: int, token: str, worker: str, now_ms: int
) -> Claim:
    job_id, run_at, payload, parent_id, actor, tenant_id, subject, meta, schedule, slot = row[:10]
    return Claim(
        job_id,
        lane.kind,
        lane.queue,
        lane.priority,
        payload,
        attempt,
        facts.max_attempts,
        facts.deferrals,
        parent_id,
        actor,
        tenant_id,
        subject,
        meta,
        schedule,
        None if slot is None else rows.from_ms(slot),
        facts.last_error,
        token,
        worker,
        now_ms - run_at,
    )
