"""What the rows of its kind and its queue say of a job that is to be inserted."""

from typing import Any

import apsw

from jobq.errors import RetiredKind
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, HIGHEST, LOWEST, Priority
from jobq.model.names import is_queue
from jobq.store.sqlite import accepting, texts

# Primary keys of jobq_kind and jobq_queue, in one statement: each costs more to begin than to carry out. Texts travel
# as bytes: one that somebody wrote in another encoding must not make the driver raise in the middle of a batch.
LOOK = """
SELECT kind.retired, CAST(kind.queue AS BLOB), kind.priority, kind.max_attempts, kind.max_deferrals, queue.name,
       CAST(queue.kinds AS BLOB)
FROM jobq_kind AS kind LEFT JOIN jobq_queue AS queue ON queue.name = coalesce(?, kind.queue, 'default')
WHERE kind.name = ?
"""
# The primary key.
QUEUE = "SELECT name, CAST(kinds AS BLOB) FROM jobq_queue WHERE name = ?"
ADD_KIND = "INSERT OR IGNORE INTO jobq_kind (name) VALUES (?)"
ADD_QUEUE = "INSERT OR IGNORE INTO jobq_queue (name) VALUES (?)"

_INGEST = Priority.INGEST.value

#: What a job gets: its queue, and priority, attempts and deferrals where its enqueue left them open; then whether the
#: kind and the queue have rows. A plain tuple, because each enqueue makes one.
Place = tuple[str, int, int, int | None, bool]


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
    queue = queue or _own(own_queue)
    if accepted is not None:
        accepting.require(kind, queue, accepted)
    priority = priority if priority is not None and LOWEST <= priority <= HIGHEST else _INGEST
    return queue, priority, max_attempts or DEFAULT_ATTEMPTS, max_deferrals, known and found is not None


def note(conn: apsw.Connection, kind: str, queue: str) -> None:
    """Make the rows of a kind and a queue, where there are none."""
    conn.execute(ADD_KIND, (kind,))
    conn.execute(ADD_QUEUE, (queue,))


def _own(queue: bytes | None) -> str:
    """Return the queue of a kind's row; one that names none, or whose name was broken by hand, has the default one."""
    name = texts.lenient(queue)
    return name if name is not None and is_queue(name) else DEFAULT_QUEUE
