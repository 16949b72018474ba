"""The floor: what SQLite itself allows. jobq's own tables and indexes, written by bare apsw with prepared statements.

No Python value is built that SQLite does not need, nothing is checked, nobody is told, and there is no second thread.
"""

import time
from typing import Any

import jobq
from jobq.store.sqlite import connection as connections

KIND = "bench"
#: A hundred bytes as JSON text.
PAYLOAD = {"path": "x" * 88}
_TEXT = '{"path":"' + "x" * 88 + '"}'

_INSERT = """
INSERT INTO jobq_job (kind, queue, state, priority, payload, max_attempts, max_deferrals, run_at, dedupe_key,
                      parent_id, actor, tenant_id, subject, meta, schedule, slot, catch_up, created_at)
VALUES ('bench', 'default', 'queued', 50, ?, 5, NULL, ?, NULL, NULL, 'system', NULL, NULL, NULL, NULL, NULL, 0, ?)
"""
_NEXT = """
SELECT id, payload FROM jobq_job
WHERE state = 'queued' AND queue = 'default' AND kind = 'bench' AND priority = 50 AND run_at <= ?
ORDER BY run_at, id LIMIT ?
"""
_START = """
UPDATE jobq_job SET state = 'running', attempts = 1, worker = 'bare', token = ?, lease_until = ?, lease_length = 60000,
                    started_at = ?
WHERE id = ? AND state = 'queued'
"""
_FINISH = """
UPDATE jobq_job SET state = 'succeeded', finished_at = ?, token = NULL, worker = NULL, lease_until = NULL,
                    lease_length = NULL, lease_held = 0, cancel_requested_at = NULL
WHERE id = ? AND state = 'running' AND token = ?
"""


class Bare:
    """One connection on a file that jobq has made."""

    def __init__(self, path: str, *, synced: bool) -> None:
        with jobq.open(path) as jobs:
            # The rows of kind and queue are there, as they are after the first enqueue.
            jobs.enqueue(KIND, PAYLOAD, delay="1d")
        self.connection = connections.connect(path, busy_timeout=5.0)
        connections.set_synced(self.connection, synced=synced)

    def insert_one(self) -> None:
        """Enqueue one job in a transaction of its own."""
        execute, now = self.connection.execute, _now()
        execute("BEGIN IMMEDIATE")
        execute(_INSERT, (_TEXT, now, now))
        execute("COMMIT")

    def insert_singly(self, count: int) -> None:
        """Enqueue so many jobs, each in a transaction of its own."""
        for _ in range(count):
            self.insert_one()

    def insert_many(self, count: int) -> None:
        """Enqueue so many jobs in one transaction, with one statement."""
        now = _now()
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(_INSERT, [(_TEXT, now, now)] * count)
        self.connection.execute("COMMIT")

    def claim_one(self) -> None:
        """Claim the next job in a transaction of its own."""
        self._turn([], 1)

    def drain(self, batch: int) -> int:
        """Finish the last jobs and claim the next, so many in one transaction, until none is left; return how many."""
        total, held = 0, self._turn([], batch)
        while held:
            total += len(held)
            held = self._turn(held, batch)
        return total

    def succeeded(self) -> int:
        """Return how many jobs have succeeded."""
        found: Any = self.connection.execute("SELECT count(*) FROM jobq_job WHERE state = 'succeeded'").fetchone()
        return int(found[0])

    def delete_succeeded(self) -> int:
        """Delete the jobs that have succeeded; return how many."""
        self.connection.execute("DELETE FROM jobq_job WHERE state = 'succeeded'")
        return self.connection.changes()

    def work(self) -> float:
        """Return the seconds from the first claim to the last end of a job, as the rows tell them."""
        found: Any = self.connection.execute(
            "SELECT min(started_at), max(finished_at) FROM jobq_job WHERE state = 'succeeded'"
        ).fetchone()
        return float(found[1] - found[0]) / 1_000

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _turn(self, held: list[tuple[int, int, str]], batch: int) -> list[tuple[int, int, str]]:
        connection, now = self.connection, _now()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_FINISH, held)
        found: list[Any] = connection.execute(_NEXT, (now, batch)).fetchall()
        connection.executemany(_START, [(f"{job_id:016x}", now + 60_000, now, job_id) for job_id, _ in found])
        connection.execute("COMMIT")
        return [(now, job_id, f"{job_id:016x}") for job_id, _ in found]


def _now() -> int:
    return time.time_ns() // 1_000_000


