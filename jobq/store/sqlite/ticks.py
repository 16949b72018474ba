"""The tick: the due slots of schedules become jobs and their next runs move on, in one transaction.

What there is to do is decided twice by the same functions: on a reader, to see whether the write lock is needed, and
under the lock, where it counts.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import apsw

from jobq.errors import ArgumentError
from jobq.model.events import Change
from jobq.model.scheduled import Dispatched, ScheduleInfo, sane_since, timing_of
from jobq.store.scheduling import Attempts, Remark, Remarked, ScheduleOutlook, Ticked
from jobq.store.sqlite import rows, schedules, slots, texts

# jobq_schedule is small, and each row has to be looked at: a next run that a clock left behind stands anywhere.
ACTIVE = f"SELECT {schedules.COLUMNS} FROM jobq_schedule WHERE paused_at IS NULL ORDER BY next_run, name"

# The primary key.
ADVANCE = """
UPDATE jobq_schedule SET next_run = ?, anchor = ?, last_slot = coalesce(?, last_slot), error = NULL WHERE name = ?
"""
MARK = "UPDATE jobq_schedule SET error = ? WHERE name = ?"

_NEVER = 2**62


def look(conn: apsw.Connection, *, now: datetime) -> ScheduleOutlook:
    """Say which schedules a tick would change, and when the next slot of the others is due."""
    now_ms = rows.to_ms(now)
    names, upcoming = [], []
    found: list[Any] = conn.execute(ACTIVE).fetchall()
    for row in found:
        if not _is_quiet(row, now_ms) and _is_work(conn, *schedules.info(row), now):
            names.append(str(texts.lenient(row[0])))
        elif row[11] > now_ms:
            upcoming.append(row[11])
    return ScheduleOutlook(tuple(names), rows.from_ms(min(upcoming)) if upcoming else None)


def tick(
    conn: apsw.Connection, changes: list[Change], names: Sequence[str], *, attempts: Attempts, now: datetime
) -> Ticked:
    """Deal with each of these schedules as it is now."""
    dispatched: list[Dispatched] = []
    remarks: list[Remarked] = []
    for name in names:
        row: Any = conn.execute(schedules.ONE, (name,)).fetchone()
        info, problem = (None, None) if row is None else schedules.info(row)
        if info is None or info.paused or not _is_work(conn, info, problem, now):
            continue
        planned = slots.plan(conn, info, problem, attempts=attempts, now=now)
        if isinstance(planned, str):
            conn.execute(MARK, (planned, name))
            remarks.append(Remarked(Remark.FAILED, name, planned))
            continue
        dispatched.extend(slots.dispatch(conn, changes, info, planned, now=now))
        last = rows.to_ms(planned.due.slots[-1].at) if planned.due.slots else None
        conn.execute(ADVANCE, (rows.to_ms(planned.due.next_run), rows.to_ms(planned.anchor), last, name))
        remarks.extend(_remarks(info, planned, now))
    if dispatched:
        slots.sweep(conn, now=now)
    return Ticked(tuple(dispatched), tuple(remarks))


def run(
    conn: apsw.Connection, changes: list[Change], name: str, *, attempts: Attempts, actor: str | None, now: datetime
) -> list[Dispatched]:
    """Enqueue the entries of a schedule as no slot of it."""
    info, problem = schedules.info(schedules.require(conn, name))
    if problem is not None:
        raise ArgumentError("name", f"the schedule {name!r} was broken by hand: {problem}", fix="Add it again.")
    return slots.run(conn, changes, info, attempts=attempts, actor=actor, now=now)


def _is_quiet(row: Any, now_ms: int) -> bool:
    """Tell at a glance what holds for nearly every row of nearly every look: not due, no clock has gone wrong."""
    anchor, next_run, error, created_at = row[4], row[11], row[16], row[18]
    return (
        error is None
        and next_run > now_ms
        and not now_ms < anchor <= created_at
        and _sane_since(*row[1:5], next_run) <= now_ms
    )


def _is_work(conn: apsw.Connection, info: ScheduleInfo, problem: str | None, now: datetime) -> bool:
    """Tell whether a tick would change the row: it is due, too far ahead, broken in a new way, or mended."""
    if info.error is None and info.next_run <= now:
        return True
    planned = slots.plan(conn, info, problem, attempts=lambda kind: None, now=now)
    if isinstance(planned, str):
        return planned != info.error
    return info.error is not None or planned.due.next_run != info.next_run


def _remarks(info: ScheduleInfo, planned: slots.Plan, now: datetime) -> Iterator[Remarked]:
    due = planned.due
    if info.error is not None:
        yield Remarked(Remark.MENDED, info.name, "")
    if info.next_run > now:
        if due.next_run != info.next_run:
            yield Remarked(Remark.RECOMPUTED, info.name, due.next_run.isoformat())
    elif not planned.wanted:
        yield Remarked(Remark.SKIPPED, info.name, info.next_run.isoformat())
    elif due.dropped:
        yield Remarked(Remark.COLLAPSED, info.name, due.slots[-1].at.isoformat())


@lru_cache(maxsize=4_096)
def _sane_since(cron: bytes | None, every: int | None, tz: bytes, anchor: int, next_run: int) -> int:
    """Return since when a next run is not too far ahead, from the raw values of its row; never for a broken one."""
    try:
        period = None if every is None else every / 1000
        timing = timing_of(texts.lenient(cron), period, str(texts.lenient(tz)), rows.from_ms(anchor))
        return rows.to_ms(sane_since(timing, rows.from_ms(next_run)))
    except ArgumentError:
        return _NEVER
