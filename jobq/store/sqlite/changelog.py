"""The change log: what people, and self-heal, did to jobs and subjects; it outlives the jobs."""

import json
from collections.abc import Mapping
from datetime import datetime

import apsw

from jobq.model.job import JSON, Actor, LoggedChange
from jobq.store.sqlite import lookup, rows

WRITE = "INSERT INTO jobq_change (at, actor, what, job_id, subject, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)"

# The primary key of jobq_change, backwards; jobq_change_job; jobq_change_subject.
ALL = "SELECT id, at, actor, what, job_id, subject, before, after FROM jobq_change ORDER BY id DESC LIMIT ?"
OF_JOB = """
SELECT id, at, actor, what, job_id, subject, before, after FROM jobq_change WHERE job_id = ? ORDER BY id DESC LIMIT ?
"""
OF_SUBJECT = """
SELECT id, at, actor, what, job_id, subject, before, after FROM jobq_change WHERE subject = ? ORDER BY id DESC LIMIT ?
"""


def write(
    conn: apsw.Connection,
    what: str,
    *,
    actor: Actor,
    job_id: int | None = None,
    subject: str | None = None,
    before: Mapping[str, JSON],
    after: Mapping[str, JSON],
    now: datetime,
) -> None:
    """Add a line about a job or about a subject."""
    line = (rows.to_ms(now), actor.value, what, job_id, subject, json.dumps(before), json.dumps(after))
    conn.execute(WRITE, line)


def changes(conn: apsw.Connection, *, job_id: int | None, subject: str | None, limit: int) -> list[LoggedChange]:
    """Return lines of the log, newest first, all or those of a job or a subject."""
    if job_id is not None:
        cursor = conn.execute(OF_JOB, (job_id, limit))
    elif subject is not None:
        cursor = conn.execute(OF_SUBJECT, (subject, limit))
    else:
        cursor = conn.execute(ALL, (limit,))
    return list(lookup.readable(cursor, rows.logged_change))
