"""Write the end of a run, if its token is still the job's."""

import contextlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from jobq.errors import DedupeConflict, JobNotFound, KindNotAccepted, RetiredKind
from jobq.log import get_logger
from jobq.model.draft import Draft
from jobq.model.effects import Decision, Facts, Verdict
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.model.lease import Settled, Settlement
from jobq.model.outcome import Succeeded
from jobq.model.state_machine import settle as decide
from jobq.store.sqlite import enqueue, rows, texts

log = get_logger(__name__)

# The primary key.
READ = f"SELECT id, kind, queue, token, worker, started_at, {rows.FACT_COLUMNS} FROM jobq_job WHERE id = ?"
# The same for many at once.
READ_ALL = f"""
SELECT id, kind, queue, token, worker, started_at, {rows.FACT_COLUMNS} FROM jobq_job
WHERE id IN (SELECT value FROM json_each(?))
"""

# The fence: the row must still be in the state, and under the token, that the decision was made for.
WRITE = """
UPDATE jobq_job
SET state = ?, attempts = ?, deferrals = ?, run_at = coalesce(?, run_at), last_error = ?, failure_reason = ?,
    failure_class = ?, result = ?, finished_at = ?,
    token = NULL, worker = NULL, lease_until = NULL, lease_length = NULL, lease_held = 0, cancel_requested_at = NULL
WHERE id = ? AND state = ? AND token IS ?
"""
# The same for the end that most jobs have: what is not named need not be looked up in the indexes that hold it. What is
# told of the end comes with it: texts as bytes, for the driver would raise in the middle of a batch.
SUCCEED = """
UPDATE jobq_job
SET state = 'succeeded', last_error = NULL, result = ?, finished_at = ?,
    token = NULL, worker = NULL, lease_until = NULL, lease_length = NULL, lease_held = 0, cancel_requested_at = NULL
WHERE id = ? AND state = 'running' AND token = ?
RETURNING id, CAST(kind AS BLOB), CAST(queue AS BLOB), attempts, ?
"""
WRITE_RESULT = "INSERT OR REPLACE INTO jobq_result (job_id, body) VALUES (?, ?)"

# The primary key of jobq_run.
RECORD = """
INSERT INTO jobq_run (job_id, number, attempt, worker, started_at, ended_at, error, reason, class)
SELECT ?, 1 + coalesce(max(number), 0), ?, ?, ?, ?, ?, ?, ? FROM jobq_run WHERE job_id = ?
"""

#: Bindings of statements that are still to be carried out.
Written = dict[str, list[tuple[Any, ...]]]


class Subject(NamedTuple):
    """The row that a decision is about, besides the facts that the decision was made from."""

    id: int
    kind: str
    queue: str
    token: str | None = None
    worker: str | None = None
    started_at: int | None = None


def settle(
    conn: apsw.Connection,
    changes: list[Change],
    settlements: Sequence[Settlement],
    *,
    now: datetime,
    roll: Callable[[], float],
) -> list[Settled]:
    """Settle each run; an old token is answered with SUPERSEDED and leaves its row alone."""
    done = _succeed(conn, changes, settlements, now)
    rest = len(settlements) - len(done)
    if not rest:
        return [Settled(one.job_id, Verdict.SUCCEEDED) for one in settlements]
    settled = []
    standing = _read_all(conn, [one.job_id for one in settlements]) if rest > 1 else {}
    # Rows are written together, at the latest when a later step looks at them.
    written: Written = {}
    for job_id, token, outcome, policy, follow_ups in settlements:
        if (job_id, token) in done:
            done.remove((job_id, token))  # whoever settles it twice in one go is superseded the second time
            settled.append(Settled(job_id, Verdict.SUCCEEDED))
            continue
        found = standing.pop(job_id, None)
        if found is None:
            _flush(conn, written)
            found = read(conn, job_id)
        decision = None
        if found is not None and found[0].token == token:
            decision = decide(found[1], outcome, policy=policy, now=now, roll=roll())
        if found is None or decision is None:
            settled.append(Settled(job_id, Verdict.SUPERSEDED))
            continue
        statement, bindings = _carry_out(conn, changes, *found, decision, now=now)
        written.setdefault(statement, []).append(bindings)
        refused: tuple[tuple[str, str], ...] = ()
        if follow_ups and decision.verdict is Verdict.SUCCEEDED:
            _flush(conn, written)
            refused = _follow(conn, changes, follow_ups, now)
        settled.append(
            Settled(job_id, decision.verdict, decision.run_at, decision.last_error, decision.reason, refused)
        )
    _flush(conn, written)
    return settled


