"""Rows of schedules: written under their names, paused, listed."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.errors import ArgumentError, ScheduleNotFound
from jobq.model.cron import Cron
from jobq.model.entries import Entry, read_entries
from jobq.model.job import HIGHEST, LOWEST
from jobq.model.names import is_queue
from jobq.model.schedule import CatchUp, Timing
from jobq.model.scheduled import MOST_CATCH_UP, Rule, ScheduleInfo, timing_of
from jobq.store.sqlite import lookup, rows, texts

_CATCH_UPS: dict[str | None, CatchUp] = {each.value: each for each in CatchUp}

#: Texts travel as bytes: one that somebody wrote in another encoding must not make the driver raise in a tick.
COLUMNS = (
    "CAST(name AS BLOB), CAST(cron AS BLOB), every, CAST(tz AS BLOB), anchor, CAST(catch_up AS BLOB), max_catch_up, "
    "jitter, CAST(queue AS BLOB), priority, CAST(entries AS BLOB), next_run, last_slot, paused_at, "
    "CAST(paused_by AS BLOB), CAST(paused_why AS BLOB), CAST(error AS BLOB), CAST(module AS BLOB), created_at"
)
# The primary key; schedules are few.
ALL = f"SELECT {COLUMNS} FROM jobq_schedule ORDER BY name"
SOME = f"SELECT {COLUMNS} FROM jobq_schedule WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name"
ONE = f"SELECT {COLUMNS} FROM jobq_schedule WHERE name = ?"
NAMES = "SELECT CAST(name AS BLOB) FROM jobq_schedule ORDER BY name"

PUT = """
INSERT INTO jobq_schedule (name, cron, every, tz, anchor, catch_up, max_catch_up, jitter, queue, priority, entries,
                           module, next_run, created_at)
VALUES (:name, :cron, :every, :tz, :anchor, :catch_up, :max_catch_up, :jitter, :queue, :priority, :entries,
        :module, :next_run, :now)
ON CONFLICT (name) DO UPDATE SET
    cron = excluded.cron, every = excluded.every, tz = excluded.tz, anchor = excluded.anchor,
    catch_up = excluded.catch_up, max_catch_up = excluded.max_catch_up, jitter = excluded.jitter,
    queue = excluded.queue, priority = excluded.priority, entries = excluded.entries, module = excluded.module,
    next_run = excluded.next_run, error = NULL
