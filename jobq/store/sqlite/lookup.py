"""Read jobs: by id, by filter, their counts and their run history."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import apsw

from jobq.log import get_logger
from jobq.model.job import Job, JobInfo, JobState, Run
from jobq.store.base import Filter
from jobq.store.sqlite import rows, texts

log = get_logger(__name__)
T = TypeVar("T")

# The primary key, once for each id.
GET = f"SELECT {rows.JOB_COLUMNS} FROM jobq_job WHERE id IN (SELECT value FROM json_each(?))"
STATES = "SELECT id, state FROM jobq_job WHERE id IN (SELECT value FROM json_each(?))"

# The inner SELECT reads ids alone, from the index that serves its fragments, so that sorting never carries rows.
FIND = f"SELECT {rows.INFO_COLUMNS} FROM jobq_job WHERE id IN (SELECT id FROM jobq_job"
FIND_PAGE = " ORDER BY id DESC LIMIT ?) ORDER BY id DESC"
# The + keeps the planner from walking the whole table by id in search of the few rows that are in a state.
FIND_PAGE_OF_STATE = " ORDER BY +id DESC LIMIT ?) ORDER BY id DESC"
COUNT = "SELECT count(*) FROM jobq_job"
MATCHING = "SELECT id FROM jobq_job"
MATCHING_PAGE = " ORDER BY id DESC LIMIT ?"
MATCHING_PAGE_OF_STATE = " ORDER BY +id DESC LIMIT ?"
# The primary key, once for each id: CROSS JOIN keeps the planner from reading all that matches instead.
STILL = "SELECT id FROM (SELECT value AS asked FROM json_each(?)) CROSS JOIN jobq_job ON id = asked WHERE "

# jobq_job_lane, jobq_job_lease and jobq_job_ended are partial: a state is named by a literal so that they can serve.
STATE_FRAGMENTS = {
    JobState.QUEUED: "state = 'queued'",
    JobState.RUNNING: "state = 'running'",
    JobState.SUCCEEDED: "state = 'succeeded' AND finished_at IS NOT NULL",
    JobState.FAILED: "state = 'failed' AND finished_at IS NOT NULL",
    JobState.CANCELLED: "state = 'cancelled' AND finished_at IS NOT NULL",
}
FRAGMENTS = {
    "kind": "kind = ?",
    "queue": "queue = ?",
    "parent_id": "parent_id = ?",
    "tenant_id": "tenant_id = ?",
    "subject": "subject = ?",
    "dedupe_key": "dedupe_key = ?",
    "failure_reason": "failure_reason = ?",
    "older_than": "coalesce(finished_at, created_at) <= ?",
    "newer_than": "coalesce(finished_at, created_at) > ?",
    "before": "id < ?",
}

# jobq_job_ended, from its newest end.
FAILURES = f"""
SELECT {rows.INFO_COLUMNS} FROM jobq_job WHERE state = 'failed' AND finished_at IS NOT NULL
ORDER BY finished_at DESC LIMIT ?
"""
# The primary key of jobq_run.
HISTORY = """
SELECT job_id, number, attempt, worker, started_at, ended_at, error, reason, class
FROM jobq_run WHERE job_id = ? ORDER BY number
"""


def get(conn: apsw.Connection, ids: Sequence[int]) -> dict[int, Job]:
    """Return the jobs with these ids; unknown and unreadable ones are left out."""
    return {job.id: job for job in readable(conn.execute(GET, (json.dumps(list(ids)),)), rows.job)}


def states(conn: apsw.Connection, ids: Sequence[int]) -> dict[int, JobState]:
    """Return the states of the jobs with these ids."""
    found = texts.legible(conn.execute(STATES, (json.dumps(list(ids)),)))
    known = {state.value for state in JobState}
    return {job_id: JobState(state) for job_id, state in found if state in known}


def find(conn: apsw.Connection, wanted: Filter, *, limit: int | None) -> list[JobInfo]:
    """Return matching jobs, newest first; payloads and results are not read."""
    where, bindings = _where(wanted)
    page = FIND_PAGE if wanted.state is None else FIND_PAGE_OF_STATE
    cursor = conn.execute(FIND + where + page, (*bindings, -1 if limit is None else limit))
    return list(readable(cursor, rows.job_info))


def matching(conn: apsw.Connection, wanted: Filter, *, limit: int | None) -> list[int]:
    """Return the ids of the newest matching jobs, oldest first."""
    where, bindings = _where(wanted)
    page = MATCHING_PAGE if wanted.state is None else MATCHING_PAGE_OF_STATE
    found: list[Any] = conn.execute(MATCHING + where + page, (*bindings, -1 if limit is None else limit)).fetchall()
    return [job_id for (job_id,) in reversed(found)]


def still(conn: apsw.Connection, wanted: Filter | None, ids: Iterable[int]) -> list[int]:
    """Return those of the ids that still match, in their order; all where nothing is wanted of them."""
    asked = list(ids)
    if wanted is None:
        return asked
    fragments, bindings = _fragments(wanted)
    found: list[Any] = conn.execute(STILL + " AND ".join(fragments), (json.dumps(asked), *bindings)).fetchall()
    fit = {job_id for (job_id,) in found}
    return [job_id for job_id in asked if job_id in fit]


def count(conn: apsw.Connection, wanted: Filter) -> dict[JobState, int]:
    """Count matching jobs by state, each state from the index that holds its rows."""
    counts = {}
    for state, fragment in STATE_FRAGMENTS.items():
        if wanted.state in (None, state):
            where, bindings = _where(wanted._replace(state=None))
            condition = f"{where} AND {fragment}" if where else f" WHERE {fragment}"
            found: list[Any] = conn.execute(COUNT + condition, bindings).fetchall()
            counts[state] = found[0][0]
        else:
            counts[state] = 0
    return counts


def failures(conn: apsw.Connection, *, limit: int) -> list[JobInfo]:
    """Return the jobs that failed last, newest first; payloads and results are not read."""
    return list(readable(conn.execute(FAILURES, (limit,)), rows.job_info))


def history(conn: apsw.Connection, job_id: int) -> list[Run]:
    """Return a job's counted runs that did not succeed, oldest first."""
    return list(readable(conn.execute(HISTORY, (job_id,)), rows.run))


def _where(wanted: Filter) -> tuple[str, tuple[Any, ...]]:
    """Compose constant fragments; values are always bound."""
    fragments, bindings = _fragments(wanted)
    return (" WHERE " + " AND ".join(fragments) if fragments else ""), bindings


def _fragments(wanted: Filter) -> tuple[list[str], tuple[Any, ...]]:
    named = wanted._asdict()
    fragments = [FRAGMENTS[name] for name in FRAGMENTS if named[name] is not None]
    values = (named[name] for name in FRAGMENTS if named[name] is not None)
    if wanted.state is not None:
        fragments.append(STATE_FRAGMENTS[wanted.state])
    return fragments, tuple(rows.to_ms(value) if isinstance(value, datetime) else value for value in values)


def readable(cursor: apsw.Cursor, build: Callable[[Sequence[Any]], T]) -> Iterator[T]:
    """Build a value for each row; one that was broken by hand is reported and left out."""
    for row in texts.legible(cursor):
        try:
            yield build(row)
        except (ValueError, TypeError, RecursionError) as error:
            log.warning("jobq.row.skipped", id=row[0], error=type(error).__name__)
