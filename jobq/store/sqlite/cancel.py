"""Cancel queued jobs, ask running ones to stop."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.effects import Decision, Facts, Moment, Verdict
from jobq.model.events import Change
from jobq.model.state_machine import Trigger, decide
from jobq.store.base import Filter
from jobq.store.sqlite import family, lookup, rows, settle, texts

# The primary key. The first request stands. A lease that was broken by hand takes none: the row would break a CHECK.
REQUEST = """
UPDATE jobq_job SET cancel_requested_at = ?
WHERE id = ? AND state = 'running' AND cancel_requested_at IS NULL
  AND token IS NOT NULL AND worker IS NOT NULL AND lease_until IS NOT NULL AND lease_length IS NOT NULL
"""
# jobq_job_cancel.
REQUESTED = "SELECT id, token FROM jobq_job WHERE cancel_requested_at IS NOT NULL"

# jobq_job_lane has the queue in front: one seek for each queue. CROSS JOIN keeps the planner from turning it around,
# which would read every queued row.
QUEUED_OF_KIND = """
SELECT job.id FROM jobq_queue AS queue
CROSS JOIN jobq_job AS job ON job.state = 'queued' AND job.queue = queue.name AND job.kind = ?
LIMIT 50
"""


def cancel(
    conn: apsw.Connection,
    changes: list[Change],
    ids: Sequence[int],
    *,
    now: datetime,
    reason: str | None = None,
    children: bool = False,
) -> dict[int, Verdict | None]:
    """Cancel each job or record the request; None for one that has ended.

    With ``children`` also everything below them that has not ended.
    """
    verdicts: dict[int, Verdict | None] = {}
    for subject, facts, decision in _decisions(conn, ids, Moment(now, reason=reason), children=children):
        if decision is not None:
            if decision.state.terminal:
                settle.write(conn, changes, subject, facts, decision, now=now)
            else:
                conn.execute(REQUEST, (rows.to_ms(now), subject.id))
        verdicts[subject.id] = None if decision is None else decision.verdict
    return verdicts


def rehearse(
    conn: apsw.Connection, ids: Sequence[int], *, wanted: Filter | None, children: bool, now: datetime
) -> dict[int, Verdict | None]:
    """Say what a cancel would answer."""
    decisions = _decisions(conn, lookup.still(conn, wanted, ids), Moment(now), children=children)
    return {subject.id: None if decision is None else decision.verdict for subject, _, decision in decisions}


def _decisions(
    conn: apsw.Connection, ids: Sequence[int], moment: Moment, *, children: bool
) -> Iterator[tuple[settle.Subject, Facts, Decision | None]]:
    for job_id in family.with_unfinished(conn, ids) if children else ids:
        found = settle.read(conn, job_id)
        if found is not None:
            yield *found, decide(found[1], Trigger.CANCEL, moment)


def retire(conn: apsw.Connection, changes: list[Change], kinds: Sequence[str], *, now: datetime) -> int:
    """Cancel up to 50 queued jobs of each kind and return how many it was."""
    cancelled = 0
    for kind in kinds:
        found: list[Any] = conn.execute(QUEUED_OF_KIND, (kind,)).fetchall()
        cancel(conn, changes, [job_id for (job_id,) in found], now=now, reason="retired_kind")
        cancelled += len(found)
    return cancelled


def requests(conn: apsw.Connection) -> list[tuple[int, str]]:
    """Return id and token of every running job that was asked to cancel."""
    return [(job_id, token) for job_id, token in texts.legible(conn.execute(REQUESTED))]
