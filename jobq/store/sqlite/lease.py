"""Renew leases, and take back those that expired."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from jobq.log import get_logger
from jobq.model.effects import Verdict
from jobq.model.events import Change
from jobq.model.lease import Beat
from jobq.model.outcome import Expired
from jobq.model.retry import RetryPolicy
from jobq.model.state_machine import settle as decide
from jobq.store.sqlite import rows, settle, texts

log = get_logger(__name__)

# The primary key, once for each lease; the token is the fence, not the clock: a lapsed lease is renewed.
EXTEND = """
UPDATE jobq_job
SET lease_length = coalesce(:length, lease_length), lease_until = :now + coalesce(:length, lease_length), lease_held = 0
FROM json_each(:leases) AS lease
WHERE jobq_job.id = lease.value ->> 0 AND state = 'running' AND token = lease.value ->> 1
RETURNING jobq_job.id, token, lease_until, cancel_requested_at IS NOT NULL
"""

# jobq_job_lease.
EXPIRED = f"""
SELECT id, kind, queue, token, worker, started_at, {rows.FACT_COLUMNS} FROM jobq_job
WHERE state = 'running' AND lease_until <= ? ORDER BY lease_until LIMIT 500
"""
HOLD = """
UPDATE jobq_job SET lease_until = :now + lease_length, lease_held = 1
WHERE state = 'running' AND lease_until <= :now AND lease_held = 0
"""
CLAMP = """
UPDATE jobq_job SET lease_until = :now + lease_length
WHERE state = 'running' AND lease_until > :now + lease_length
"""


class Expiry(NamedTuple):
    """A lease that was taken back: what the log says of it once that is committed."""

    job_id: int
    kind: str
    queue: str
    worker: str | None
    attempt: int
    #: What became of the job.
    verdict: Verdict


def extend(
    conn: apsw.Connection, leases: Sequence[tuple[int, str]], *, now: datetime, length: float | None
) -> list[Beat]:
    """Renew the leases whose tokens stand, all in one statement."""
    bindings = {
        "leases": json.dumps(leases),
        "length": None if length is None else rows.span_ms(length),
        "now": rows.to_ms(now),
    }
    answers: list[Any] = conn.execute(EXTEND, bindings).fetchall()
    return [Beat(job_id, token, rows.from_ms(until), bool(asked)) for job_id, token, until, asked in answers]


def reclaim(conn: apsw.Connection, changes: list[Change], *, now: datetime, hold_expired: bool) -> list[Expiry]:
    """Take back up to 500 expired leases; grant each one lease length first where the machine has just slept."""
    now_ms = rows.to_ms(now)
    if hold_expired:
        conn.execute(HOLD, {"now": now_ms})
    expiries = []
    for row in texts.legible(conn.execute(EXPIRED, (now_ms,))):
        subject = settle.Subject._make(row[:6])
        facts = rows.facts(row[6:])
        decision = decide(facts, Expired(), policy=_NO_DELAY, now=now, roll=0.0)
        assert decision is not None, "the machine has a rule for every expiry of a running row"
        settle.write(conn, changes, subject, facts, decision, now=now)
        expiries.append(
            Expiry(subject.id, subject.kind, subject.queue, subject.worker, facts.attempts, decision.verdict)
        )
    return expiries


def tell(expiries: Sequence[Expiry]) -> None:
    """Log the leases that were taken back; call it after the commit."""
    for expiry in expiries:
        log.warning("jobq.lease.expired", **expiry._asdict())


def clamp(conn: apsw.Connection, *, now: datetime) -> int:
    """Shorten leases that end later than their own length from now: the clock was set back."""
    conn.execute(CLAMP, {"now": rows.to_ms(now)})
    return conn.changes()


_NO_DELAY = RetryPolicy(base=0)
