"""Cancel queued jobs, ask running ones to stop."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.effects import Moment, Verdict
from jobq.model.events import Change
from jobq.model.state_machine import Trigger, decide
from jobq.store.sqlite import family, rows, settle

# The primary key. The first request stands.
REQUEST = """
UPDATE jobq_job SET cancel_requested_at = ? WHERE id = ? AND state = 'running' AND cancel_requested_at IS NULL
"""
# jobq_job_cancel.
REQUESTED = "SELECT id, token FROM jobq_job WHERE cancel_requested_at IS NOT NULL"

# jobq_job_lane has the queue in front: one seek for each queue. CROSS JOIN keeps the planner from turning it around,
# which would read every queued row.
QUEUED_OF_KIND = """
SELECT job.id FROM jobq_queue AS queue
CROSS JOIN jobq_job AS job ON job.state = 'queued' AND job.queue = queue.name AND job.kind = ?
LIMIT 500
"""


def cancel(
    conn: apsw.Connection,
    changes: list[Change],
    ids: Sequence[int],
    *,
    now: datetime,
    reason: str | None = None,
    children: bool = False,
    dry_run: bool = False,
) -> dict[int, Verdict | None]:
    """Cancel each job or record the request; None for one that has ended. A dry run only says what would happen.

    With ``children`` also everything below them that has not ended.
    """
    verdicts: dict[int, Verdict | None] = {}
    for job_id in family.with_unfinished(conn, ids) if children else ids:
        found = settle.read(conn, job_id)
        if found is None:
            continue
        subject, facts = found
        decision = decide(facts, Trigger.CANCEL, Moment(now, reason=reason))
        if decision is not None and not dry_run:
            if decision.state.terminal:
                settle.write(conn, changes, subject, facts, decision, now=now)
            else:
                conn.execute(REQUEST, (rows.to_ms(now), job_id))
        verdicts[job_id] = None if decision is None else decision.verdict
    return verdicts


def retire(conn: apsw.Connection, changes: list[Change], kinds: Sequence[str], *, now: datetime) -> int:
    """Cancel up to 500 queued jobs of each kind and return how many it was."""
    cancelled = 0
    for kind in kinds:
        found: list[Any] = conn.execute(QUEUED_OF_KIND, (kind,)).fetchall()
        cancel(conn, changes, [job_id for (job_id,) in found], now=now, reason="retired_kind")
        cancelled += len(found)
    return cancelled


def requests(conn: apsw.Connection) -> list[tuple[int, str]]:
    """Return id and token of every running job that was asked to cancel."""
    found: list[Any] = conn.execute(REQUESTED).fetchall()
    return found
