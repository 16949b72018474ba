"""A job's family: everything below it, its parts, their parts, and so on.

The work grows with the family and with nothing else. UNION, and not UNION ALL: rows that were made each other's parents
by hand end the walk instead of keeping it going.
"""

import json
from collections.abc import Sequence
from typing import Any

import apsw

from jobq.model.job import JobState
from jobq.store.sqlite import texts

# jobq_job_parent for each member, then the primary key.
UNFINISHED = """
WITH RECURSIVE family (id) AS (
    SELECT value FROM json_each(?)
    UNION
    SELECT part.id FROM family CROSS JOIN jobq_job AS part ON part.parent_id = family.id
)
SELECT job.id FROM family CROSS JOIN jobq_job AS job ON job.id = family.id
WHERE job.state IN ('queued', 'running')
"""
PROGRESS = """
WITH RECURSIVE family (id) AS (
    SELECT id FROM jobq_job WHERE parent_id = ?
    UNION
    SELECT part.id FROM family CROSS JOIN jobq_job AS part ON part.parent_id = family.id
)
SELECT job.state, count(*) FROM family CROSS JOIN jobq_job AS job ON job.id = family.id GROUP BY job.state
"""


def with_unfinished(conn: apsw.Connection, ids: Sequence[int]) -> list[int]:
    """Return these ids and then those of the queued and running jobs below them, each once."""
    found: list[Any] = conn.execute(UNFINISHED, (json.dumps(list(ids)),)).fetchall()
    return list(dict.fromkeys([*ids, *(job_id for (job_id,) in found)]))


def progress(conn: apsw.Connection, job_id: int) -> dict[JobState, int]:
    """Count the jobs below one by state; every state is a key."""
    counts = dict(texts.legible(conn.execute(PROGRESS, (job_id,))))
    return {state: counts.get(state.value, 0) for state in JobState}
