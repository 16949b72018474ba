"""Keep, read and remove the lines that jobs log."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.events import LogLine
from jobq.store.sqlite import rows, texts

# The primary key of jobq_job, for each line: a job may be pruned while its lines wait.
KEEP = """
INSERT INTO jobq_log (job_id, attempt, at, level, event, fields)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM jobq_job WHERE id = value ->> 0)
"""
# jobq_log_job; a negative limit is none.
READ = """
SELECT job_id, attempt, at, level, event, fields FROM jobq_log WHERE job_id = ? ORDER BY at DESC, id DESC LIMIT ?
"""
# jobq_log_at.
PRUNE = "DELETE FROM jobq_log WHERE id IN (SELECT id FROM jobq_log WHERE at < ? ORDER BY at LIMIT ?)"


def keep(conn: apsw.Connection, lines: Sequence[LogLine]) -> None:
    """Insert the lines of jobs that are there."""
    found = [
        (line.job_id, line.attempt, rows.to_ms(line.at), line.level, line.event, json.dumps(dict(line.fields)))
        for line in lines
    ]
    conn.execute(KEEP, (json.dumps(found),))


def lines(conn: apsw.Connection, job_id: int, *, limit: int | None) -> list[LogLine]:
    """Return the newest lines of a job, in the order in which they were written."""
    found: list[Any] = texts.legible(conn.execute(READ, (job_id, -1 if limit is None else limit)))
    return [rows.log_line(row) for row in reversed(found)]


def prune(conn: apsw.Connection, *, before: datetime, limit: int) -> int:
    """Remove the oldest of the lines that are older."""
    conn.execute(PRUNE, (rows.to_ms(before), limit))
    return conn.changes()
