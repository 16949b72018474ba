"""Publish what outboxes staged: each row becomes a job once, however often it is published."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.errors import ArgumentError, JobqError
from jobq.model.events import Change
from jobq.store.publishing import PublishedDraft, StagedDraft
from jobq.store.sqlite import enqueue, rows

# The primary key of jobq_published: what makes a second publication, by whatever relay, find the first.
FIND = "SELECT job_id FROM jobq_published WHERE uid = ?"
RECORD = "INSERT INTO jobq_published (uid, number, job_id, published_at) VALUES (?, ?, ?, ?)"
NOTE = "UPDATE jobq_published SET marked_at = ? WHERE uid = ? AND marked_at IS NULL"

# jobq_published_marked, a page at a time.
FORGET = """
DELETE FROM jobq_published
WHERE marked_at <= :then AND uid IN (SELECT uid FROM jobq_published WHERE marked_at <= :then LIMIT 1000)
"""

# A row that is refused takes nothing with it, and leaves nothing behind.
BEGIN_ROW = "SAVEPOINT jobq_row"
UNDO_ROW = "ROLLBACK TO jobq_row"
END_ROW = "RELEASE jobq_row"

#: A record outlives its mark by so many milliseconds.
KEPT = 30 * 86_400_000


def publish(
    conn: apsw.Connection, changes: list[Change], staged: Sequence[StagedDraft], *, now: datetime
) -> list[PublishedDraft]:
    """Make the job of each row that was not published yet."""
    return [_publish(conn, changes, row, now) for row in staged]


def note_marked(conn: apsw.Connection, marks: Sequence[tuple[str, datetime]]) -> None:
    """Take note of marks."""
    conn.executemany(NOTE, [(rows.to_ms(at), uid) for uid, at in marks])


def forget(conn: apsw.Connection, *, now: datetime) -> int:
    """Remove the oldest records whose time has passed."""
    conn.execute(FORGET, {"then": rows.to_ms(now) - KEPT})
    return conn.changes()


def _publish(conn: apsw.Connection, changes: list[Change], row: StagedDraft, now: datetime) -> PublishedDraft:
    found: Any = conn.execute(FIND, (row.uid,)).fetchone()
    if found is not None:
        return PublishedDraft(row.uid, found[0])
    mark = len(changes)
    conn.execute(BEGIN_ROW)
    try:
        (placed,) = enqueue.enqueue(conn, changes, (row.draft,), now=now)
    except JobqError as error:  # whatever an enqueue refuses; trouble with the database is apsw's
        return _refused(conn, changes, mark, row, error)
    except apsw.ConstraintError:
        # Passed every check of ours: only a row that was edited by hand gets here.
        return _refused(conn, changes, mark, row, ArgumentError("draft", "the job table refuses it"))
    conn.execute(RECORD, (row.uid, row.number, placed.id, rows.to_ms(now)))
    conn.execute(END_ROW)
    return PublishedDraft(row.uid, placed.id, new=True)


def _refused(
    conn: apsw.Connection, changes: list[Change], mark: int, row: StagedDraft, error: JobqError
) -> PublishedDraft:
    del changes[mark:]
    conn.execute(UNDO_ROW)
    conn.execute(END_ROW)
    return PublishedDraft(row.uid, error=error)
