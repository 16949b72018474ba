"""Who leads: one row for each name, held for a while. It spares work, correctness never depends on it."""

from datetime import datetime
from typing import Any

import apsw

from jobq.store.sqlite import rows, texts

# The primary key.
LEADER = "SELECT CAST(holder AS BLOB), until, length FROM jobq_leader WHERE name = ?"
LEAD = """
INSERT INTO jobq_leader (name, holder, until, length) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until, length = excluded.length
"""
RESIGN = "DELETE FROM jobq_leader WHERE name = ? AND holder = ?"


def look(conn: apsw.Connection, name: str, holder: str, *, now: datetime) -> bool | None:
    """Return whether this holder leads; None where that has to be decided by a write.

    The own lead is renewed when half of it has passed.
    """
    found: Any = conn.execute(LEADER, (name,)).fetchone()
    if found is None:
        return None
    other, until, length = found
    left = until - rows.to_ms(now)
    if texts.lenient(other) == holder:
        return True if length / 2 < left <= length else None
    return False if 0 < left <= length else None


def lead(conn: apsw.Connection, name: str, holder: str, *, length: float, now: datetime) -> bool:
    """Take or renew the lead unless somebody else has it; one that ends later than its length from now has ended."""
    found: Any = conn.execute(LEADER, (name,)).fetchone()
    now_ms, length_ms = rows.to_ms(now), rows.span_ms(length)
    if found is not None and texts.lenient(found[0]) != holder and 0 < found[1] - now_ms <= found[2]:
        return False
    conn.execute(LEAD, (name, holder, now_ms + length_ms, length_ms))
    return True


def resign(conn: apsw.Connection, name: str, holder: str) -> None:
    """Give the lead up."""
    conn.execute(RESIGN, (name, holder))
