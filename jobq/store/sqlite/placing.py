"""What the rows of its kind and its queue say of a job that is to be inserted."""

from typing import Any, NamedTuple

import apsw

from jobq.errors import RetiredKind
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, Priority
from jobq.store.sqlite import accepting

# Primary keys of jobq_kind and jobq_queue, in one statement: each costs more to begin than to carry out.
LOOK = """
SELECT kind.retired, kind.queue, kind.priority, kind.max_attempts, kind.max_deferrals, queue.name, queue.kinds
FROM jobq_kind AS kind LEFT JOIN jobq_queue AS queue ON queue.name = coalesce(?, kind.queue, 'default')
WHERE kind.name = ?
"""
# The primary key.
QUEUE = "SELECT name, kinds FROM jobq_queue WHERE name = ?"
ADD_KIND = "INSERT OR IGNORE INTO jobq_kind (name) VALUES (?)"
ADD_QUEUE = "INSERT OR IGNORE INTO jobq_queue (name) VALUES (?)"

_INGEST = Priority.INGEST.value


class Place(NamedTuple):
    """The queue that a job goes to, and what it gets where its enqueue left that open."""

    queue: str
    priority: int
    max_attempts: int
    max_deferrals: int | None
    #: Whether the kind, and the queue, have rows.
    kind_known: bool
    queue_known: bool


def look(conn: apsw.Connection, kind: str, queue: str | None) -> Place:
    """Return the place of a job of this kind, in the queue that its enqueue named or that of the kind.

    Raises RetiredKind, and KindNotAccepted where the queue does not take the kind.
    """
    row: Any = conn.execute(LOOK, (queue, kind)).fetchone()
    known = row is not None
    if row is None:
        beside: Any = conn.execute(QUEUE, (queue or DEFAULT_QUEUE,)).fetchone()
        row = (False, None, None, None, None, *(beside or (None, None)))
    retired, own_queue, priority, max_attempts, max_deferrals, found, accepted = row
    if retired:
        raise RetiredKind(kind)
    queue = queue or own_queue or DEFAULT_QUEUE
    if accepted is not None:
        accepting.require(kind, queue, accepted)
    priority = _INGEST if priority is None else priority
    return Place(queue, priority, max_attempts or DEFAULT_ATTEMPTS, max_deferrals, known, found is not None)


def introduce(conn: apsw.Connection, kind: str, queue: str | None) -> Place:
    """Do the same, and note a kind or a queue that is new."""
    place = look(conn, kind, queue)
    if not place.kind_known:
        conn.execute(ADD_KIND, (kind,))
    if not place.queue_known:
        conn.execute(ADD_QUEUE, (place.queue,))
    return place
