"""What stands around one job: the conditions of a claim, looked at for it alone."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import apsw

from jobq.model.circumstances import MOST_NAMED, Circumstances, Pause
from jobq.model.job import JobInfo, JobState
from jobq.model.lease import ClaimRequest
from jobq.store.sqlite import lanes, lookup, rows, texts

# The primary keys of jobq_job, jobq_queue and jobq_kind.
JOB = f"SELECT {rows.INFO_COLUMNS} FROM jobq_job WHERE id = ?"
QUEUE = "SELECT paused_at, CAST(paused_by AS BLOB), CAST(paused_why AS BLOB) FROM jobq_queue WHERE name = ?"
KIND = "SELECT paused_at, CAST(paused_by AS BLOB), CAST(paused_why AS BLOB), retired, cap FROM jobq_kind WHERE name = ?"
# jobq_job_lease: what runs is few.
RUNNING = "SELECT id FROM jobq_job WHERE state = 'running' AND kind = ?"
# The primary key of jobq_run, backwards.
LAST_RUN = "SELECT started_at, CAST(error AS BLOB) FROM jobq_run WHERE job_id = ? ORDER BY number DESC LIMIT 1"

# jobq_job_lane, at most so many entries of it: the lanes of a better priority, and what is ahead in those of its own.
BETTER = lanes.LANES + """
SELECT count(*) FROM (
    SELECT 1 FROM lane CROSS JOIN jobq_job AS job
    WHERE job.state = 'queued' AND job.queue = lane.queue AND job.kind = lane.kind AND job.priority = lane.priority
      AND lane.priority > :priority AND job.run_at <= :now
    UNION ALL
    SELECT 1 FROM lane CROSS JOIN jobq_job AS job
    WHERE job.state = 'queued' AND job.queue = lane.queue AND job.kind = lane.kind AND job.priority = lane.priority
      AND lane.priority = :priority AND (job.run_at, job.id) < (:run_at, :id)
    LIMIT 1001)
"""


def circumstances(
    conn: apsw.Connection,
    job_id: int,
    *,
    served: Mapping[str, tuple[str, ...]],
    limits: Mapping[str, int],
    now: datetime,
) -> Circumstances | None:
    """Return what is to know of a job; None where there is none, or none that can be read."""
    for job in lookup.readable(conn.execute(JOB, (job_id,)), rows.job_info):
        if job.state is not JobState.QUEUED:
            return Circumstances(job)
        request = ClaimRequest((), 0.0, served.get(job.queue), (job.queue,), kind_limits=limits)
        return _of_queued(conn, job, request, now)
    return None


def _of_queued(conn: apsw.Connection, job: JobInfo, request: ClaimRequest, now: datetime) -> Circumstances:
    queue: Any = conn.execute(QUEUE, (job.queue,)).fetchone()
    kind: Any = conn.execute(KIND, (job.kind,)).fetchone() or (None, None, None, 0, None)
    running: list[Any] = conn.execute(RUNNING, (job.kind,)).fetchall()
    ids = sorted(job_id for (job_id,) in running)
    return Circumstances(
        job,
        queue_pause=None if queue is None else _pause(*queue),
        kind_pause=_pause(*kind[:3]),
        retired=bool(kind[3]),
        cap=request.kind_limits.get(job.kind, kind[4]),
        running=len(ids),
        running_ids=tuple(ids[:MOST_NAMED]),
        deferred=job.deferrals > 0 and not _failed_last(conn, job),
        better=_better(conn, job, request, now) if job.run_at <= now else 0,
    )


def _pause(at: int | None, by: bytes | None, why: bytes | None) -> Pause | None:
    return None if at is None else Pause(rows.from_ms(at), texts.lenient(by), texts.lenient(why))


def _failed_last(conn: apsw.Connection, job: JobInfo) -> bool:
    """Whether the last run failed; a deferral leaves no line of the history, and its reason on the row."""
    found: Any = conn.execute(LAST_RUN, (job.id,)).fetchone()
    if found is None:
        return False
    started_at, error = found
    return started_at == rows.optional_ms(job.started_at) and texts.lenient(error) == job.last_error


def _better(conn: apsw.Connection, job: JobInfo, request: ClaimRequest, now: datetime) -> int:
    bindings = lanes.bindings(conn, request, rows.to_ms(now))
    own = {"priority": job.priority, "run_at": rows.to_ms(job.run_at), "id": job.id}
    found: list[Any] = conn.execute(BETTER, {**bindings, **own}).fetchall()
    return int(found[0][0])
