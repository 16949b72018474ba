"""The jobs that a claim may start, best first.

The first row of each (queue, kind) comes with one statement. What follows it is read when somebody asks: the rest of
its lane, a page at a time, then the first row of the next lower priority.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw

from jobq.model.lease import ClaimRequest
from jobq.store.sqlite import lanes, rows

#: What a claim needs of a row; it begins with what the order goes by. Texts travel as bytes: one that somebody wrote in
#: another encoding must not make the driver raise in the middle of a claim. A large payload stays where it is.
COLUMNS = (
    "jobq_job.id, priority, run_at, CAST(payload AS BLOB), parent_id, CAST(actor AS BLOB), CAST(tenant_id AS BLOB), "
    "CAST(subject AS BLOB), CAST(meta AS BLOB), CAST(schedule AS BLOB), slot, catch_up, " + rows.FACT_COLUMNS
)

# jobq_job_lane: one seek for each (queue, kind), and one in jobq_job_lease for when a lease ends first: a claim has to
# know it, and a statement of its own costs more than the seek.
FIRST = lanes.OPEN + f"""
SELECT open.queue, open.kind, open.room, ({lanes.NEXT_EXPIRY}), {COLUMNS}
FROM open JOIN jobq_job ON jobq_job.id = (
    SELECT head.id FROM jobq_job AS head
    WHERE head.state = 'queued' AND head.queue = open.queue AND head.kind = open.kind
    ORDER BY head.priority DESC, head.run_at, head.id LIMIT 1)
"""
# jobq_job_lane: what follows a row in its lane.
ROWS = f"""
SELECT {COLUMNS} FROM jobq_job
WHERE state = 'queued' AND queue = ? AND kind = ? AND priority = ? AND (run_at, id) > (?, ?) AND run_at <= ?
ORDER BY run_at, id LIMIT ?
"""
# jobq_job_lane: the first row of the next lane.
LOWER = f"""
SELECT {COLUMNS} FROM jobq_job
WHERE state = 'queued' AND queue = ? AND kind = ? AND priority < ? ORDER BY priority DESC, run_at, id LIMIT 1
"""

Row = tuple[Any, ...]


class Head(NamedTuple):
    """The first row of a queue and kind, due or not; how many more of the kind may run is None without a cap."""

    queue: str
    kind: str
    room: int | None
    #: When the first lease of all running jobs ends, in milliseconds; None while nothing runs.
    expiry: int | None
    row: Row


def first(conn: apsw.Connection, request: ClaimRequest) -> list[Head]:
    """Return the first row of each queue and kind that may start jobs."""
    found: list[Row] = conn.execute(FIRST, lanes.open_bindings(conn, request)).fetchall()
    return [Head(row[0], row[1], row[2], row[3], row[4:]) for row in found]


def in_order(
    conn: apsw.Connection, heads: Sequence[Head], allows: Callable[[str], bool], now_ms: int, size: int
) -> Iterator[tuple[str, str, Row]]:
    """Merge what is due, best first: yield queue, kind and row. A kind that is no more allowed is left out."""
    heap: list[tuple[tuple[int, int, int], str, str, Row, Iterator[Row]]] = []
    for queue, kind, _, _, head in heads:
        line = _line(conn, queue, kind, head, now_ms, size)
        row = next(line, None)
        if row is not None:
            heap.append((_rank(row), queue, kind, row, line))
    heapq.heapify(heap)
    while heap:
        _, queue, kind, row, line = heap[0]
        if not allows(kind):
            heapq.heappop(heap)
            continue
        yield queue, kind, row
        following = next(line, None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (_rank(following), queue, kind, following, line))


def _rank(row: Row) -> tuple[int, int, int]:
    return -row[1], row[2], row[0]


def _line(conn: apsw.Connection, queue: str, kind: str, head: Row, now_ms: int, size: int) -> Iterator[Row]:
    """Yield the due rows of one queue and kind from the first row on, lane after lane."""
    lane = [head]
    while lane:
        page = lane if lane[0][2] <= now_ms else []
        while page:
            yield from page
            job_id, priority, run_at = page[-1][:3]
            page = conn.execute(ROWS, (queue, kind, priority, run_at, job_id, now_ms, size)).fetchall()
        lane = conn.execute(LOWER, (queue, kind, lane[0][1])).fetchall()
