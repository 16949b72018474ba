"""Publish what outboxes staged: each row becomes a job once, however often it is published."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.errors import ArgumentError, JobqError
from jobq.model.events import Change
from jobq.store.publishing import PublishedDraft, StagedDraft
from jobq.store.sqlite import enqueue, rows

# The primary key of jobq_published: what makes a second publication, by whatever relay, find the first.
FIND = "SELECT uid, job_id FROM jobq_published WHERE uid IN (SELECT value FROM json_each(?))"
RECORD = "INSERT INTO jobq_published (uid, number, job_id, published_at) VALUES (?, ?, ?, ?)"
NOTE = "UPDATE jobq_published SET marked_at = ? WHERE uid = ? AND marked_at IS NULL"

# jobq_published_marked, a page at a time.
FORGET = """
DELETE FROM jobq_published
WHERE marked_at <= :then AND uid IN (SELECT uid FROM jobq_published WHERE marked_at <= :then LIMIT 1000)
"""

# What is refused takes nothing with it, and leaves nothing behind.
BEGIN_ROWS = "SAVEPOINT jobq_rows"
UNDO_ROWS = "ROLLBACK TO jobq_rows"
END_ROWS = "RELEASE jobq_rows"

#: A record outlives its mark by so many milliseconds.
KEPT = 30 * 86_400_000


def publish(
    conn: apsw.Connection, changes: list[Change], staged: Sequence[StagedDraft], *, now: datetime
) -> list[PublishedDraft]:
    """Make the job of each row that was not published yet."""
    found: list[Any] = conn.execute(FIND, (json.dumps([row.uid for row in staged]),)).fetchall()
    known = {uid: PublishedDraft(uid, job_id) for uid, job_id in found}
    fresh = {row.uid: row for row in staged if row.uid not in known}
    known |= {answer.uid: answer for answer in _place(conn, changes, list(fresh.values()), now)}
    answers = []
    for row in staged:
        answers.append(known[row.uid])
        # A row that stands in the call twice is new once.
        known[row.uid] = known[row.uid]._replace(new=False)
    return answers


def note_marked(conn: apsw.Connection, marks: Sequence[tuple[str, datetime]]) -> None:
    """Take note of marks."""
    conn.executemany(NOTE, [(rows.to_ms(at), uid) for uid, at in marks])


def forget(conn: apsw.Connection, *, now: datetime) -> int:
    """Remove the oldest records whose time has passed."""
    conn.execute(FORGET, {"then": rows.to_ms(now) - KEPT})
    return conn.changes()


def _place(
    conn: apsw.Connection, changes: list[Change], rows_: list[StagedDraft], now: datetime
) -> list[PublishedDraft]:
    """Make jobs of all the rows together; where one of them is refused, of each by itself."""
    mark = len(changes)
    conn.execute(BEGIN_ROWS)
    try:
        placed = enqueue.enqueue(conn, changes, [row.draft for row in rows_], now=now)
    except (JobqError, apsw.ConstraintError) as error:
        del changes[mark:]
        conn.execute(UNDO_ROWS)
        conn.execute(END_ROWS)
        if len(rows_) == 1:
            return [PublishedDraft(rows_[0].uid, error=_refusal(error))]
        return [answer for row in rows_ for answer in _place(conn, changes, [row], now)]
    pairs = list(zip(rows_, placed, strict=True))
    conn.executemany(RECORD, [(row.uid, row.number, one.id, rows.to_ms(now)) for row, one in pairs])
    conn.execute(END_ROWS)
    return [PublishedDraft(row.uid, one.id, new=one.created) for row, one in pairs]


def _refusal(error: JobqError | apsw.ConstraintError) -> JobqError:
    # Passed every check of ours: only a row that was edited by hand breaks a rule of the schema.
    return error if isinstance(error, JobqError) else ArgumentError("draft", "the job table refuses it")
