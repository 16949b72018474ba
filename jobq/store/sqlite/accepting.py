"""Which kinds a queue accepts, as the last configuration that named it says; every process obeys its row."""

import json
from typing import Any

import apsw

from jobq.errors import KindNotAccepted

# The primary key.
QUEUE = "SELECT CAST(kinds AS BLOB) FROM jobq_queue WHERE name = ?"


def accepts(conn: apsw.Connection, queue: str, kind: str) -> bool:
    """Return whether a queue takes jobs of a kind; one that has no row yet, or names no kinds, takes all."""
    row: Any = conn.execute(QUEUE, (queue,)).fetchone()
    accepted = None if row is None else accepted_kinds(row[0])
    return accepted is None or kind in accepted


def require(kind: str, queue: str, text: bytes | None) -> None:
    """Raise KindNotAccepted unless the column of the queue's row lets the kind in."""
    accepted = accepted_kinds(text)
    if accepted is not None and kind not in accepted:
        raise KindNotAccepted(kind, queue, accepted=accepted)


def accepted_kinds(text: bytes | str | None) -> tuple[str, ...] | None:
    """Return the value of the column; None where all kinds are accepted, also by a row that was broken by hand."""
    try:
        stored = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tuple(map(str, stored)) if isinstance(stored, list) else None
