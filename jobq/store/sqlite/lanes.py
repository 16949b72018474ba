"""What could be claimed: the lanes that have a claimable head, found without walking over what may not run.

A lane is one (queue, kind, priority) among queued rows. The index jobq_job_lane stores each lane's rows together in the
order in which they run, so the head of a lane is one seek, whatever waits in it, in front of it or beside it.
"""

import json
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

from jobq.model.lease import ClaimRequest
from jobq.store.base import Outlook
from jobq.store.sqlite import rows, texts

KINDS = "SELECT name FROM jobq_kind WHERE retired = 0 AND paused_at IS NULL"
QUEUES = "SELECT name FROM jobq_queue WHERE paused_at IS NULL"

# The kinds of each queue that may start jobs. Primary keys of jobq_queue and jobq_kind; running rows are counted in
# jobq_job_lease, and only for capped kinds.
OPEN = """
WITH RECURSIVE
open (queue, kind, room) AS (
    SELECT queue.name, asked.key,
           coalesce(asked.value, row.cap) - iif(
               coalesce(asked.value, row.cap) IS NULL, 0,
               (SELECT count(*) FROM jobq_job WHERE state = 'running' AND kind = asked.key)) AS room
    FROM json_each(:queues) AS wanted
    JOIN jobq_queue AS queue ON queue.name = wanted.value AND queue.paused_at IS NULL
    CROSS JOIN json_each(:kinds) AS asked
    LEFT JOIN jobq_kind AS row ON row.name = asked.key
    WHERE coalesce(row.retired, 0) = 0 AND row.paused_at IS NULL AND (room IS NULL OR room > 0)
)
"""
# One seek in jobq_job_lane for each priority of each (queue, kind), and one that finds no further priority.
LANES = OPEN + """,
lane (queue, kind, room, priority) AS (
    SELECT open.queue, open.kind, open.room,
           (SELECT max(priority) FROM jobq_job
            WHERE state = 'queued' AND queue = open.queue AND kind = open.kind)
    FROM open
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


class Lane(NamedTuple):
    """One lane with a claimable head; how many more rows of its kind may run is None without a cap."""

    queue: str
    kind: str
    room: int | None
    priority: int
    run_at: int
    head: int


def look(conn: apsw.Connection, request: ClaimRequest, *, now: datetime) -> Outlook:
    """Say what a claim would find, from one snapshot."""
    now_ms = rows.to_ms(now)
    ready, due = set(), []
    lanes: list[Any] = conn.execute(LOOK, bindings(conn, request, now_ms)).fetchall()
    for queue, claimable, next_run in lanes:
        if claimable:
            ready.add(queue)
        if next_run is not None:
            due.append(next_run)
    expiry: Any = conn.execute(NEXT_EXPIRY).fetchall()[0][0]
    expired = expiry is not None and expiry <= now_ms
    if expiry is not None and not expired:
        due.append(expiry)
    return Outlook(frozenset(ready), expired, rows.from_ms(min(due)) if due else None)


def heads(conn: apsw.Connection, request: ClaimRequest, now_ms: int) -> list[Lane]:
    """Return every lane in which a job may start now."""
    return [Lane._make(found) for found in conn.execute(HEADS, bindings(conn, request, now_ms)).fetchall()]


def bindings(conn: apsw.Connection, request: ClaimRequest, now_ms: int) -> dict[str, Any]:
    """Return the bindings of :data:`LANES`."""
    return {**open_bindings(conn, request), "now": now_ms}


def open_bindings(conn: apsw.Connection, request: ClaimRequest) -> dict[str, Any]:
    """Return the bindings of :data:`OPEN`: a list of queues, and the kinds with the limits that win over their caps."""
    kinds, queues, gates, limits = request.kinds, request.queues, request.gates, request.kind_limits
    if kinds is None:
        kinds = _names(conn, KINDS)
    if queues is None:
        queues = _names(conn, QUEUES)
    if gates:
        kinds = tuple(kind for kind in kinds if kind not in gates or request.permits.get(gates[kind], 0) > 0)
    return {"kinds": _as_object(kinds, tuple(map(limits.get, kinds))), "queues": _as_list(queues)}


def _names(conn: apsw.Connection, statement: str) -> tuple[str, ...]:
    return tuple(name for (name,) in texts.legible(conn.execute(statement)))


@lru_cache(maxsize=256)
def _as_list(names: tuple[str, ...]) -> str:
    # A queue that is found twice would hand out its jobs twice.
    return json.dumps(list(dict.fromkeys(names)))


@lru_cache(maxsize=256)
def _as_object(names: tuple[str, ...], limits: tuple[int | None, ...]) -> str:
    return json.dumps(dict(zip(names, limits, strict=True)))
