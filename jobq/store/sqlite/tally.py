"""Count jobs by queue, kind and state, and find the oldest that could run."""

from collections import defaultdict
from datetime import datetime

import apsw

from jobq.model.job import JobState
from jobq.model.lease import ClaimRequest
from jobq.model.stats import ENDED, LaneTally
from jobq.store.sqlite import lanes, rows, texts

# jobq_job_lane, one seek for each pair. A count of its own for each: grouping would sort the rows.
QUEUED = """
SELECT q.name, k.name, 'queued',
    (SELECT count(*) FROM jobq_job WHERE state = 'queued' AND queue = q.name AND kind = k.name)
FROM jobq_queue AS q CROSS JOIN jobq_kind AS k
"""
# jobq_job_lease: what runs.
RUNNING = "SELECT queue, kind, 'running', count(*) FROM jobq_job WHERE state = 'running' GROUP BY queue, kind"
# jobq_job_ended holds all that is read. The rows are sorted, which takes half as long by one text as by three; neither
# a state nor the name of a queue has a space in it.
ENDED_JOBS = """
SELECT queue, kind, state, count(*) FROM jobq_job
WHERE state IN ('succeeded', 'failed', 'cancelled') AND finished_at IS NOT NULL
GROUP BY state || ' ' || queue || ' ' || kind
"""
ENDED_SINCE = """
SELECT queue, kind, state, count(*) FROM jobq_job
WHERE state IN ('succeeded', 'failed', 'cancelled') AND finished_at > ? AND finished_at IS NOT NULL
GROUP BY state || ' ' || queue || ' ' || kind
"""
#: Milliseconds.
_MINUTE = 60_000
#: What a claim of a worker that serves everything would ask for.
_ANY = ClaimRequest(workers=("",), lease_length=1.0)

_Counts = defaultdict[tuple[str, str], dict[JobState, int]]


def tally(conn: apsw.Connection, *, now: datetime) -> list[LaneTally]:
    """Return a tally for each kind in each queue that has jobs, by name."""
    now_ms = rows.to_ms(now)
    states: _Counts = defaultdict(dict)
    for statement in (QUEUED, RUNNING, ENDED_JOBS):
        _count(states, conn.execute(statement))
    recent: _Counts = defaultdict(dict)
    _count(recent, conn.execute(ENDED_SINCE, (now_ms - _MINUTE,)))
    oldest: dict[tuple[str, str], int] = {}
    for head in lanes.heads(conn, _ANY, now_ms):
        lane = (head.queue, head.kind)
        oldest[lane] = min(head.run_at, oldest.get(lane, head.run_at))
    return [
        LaneTally(
            queue=lane[0],
            kind=lane[1],
            states={state: counted.get(state, 0) for state in JobState},
            last_minute={state: recent[lane].get(state, 0) for state in ENDED},
            oldest_runnable=(now_ms - oldest[lane]) / 1000 if lane in oldest else None,
        )
        for lane, counted in sorted(states.items())
    ]


def _count(counts: _Counts, cursor: apsw.Cursor) -> None:
    for queue, kind, state, number in texts.legible(cursor):
        if number:
            counts[queue, kind][JobState(state)] = number
