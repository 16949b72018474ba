"""What runners say of themselves: who is alive, what they serve, and their clocks."""

import json
from datetime import timedelta

import apsw

from jobq.store.base import RunnerRow
from jobq.store.sqlite import lookup, rows

# The primary key.
BEAT = """
INSERT INTO jobq_runner (id, host, pid, queues, kinds, boot_id, monotonic, started_at, beat_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    queues = excluded.queues, kinds = excluded.kinds, boot_id = excluded.boot_id, monotonic = excluded.monotonic,
    beat_at = excluded.beat_at
"""
FORGET = "DELETE FROM jobq_runner WHERE beat_at < ?"
REMOVE = "DELETE FROM jobq_runner WHERE id = ?"
RUNNERS = "SELECT id, host, pid, queues, kinds, boot_id, monotonic, started_at, beat_at FROM jobq_runner ORDER BY id"

#: A runner that was killed leaves its row; after a day without a beat nobody asks for it any more.
FORGOTTEN_AFTER = timedelta(days=1)


def beat(conn: apsw.Connection, row: RunnerRow) -> None:
    """Write or refresh a runner's row; forget runners that have been silent for a day."""
    bindings = (
        row.id,
        row.host,
        row.pid,
        json.dumps(dict(row.queues)),
        json.dumps(row.kinds),
        row.boot_id,
        row.monotonic,
        rows.to_ms(row.started_at),
        rows.to_ms(row.beat_at),
    )
    conn.execute(BEAT, bindings)
    conn.execute(FORGET, (rows.to_ms(row.beat_at - FORGOTTEN_AFTER),))


def remove(conn: apsw.Connection, runner_id: str) -> None:
    """Remove a runner's row."""
    conn.execute(REMOVE, (runner_id,))


def runners(conn: apsw.Connection) -> list[RunnerRow]:
    """Return all rows, those of dead runners included; one that was broken by hand is left out."""
    return list(lookup.readable(conn.execute(RUNNERS), rows.runner))