"""
SWEEP = """
DELETE FROM jobq_schedule
WHERE module IN (SELECT value FROM json_each(?)) AND name NOT IN (SELECT value FROM json_each(?))
"""
REMOVE = "DELETE FROM jobq_schedule WHERE name = ?"
PAUSE = "UPDATE jobq_schedule SET paused_at = ?, paused_by = ?, paused_why = ? WHERE name = ? AND paused_at IS NULL"
RESUME = """
UPDATE jobq_schedule SET paused_at = NULL, paused_by = NULL, paused_why = NULL
WHERE name = ? AND paused_at IS NOT NULL
"""


def put(
    conn: apsw.Connection, rules: Sequence[Rule], *, sweep: Collection[str], now: datetime
) -> list[ScheduleInfo]:
    """Write each rule that says something new, then remove what the swept modules no longer declare."""
    for rule in rules:
        _put(conn, rule, now)
    names = json.dumps([rule.name for rule in rules])
    if sweep:
        conn.execute(SWEEP, (json.dumps(sorted(sweep)), names))
    return schedules(conn, [rule.name for rule in rules])


def remove(conn: apsw.Connection, name: str) -> bool:
    """Remove a schedule; return False when there was none."""
    conn.execute(REMOVE, (name,))
    return bool(conn.changes())


def pause(conn: apsw.Connection, name: str, *, who: str | None, why: str | None, now: datetime) -> bool:
    """Remember a pause; return False when there was one already."""
    require(conn, name)
    conn.execute(PAUSE, (rows.to_ms(now), who, why, name))
    return bool(conn.changes())


def resume(conn: apsw.Connection, name: str) -> bool:
    """Forget a pause; return False when there was none."""
    require(conn, name)
    conn.execute(RESUME, (name,))
    return bool(conn.changes())


def schedules(conn: apsw.Connection, names: Sequence[str] | None) -> list[ScheduleInfo]:
    """Return every schedule by name, or those wanted that exist."""
    cursor = conn.execute(ALL) if names is None else conn.execute(SOME, (json.dumps(list(names)),))
    return list(lookup.readable(cursor, lambda row: info(row)[0]))


def require(conn: apsw.Connection, name: str) -> Any:
    """Return the row of a schedule; raises ScheduleNotFound where there is none."""
    row: Any = conn.execute(ONE, (name,)).fetchone()
    if row is None:
        found: list[Any] = conn.execute(NAMES).fetchall()
        raise ScheduleNotFound(name, known=tuple(str(texts.lenient(known)) for (known,) in found))
    return row


def info(row: Any) -> tuple[ScheduleInfo, str | None]:
    """Read :data:`COLUMNS`, and say what is wrong with the entries, which are empty then, or with another column."""
    try:
        entries, problem = read_entries(texts.strict(row[10])), None
    except ValueError as error:
        entries, problem = (), str(error)
    read = _info(row, entries)
    return read, problem or _problem(read, texts.lenient(row[5]))


def _problem(read: ScheduleInfo, catch_up: str | None) -> str | None:
    if read.queue is not None and not is_queue(read.queue):
        return "its queue is no name of a queue"
    if catch_up != read.catch_up:
        return "there is no such way to catch up"
    if read.priority is not None and not LOWEST <= read.priority <= HIGHEST:
        return "its priority is out of range"
    return None


def _info(row: Any, entries: tuple[Entry, ...]) -> ScheduleInfo:
    return ScheduleInfo(
        name=str(texts.lenient(row[0])),
        cron=texts.lenient(row[1]),
        every=None if row[2] is None else row[2] / 1000,
        tz=str(texts.lenient(row[3])),
        anchor=rows.from_ms(row[4]),
        catch_up=_CATCH_UPS.get(texts.lenient(row[5]), CatchUp.ONCE),
        max_catch_up=min(row[6], MOST_CATCH_UP),
        jitter=row[7] / 1000,
        queue=texts.lenient(row[8]),
        priority=row[9],
        entries=entries,
        next_run=rows.from_ms(row[11]),
        last_slot=_time(row[12]),
        paused_at=_time(row[13]),
        paused_by=texts.lenient(row[14]),
        paused_why=texts.lenient(row[15]),
        error=texts.lenient(row[16]),
        module=texts.lenient(row[17]),
        created_at=rows.from_ms(row[18]),
    )


def _put(conn: apsw.Connection, rule: Rule, now: datetime) -> None:
    row: Any = conn.execute(ONE, (rule.name,)).fetchone()
    known = None if row is None else info(row)[0]
    anchor = rule.anchor or (now if known is None else known.anchor)
    bindings: dict[str, Any] = {
        "name": rule.name,
        "cron": rule.cron,
        "every": None if rule.every is None else rows.span_ms(rule.every),
        "tz": rule.tz,
        "anchor": rows.to_ms(anchor),
        "catch_up": rule.catch_up.value,
        "max_catch_up": rule.max_catch_up,
        "jitter": rows.span_ms(rule.jitter),
        "queue": rule.queue,
        "priority": rule.priority,
        "entries": rule.entries,
        "module": rule.module,
    }
    if row is not None and _values(row) == tuple(bindings.values()):
        return
    conn.execute(PUT, {**bindings, "next_run": rows.to_ms(_next_run(rule, anchor, known, now)), "now": rows.to_ms(now)})


def _next_run(rule: Rule, anchor: datetime, known: ScheduleInfo | None, now: datetime) -> datetime:
    timing = timing_of(rule.cron, rule.every, rule.tz, anchor)
    try:
        if known is not None and _is_same(known.timing, timing):
            return known.next_run
    except ArgumentError:
        pass  # broken by hand, and mended by this
    return timing.next_after(now)


def _is_same(known: Timing, timing: Timing) -> bool:
    return timing.agrees(known) if isinstance(timing, Cron) else timing == known


def _values(row: Any) -> tuple[Any, ...]:
    """Return the columns of a row that a rule sets, in the order of the bindings."""
    read = [texts.lenient(value) if isinstance(value, bytes) else value for value in row]
    return (*read[:11], read[17])


def _time(value: int | None) -> datetime | None:
    return None if value is None else rows.from_ms(value)
