"""Rows of queues and kinds: registration, pauses, listings."""

import json
from collections.abc import Sequence
from typing import Any

import apsw

from jobq.model.job import KindInfo, QueueInfo
from jobq.store.base import KindRow, QueueRow
from jobq.store.sqlite import lookup, rows, texts
from jobq.store.sqlite.accepting import accepted_kinds
from jobq.store.sqlite.placing import ADD_QUEUE

# The primary keys of jobq_kind and jobq_queue.
REGISTER = """
INSERT INTO jobq_kind (name, queue, priority, max_attempts, max_deferrals, cap, retry, intake, retired)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
ON CONFLICT (name) DO UPDATE SET
    queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts,
    max_deferrals = excluded.max_deferrals, cap = excluded.cap, retry = excluded.retry, intake = excluded.intake,
    retired = 0
"""
RETIRE = "INSERT INTO jobq_kind (name, retired) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET retired = 1"
# Without the WHERE each start would write each row.
CONFIGURE = """
INSERT INTO jobq_queue (name, hidden, kinds) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET hidden = excluded.hidden, kinds = excluded.kinds
WHERE hidden IS NOT excluded.hidden OR kinds IS NOT excluded.kinds
"""
EXISTS = "SELECT 1 FROM jobq_queue WHERE name = ?"
NAMES = "SELECT name FROM jobq_queue ORDER BY name"

# jobq_job_lane begins with the queue; running rows are few.
QUEUES = """
SELECT name, paused_at, paused_by, paused_why, hidden, kinds,
       (SELECT count(*) FROM jobq_job WHERE state = 'queued' AND queue = jobq_queue.name),
       (SELECT count(*) FROM jobq_job WHERE state = 'running' AND queue = jobq_queue.name)
FROM jobq_queue ORDER BY name
"""
# jobq_job_lane, one seek for each queue; CROSS JOIN keeps the planner from reading every queued row instead.
KINDS = """
SELECT name, queue, priority, max_attempts, max_deferrals, cap, retry, retired, paused_at,
       paused_by, paused_why, intake,
       (SELECT count(*) FROM jobq_queue AS q
        CROSS JOIN jobq_job AS job ON job.state = 'queued' AND job.queue = q.name AND job.kind = jobq_kind.name),
       (SELECT count(*) FROM jobq_job WHERE state = 'running' AND kind = jobq_kind.name)
FROM jobq_kind
"""
ALL_KINDS = KINDS + "ORDER BY name"
# The primary key; a row without a queue was made by an enqueue, not by a registration.
DECLARED = """
SELECT name, queue, priority, max_attempts, max_deferrals, cap, retry, intake FROM jobq_kind
WHERE name = ? AND queue IS NOT NULL
"""
SOME_KINDS = KINDS + "WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name"


def register(
    conn: apsw.Connection, kinds: Sequence[KindRow], queue_rows: Sequence[QueueRow], retired: Sequence[str]
) -> None:
    """Write what the handlers and the configuration of one process say; the last registration wins, pauses stay."""
    conn.executemany(REGISTER, [(*kind[:6], json.dumps(dict(kind.retry)), kind.intake) for kind in kinds])
    conn.executemany(RETIRE, [(kind,) for kind in retired])
    conn.executemany(ADD_QUEUE, [(row.name,) for row in queue_rows if not row.configured])
    conn.executemany(CONFIGURE, [_configuration(row) for row in queue_rows if row.configured])


def _configuration(row: QueueRow) -> tuple[str, int, str | None]:
    return row.name, row.hidden, None if row.kinds is None else json.dumps(row.kinds)


def exists(conn: apsw.Connection, queue: str) -> bool:
    """Return whether a queue has a row."""
    return conn.execute(EXISTS, (queue,)).fetchone() is not None


def names(conn: apsw.Connection) -> tuple[str, ...]:
    """Return the names of all queues."""
    found = texts.legible(conn.execute(NAMES))
    return tuple(name for (name,) in found)


def queues(conn: apsw.Connection) -> list[QueueInfo]:
    """Return every queue by name."""
    return list(lookup.readable(conn.execute(QUEUES), _queue_info))


def kinds(conn: apsw.Connection, wanted: Sequence[str] | None) -> list[KindInfo]:
    """Return every kind by name, or those wanted that have a row."""
    cursor = conn.execute(ALL_KINDS) if wanted is None else conn.execute(SOME_KINDS, (json.dumps(list(wanted)),))
    return list(lookup.readable(cursor, _kind_info))


def declared(conn: apsw.Connection, kind: str) -> KindRow | None:
    """Return what a kind's registration said, if there was one."""
    found = texts.legible(conn.execute(DECLARED, (kind,)))
    return KindRow(*found[0])._replace(retry=_policy(found[0][6]), intake=bool(found[0][7])) if found else None


def _policy(text: str | None) -> dict[str, Any]:
    # A policy that somebody broke by hand is the default one; the kind's jobs go on.
    try:
        stored = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _queue_info(row: Sequence[Any]) -> QueueInfo:
    return QueueInfo(
        name=row[0],
        paused_at=None if row[1] is None else rows.from_ms(row[1]),
        paused_by=row[2],
        paused_why=row[3],
        hidden=bool(row[4]),
        kinds=accepted_kinds(row[5]),
        queued=row[6],
        running=row[7],
    )


def _kind_info(row: Sequence[Any]) -> KindInfo:
    return KindInfo(
        name=row[0],
        queue=row[1],
        priority=row[2],
        max_attempts=row[3],
        max_deferrals=row[4],
        cap=row[5],
        retry=None if row[6] is None else _policy(row[6]),
        retired=bool(row[7]),
        paused_at=None if row[8] is None else rows.from_ms(row[8]),
        paused_by=row[9],
        paused_why=row[10],
        intake=bool(row[11]),
        queued=row[12],
        running=row[13],
    )
