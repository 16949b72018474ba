"""Remove what has ended long ago, a bounded piece at a time, and give the space back."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.job import JobState
from jobq.model.pruning import Place, Prunable
from jobq.store.sqlite import rows

#: How many jobs a page looks at.
PAGE = 1_000
#: What one transaction removes at most: a row or a child that forgets its parent is 1, and so are 8 KiB of text.
MOST_WEIGHT = 50
#: Before the first job of a state.
_START: Place = (-(2**63), b"", b"", 0)
#: A file is cut back while more than this share of it is free, and more than that many pages.
_FREE_SHARE, _FREE_PAGES = 0.02, 256
#: INCREMENTAL, https://sqlite.org/pragma.html#pragma_auto_vacuum
_INCREMENTAL = 2

# jobq_job_ended alone, then jobq_job_parent, jobq_payload and jobq_result by key. octet_length() does not load a text.
# Names travel as bytes: one that somebody wrote in another encoding must not make the driver raise.
PRUNABLE = """
SELECT id, finished_at, CAST(queue AS BLOB), CAST(kind AS BLOB),
    (SELECT count(*) FROM (SELECT 1 FROM jobq_job AS child WHERE child.parent_id = job.id LIMIT 501)),
    coalesce((SELECT octet_length(body) FROM jobq_payload WHERE job_id = job.id), 0)
        + coalesce((SELECT octet_length(body) FROM jobq_result WHERE job_id = job.id), 0)
FROM jobq_job AS job
WHERE state = ? AND finished_at IS NOT NULL AND finished_at <= ?
  AND (finished_at, queue, kind, id) > (?, CAST(? AS TEXT), CAST(? AS TEXT), ?)
ORDER BY finished_at, queue, kind, id LIMIT ?
"""
# jobq_job_parent; only of jobs that have children.
UNENDED_CHILD = "SELECT 1 FROM jobq_job WHERE parent_id = ? AND finished_at IS NULL LIMIT 1"
# The same walk in one go, for a rehearsal.
COUNT = """
SELECT count(*), coalesce(sum(
    EXISTS (SELECT 1 FROM jobq_job AS child WHERE child.parent_id = job.id AND child.finished_at IS NULL)
    OR (SELECT count(*) FROM (SELECT 1 FROM jobq_job AS child WHERE child.parent_id = job.id LIMIT 501)) > 500), 0)
FROM jobq_job AS job WHERE state = ? AND finished_at IS NOT NULL AND finished_at <= ?
"""
# The primary key: the + keeps the planner from walking over every ended job.
PRUNE = """
DELETE FROM jobq_job
WHERE id IN (SELECT value FROM json_each(?)) AND +state = ? AND +finished_at <= ?
AND NOT EXISTS (SELECT 1 FROM jobq_job AS child WHERE child.parent_id = jobq_job.id AND child.finished_at IS NULL)
"""
# The primary key: the oldest lines, of which only the old ones go.
PRUNE_CHANGES = """
DELETE FROM jobq_change WHERE id IN (SELECT id FROM jobq_change ORDER BY id LIMIT 500) AND at <= ?
"""
SHRINK = "PRAGMA incremental_vacuum(64)"

MOST_CHILDREN = 500
_UNIT = 8_192


def prunable(
    conn: apsw.Connection, state: JobState, *, ended_before: datetime, after: Place | None, page: int = PAGE
) -> Prunable:
    """Return the next page of jobs that are old enough, in portions of bounded weight."""
    bindings = (state.value, rows.to_ms(ended_before), *(after or _START), page)
    found: list[Any] = conn.execute(PRUNABLE, bindings).fetchall()
    free = [row for row in found if not row[4] or not _held(conn, row[0], children=row[4])]
    last = found[-1] if len(found) == page else None
    return Prunable(
        portions=list(_portions(free)),
        kept=len(found) - len(free),
        after=None if last is None else (last[1], last[2], last[3], last[0]),
    )


def count(conn: apsw.Connection, state: JobState, *, ended_before: datetime) -> tuple[int, int]:
    """Count what all pages would remove, and what they would keep."""
    found: list[Any] = conn.execute(COUNT, (state.value, rows.to_ms(ended_before))).fetchall()
    every, kept = found[0]
    return every - kept, kept


def prune(conn: apsw.Connection, ids: Sequence[int], *, state: JobState, ended_before: datetime) -> int:
    """Remove those of the jobs that are still as they were found; what belongs to them goes by foreign keys."""

    def remove(some: Sequence[int]) -> int:
        conn.execute(PRUNE, (json.dumps(list(some)), state.value, rows.to_ms(ended_before)))
        return conn.changes()

    try:
        return remove(ids)
    except apsw.ConstraintError:
        # A table of the host's refers to one of them. The statement has removed nothing; that one stays, the others go.
        removed = 0
        for job_id in ids:
            with contextlib.suppress(apsw.ConstraintError):
                removed += remove([job_id])
        return removed


def prune_changes(conn: apsw.Connection, *, before: datetime) -> int:
    """Remove old lines of the change log."""
    conn.execute(PRUNE_CHANGES, (rows.to_ms(before),))
    return conn.changes()


def is_bloated(conn: apsw.Connection) -> bool:
    """Whether much of the file is free, and the file was made so that it can be cut back in steps."""
    pages, free = _ask(conn, "PRAGMA page_count"), _ask(conn, "PRAGMA freelist_count")
    return free > max(_FREE_PAGES, pages * _FREE_SHARE) and _ask(conn, "PRAGMA auto_vacuum") == _INCREMENTAL


def shrink(conn: apsw.Connection) -> None:
    """Give some free pages back; the rows of the pragma have to be fetched, each is a page."""
    conn.execute(SHRINK, can_cache=False).fetchall()


def _held(conn: apsw.Connection, job_id: int, *, children: int) -> bool:
    return children > MOST_CHILDREN or conn.execute(UNENDED_CHILD, (job_id,)).fetchone() is not None


def _portions(found: Sequence[Any]) -> Iterator[list[int]]:
    portion: list[int] = []
    weight = 0
    for row in found:
        own = 1 + row[4] + row[5] // _UNIT
        if portion and weight + own > MOST_WEIGHT:
            yield portion
            portion, weight = [], 0
        portion.append(row[0])
        weight += own
    if portion:
        yield portion


def _ask(conn: apsw.Connection, pragma: str) -> int:
    found: list[Any] = conn.execute(pragma).fetchall()
    return int(found[0][0])
