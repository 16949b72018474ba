"""Sort a subject anew: forget what machines said of it, and let its intake jobs run again."""

from datetime import datetime
from typing import Any

import apsw

from jobq.model.events import Change
from jobq.model.job import Actor, Requeued
from jobq.model.label import LabelLayer
from jobq.store.sqlite import changelog, labels, requeue

# jobq_job_subject.
INTAKE = """
SELECT id FROM jobq_job WHERE subject = ? AND kind IN (SELECT name FROM jobq_kind WHERE intake = 1) ORDER BY id
"""


def retriage(
    conn: apsw.Connection, changes: list[Change], subject: str, *, actor: Actor, now: datetime
) -> tuple[Requeued, int]:
    """Forget what machines said of a subject and let its intake jobs run again."""
    gone = labels.remove(conn, subject, None, (LabelLayer.MACHINE,))
    found: list[Any] = conn.execute(INTAKE, (subject,)).fetchall()
    ids = [job_id for (job_id,) in found]
    answer = requeue.requeue(conn, changes, ids, queue=None, actor=actor, now=now)
    if gone or answer.ids:
        after = {"requeued": list(answer.ids)}
        changelog.write(conn, "retriaged", actor=actor, subject=subject, before=gone, after=after, now=now)
    return answer, len(gone)
