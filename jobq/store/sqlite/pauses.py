"""Pauses of queues and kinds: rows that remember since when, by whom and why, and that every claim looks at."""

from datetime import datetime
from typing import Any

import apsw

from jobq.errors import QueueNotFound, UnknownKind
from jobq.model.nearest import suggestion
from jobq.store.sqlite import queues, rows, texts

# The primary keys of jobq_queue and jobq_kind.
PAUSE_QUEUE = """
UPDATE jobq_queue SET paused_at = ?, paused_by = ?, paused_why = ? WHERE name = ? AND paused_at IS NULL
"""
RESUME_QUEUE = """
UPDATE jobq_queue SET paused_at = NULL, paused_by = NULL, paused_why = NULL WHERE name = ? AND paused_at IS NOT NULL
"""
KIND_EXISTS = "SELECT 1 FROM jobq_kind WHERE name = ?"
KINDS = "SELECT name FROM jobq_kind"
PAUSE_KIND = """
UPDATE jobq_kind SET paused_at = ?, paused_by = ?, paused_why = ? WHERE name = ? AND paused_at IS NULL
"""
RESUME_KIND = """
UPDATE jobq_kind SET paused_at = NULL, paused_by = NULL, paused_why = NULL WHERE name = ? AND paused_at IS NOT NULL
"""


def pause_queue(conn: apsw.Connection, queue: str, *, who: str | None, why: str | None, now: datetime) -> bool:
    """Remember a pause; return False when there was one already."""
    require_queue(conn, queue)
    return _changed(conn, PAUSE_QUEUE, (rows.to_ms(now), who, why, queue))


def resume_queue(conn: apsw.Connection, queue: str) -> bool:
    """Forget a pause; return False when there was none."""
    require_queue(conn, queue)
    return _changed(conn, RESUME_QUEUE, (queue,))


def pause_kind(conn: apsw.Connection, kind: str, *, who: str | None, why: str | None, now: datetime) -> bool:
    """Remember a pause; return False when there was one already."""
    _require_kind(conn, kind)
    return _changed(conn, PAUSE_KIND, (rows.to_ms(now), who, why, kind))


def resume_kind(conn: apsw.Connection, kind: str) -> bool:
    """Forget a pause; return False when there was none."""
    _require_kind(conn, kind)
    return _changed(conn, RESUME_KIND, (kind,))


def require_queue(conn: apsw.Connection, queue: str) -> None:
    """Raise QueueNotFound where there is no such queue."""
    if not queues.exists(conn, queue):
        raise QueueNotFound(queue, known=queues.names(conn))


def _require_kind(conn: apsw.Connection, kind: str) -> None:
    if conn.execute(KIND_EXISTS, (kind,)).fetchone() is None:
        known = texts.legible(conn.execute(KINDS))
        raise UnknownKind(kind, fix=suggestion(kind, (name for (name,) in known)))


def _changed(conn: apsw.Connection, statement: str, bindings: tuple[Any, ...]) -> bool:
    conn.execute(statement, bindings)
    return bool(conn.changes())
