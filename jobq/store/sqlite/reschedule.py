"""Change when queued jobs run: one by hand, or all that were due when the clock was set back."""

from datetime import datetime

import apsw

from jobq.errors import JobNotFound
from jobq.store.sqlite import rows

# The primary key. A priority that was put out of range by hand becomes the nearest one that there is.
EXISTS = "SELECT 1 FROM jobq_job WHERE id = ?"
RESCHEDULE = """
UPDATE jobq_job SET run_at = coalesce(?, run_at), priority = max(-1000, min(1000, coalesce(?, priority)))
WHERE id = ? AND state = 'queued'
"""

# jobq_job_lane, as a whole: clocks are set back rarely. A row that was made, or ran, since the step is on the new time
# already: its due time was reckoned by the clock as it is now.
MOVE_DUE_TIMES = """
UPDATE jobq_job SET run_at = run_at - :step
WHERE state = 'queued' AND run_at > :now AND run_at <= :now + :step
  AND NOT created_at BETWEEN :since - :step AND :now
  AND NOT coalesce(started_at, created_at) BETWEEN :since - :step AND :now
"""


def reschedule(
    conn: apsw.Connection,
    job_id: int,
    *,
    run_at: datetime | None,
    delay: float | None,
    priority: int | None,
    now: datetime,
) -> bool:
    """Change a queued job; return False for a job in another state."""
    due = rows.optional_ms(run_at)
    if delay is not None:
        due = rows.to_ms(now) + max(0, rows.span_ms(delay))
    conn.execute(RESCHEDULE, (due, priority, job_id))
    if conn.changes():
        return True
    if conn.execute(EXISTS, (job_id,)).fetchone() is None:
        raise JobNotFound(job_id)
    return False


def move_due_times(conn: apsw.Connection, *, since: datetime, stepped_back: float, now: datetime) -> int:
    """Move due times that had passed before the step back with the clock; a second observer finds nothing to move."""
    bindings = {"step": rows.span_ms(stepped_back), "since": rows.to_ms(since), "now": rows.to_ms(now)}
    conn.execute(MOVE_DUE_TIMES, bindings)
    return conn.changes()