def _succeed(
    conn: apsw.Connection, changes: list[Change], settlements: Sequence[Settlement], now: datetime
) -> set[tuple[int, str]]:
    """Write the plain successes and return their ids and tokens; what is left out here is for a closer look.

    A success asks nothing of the row but the token (:data:`jobq.model.state_machine.TABLE`), so none is read before.
    """
    now_ms = rows.to_ms(now)
    plain = [
        (outcome.result, now_ms, job_id, token, token)
        for job_id, token, outcome, _, follow_ups in settlements
        if isinstance(outcome, Succeeded) and not follow_ups and not texts.is_long(outcome.result)
    ]
    written: list[Any] = conn.executemany(SUCCEED, plain).fetchall() if plain else []
    for job_id, kind, queue, attempts, _ in written:
        names = texts.strict(kind), texts.strict(queue)
        changes.append(Change(job_id, *names, JobState.RUNNING, JobState.SUCCEEDED, attempts, None, now))
    return {(job_id, token) for job_id, _, _, _, token in written}


def _read_all(conn: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[Subject, Facts]]:
    """Return what decisions need to know of jobs; one that is missing or cannot be read is left to :func:`read`."""
    found: dict[int, tuple[Subject, Facts]] = {}
    with contextlib.suppress(UnicodeDecodeError):
        legible: list[Any] = conn.execute(READ_ALL, (json.dumps(ids),)).fetchall()
        for row in legible:
            with contextlib.suppress(rows.BadRow):
                found[row[0]] = Subject._make(row[:6]), rows.facts(row[6:])
    return found


def _flush(conn: apsw.Connection, written: Written) -> None:
    for statement, bindings in written.items():
        conn.executemany(statement, bindings)
    written.clear()


def _follow(
    conn: apsw.Connection, changes: list[Change], follow_ups: Sequence[Draft], now: datetime
) -> tuple[tuple[str, str], ...]:
    """Insert follow-ups one by one; what jobq refuses undoes neither the success nor the others."""
    refused = []
    for draft in follow_ups:
        try:
            enqueue.enqueue(conn, changes, (draft,), now=now)
        except (DedupeConflict, KindNotAccepted, RetiredKind, JobNotFound) as error:
            refused.append((draft.kind, type(error).__name__))
    return tuple(refused)


def read(conn: apsw.Connection, job_id: int) -> tuple[Subject, Facts] | None:
    """Return what a decision needs to know of a job; None where there is none, or none that can be read."""
    try:
        row = conn.execute(READ, (job_id,)).fetchone()
        return None if row is None else (Subject._make(row[:6]), rows.facts(row[6:]))
    except (rows.BadRow, UnicodeDecodeError) as error:
        log.warning("jobq.row.skipped", id=job_id, error=type(error).__name__)
        return None


def write(
    conn: apsw.Connection,
    changes: list[Change],
    subject: Subject,
    facts: Facts,
    decision: Decision,
    *,
    now: datetime,
) -> None:
    """Carry out a decision that ends a run or a wait: the row, its history and the change for the feed."""
    statement, bindings = _carry_out(conn, changes, subject, facts, decision, now=now)
    conn.execute(statement, bindings)


def _carry_out(
    conn: apsw.Connection,
    changes: list[Change],
    subject: Subject,
    facts: Facts,
    decision: Decision,
    *,
    now: datetime,
) -> tuple[str, tuple[Any, ...]]:
    """Do all but writing the row, and return the statement that does, and its bindings."""
    inline, body = texts.beside(decision.result)
    if body is not None:
        conn.execute(WRITE_RESULT, (subject.id, body))
    if decision.recorded:
        _record(conn, subject, facts, decision, now)
    run_at = (decision.run_at or now) if decision.state is JobState.QUEUED else None
    changes.append(
        Change(subject.id, subject.kind, subject.queue, facts.state, decision.state, decision.attempts, run_at, now)
    )
    return WRITE, (*rows.decision_bindings(decision, inline), subject.id, facts.state.value, subject.token)


def _record(conn: apsw.Connection, subject: Subject, facts: Facts, decision: Decision, now: datetime) -> None:
    bindings: tuple[Any, ...] = (
        subject.id,
        facts.attempts,
        subject.worker,
        subject.started_at,
        rows.to_ms(now),
        decision.last_error,
        decision.reason,
        decision.failure_class,
        subject.id,
    )
    conn.execute(RECORD, bindings)
