"""Self-heal: failed jobs whose cause may have passed run again, a few times."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import apsw

from jobq.model.events import Change
from jobq.model.job import Actor
from jobq.store.sqlite import requeue, rows

#: How long a failed job has rested before it heals; how often it may is a part of the index.
REST = timedelta(minutes=15)

# One whose key another job holds, or of a retired kind, cannot run; it is left out here, so that it is never in the way
# of the others.
_MAY_HEAL = """
state = 'failed' AND failure_class = 'transient' AND heals < 3 AND finished_at <= ?
  AND NOT EXISTS (SELECT 1 FROM jobq_job AS holder
                  WHERE holder.dedupe_key = job.dedupe_key AND holder.state IN ('queued', 'running'))
  AND NOT EXISTS (SELECT 1 FROM jobq_kind WHERE name = job.kind AND retired = 1)
"""
# jobq_job_heal: oldest first, without those that healed three times.
HEALABLE = "SELECT id FROM jobq_job AS job WHERE " + _MAY_HEAL + "ORDER BY finished_at LIMIT 500"
# The primary key, once for each id.
STILL_HEALABLE = """
SELECT job.id FROM json_each(?) AS asked CROSS JOIN jobq_job AS job ON job.id = asked.value
WHERE """ + _MAY_HEAL
# jobq_job_ended.
FAILED = "SELECT count(*) FROM jobq_job WHERE state = 'failed' AND finished_at IS NOT NULL"
FAILED_OF_CLASS = """
SELECT count(*) FROM jobq_job
WHERE state = 'failed' AND finished_at IS NOT NULL AND (failure_class IS 'unrecoverable') = ?
"""


def healable(conn: apsw.Connection, *, now: datetime) -> list[int]:
    """Return up to 500 jobs that may heal now."""
    found: list[Any] = conn.execute(HEALABLE, (rows.to_ms(now - REST),)).fetchall()
    return [job_id for (job_id,) in found]


def heal(conn: apsw.Connection, changes: list[Change], ids: Sequence[int], *, now: datetime) -> tuple[int, ...]:
    """Requeue those of the jobs that still may heal, and return which."""
    found: list[Any] = conn.execute(STILL_HEALABLE, (json.dumps(list(ids)), rows.to_ms(now - REST))).fetchall()
    ids = [job_id for (job_id,) in found]
    return requeue.requeue(conn, changes, ids, queue=None, actor=Actor.SYSTEM, now=now, healing=True).ids


def count_failed(conn: apsw.Connection, *, unrecoverable: bool | None) -> int:
    """Count failed jobs, all or those that are unrecoverable or not."""
    cursor = conn.execute(FAILED) if unrecoverable is None else conn.execute(FAILED_OF_CLASS, (unrecoverable,))
    found: list[Any] = cursor.fetchall()
    return int(found[0][0])
