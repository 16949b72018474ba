"""The slots of one schedule: which of them are to run now, with which jobs, and the guards that make each run once."""

from datetime import datetime
from typing import NamedTuple

import apsw

from jobq.errors import ArgumentError, DedupeConflict, KindNotAccepted, PayloadError, RetiredKind
from jobq.model.entries import Entry
from jobq.model.events import Change
from jobq.model.instant import shift
from jobq.model.payload import encode
from jobq.model.schedule import Due, Slot, due_slots, jitter_delay, sane_next_run, slot_key
from jobq.model.scheduled import Dispatched, ScheduleInfo, timing_of
from jobq.store.base import Draft, Placed
from jobq.store.scheduling import Attempts
from jobq.store.sqlite import enqueue, placing, rows

# The primary key of jobq_slot.
GUARD = "SELECT 1 FROM jobq_slot WHERE schedule = ? AND slot = ? AND entry = ?"
ADD_GUARD = "INSERT INTO jobq_slot (schedule, slot, entry, job_id) VALUES (?, ?, ?, ?)"

# jobq_slot_orphan, a page at a time; a tick adds fewer guards than these take away.
ORPHANED = """
UPDATE jobq_slot SET orphaned_at = ?
WHERE job_id IS NULL AND orphaned_at IS NULL AND (schedule, slot, entry) IN (
    SELECT schedule, slot, entry FROM jobq_slot WHERE job_id IS NULL AND orphaned_at IS NULL LIMIT 2000)
"""
FORGET = """
DELETE FROM jobq_slot
WHERE job_id IS NULL AND orphaned_at <= :then AND (schedule, slot, entry) IN (
    SELECT schedule, slot, entry FROM jobq_slot WHERE job_id IS NULL AND orphaned_at <= :then LIMIT 2000)
"""
#: A guard outlives its job by so many milliseconds.
KEPT = 30 * 86_400_000

_LONGEST_ERROR = 500
#: The limit of a payload was applied when its entry was added.
_ANY_SIZE = 2**62


class Plan(NamedTuple):
    """What a tick would do for one schedule."""

    due: Due
    anchor: datetime
    #: The slots and entries that have no guard yet, and the job of each.
    wanted: list[tuple[Slot, Entry]]
    drafts: list[Draft]


def plan(
    conn: apsw.Connection, info: ScheduleInfo, problem: str | None, *, attempts: Attempts, now: datetime
) -> Plan | str:
    """Return what a tick would do, or why the schedule cannot fire: ``problem`` or what is found out here.

    Nothing is written; whatever the enqueue would refuse is found before.
    """
    try:
        anchor = info.anchored(now)
        due = _due(info, anchor, now)
        if problem is not None:
            return problem
        wanted = [
            (slot, entry) for slot in due.slots for entry in info.entries if not _guarded(conn, info, slot, entry)
        ]
        drafts = [_draft_of_slot(info, entry, slot, attempts) for slot, entry in wanted]
        for draft in drafts:
            _refuse(conn, draft)
    except (ArgumentError, PayloadError, RetiredKind, KindNotAccepted, DedupeConflict) as error:
        return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    return Plan(due, anchor, wanted, drafts)


def dispatch(
    conn: apsw.Connection, changes: list[Change], info: ScheduleInfo, planned: Plan, *, now: datetime
) -> list[Dispatched]:
    """Enqueue the jobs of a plan and guard their slots."""
    placed: list[Placed] = enqueue.enqueue(conn, changes, planned.drafts, now=now)
    made = [
        Dispatched(
            schedule=info.name,
            slot=slot.at,
            entry=str(entry.name),
            job_id=one.id,
            created=one.created,
            catch_up=slot.catch_up,
        )
        for (slot, entry), one in zip(planned.wanted, placed, strict=True)
    ]
    guards = [
        (info.name, rows.to_ms(slot.at), entry.name, one.id)
        for (slot, entry), one in zip(planned.wanted, placed, strict=True)
    ]
    conn.executemany(ADD_GUARD, guards)
    return made


def run(
    conn: apsw.Connection,
    changes: list[Change],
    info: ScheduleInfo,
    *,
    attempts: Attempts,
    actor: str | None,
    now: datetime,
) -> list[Dispatched]:
    """Enqueue the entries as no slot: without guards, and without a key but the entry's own."""
    drafts = [_draft(info, entry, attempts)._replace(actor=actor or entry.actor) for entry in info.entries]
    placed = enqueue.enqueue(conn, changes, drafts, now=now)
    return [
        Dispatched(schedule=info.name, slot=None, entry=str(entry.name), job_id=one.id, created=one.created)
        for entry, one in zip(info.entries, placed, strict=True)
    ]


def sweep(conn: apsw.Connection, *, now: datetime) -> None:
    """Note the guards whose jobs are gone, and forget those that were noted 30 days ago."""
    now_ms = rows.to_ms(now)
    conn.execute(FORGET, {"then": now_ms - KEPT})
    conn.execute(ORPHANED, (now_ms,))


def _due(info: ScheduleInfo, anchor: datetime, now: datetime) -> Due:
    timing = timing_of(info.cron, info.every, info.tz, anchor)
    if info.next_run <= now:
        return due_slots(timing, info.next_run, now, info.catch_up, info.max_catch_up)
    return Due(slots=(), next_run=sane_next_run(timing, info.next_run, now), dropped=False)


def _guarded(conn: apsw.Connection, info: ScheduleInfo, slot: Slot, entry: Entry) -> bool:
    return conn.execute(GUARD, (info.name, rows.to_ms(slot.at), entry.name)).fetchone() is not None


def _refuse(conn: apsw.Connection, draft: Draft) -> None:
    placing.look(conn, draft.kind, draft.queue)
    held = None if draft.dedupe_key is None else enqueue.holder(conn, draft.dedupe_key)
    if held is not None and held[1] != draft.kind:
        raise DedupeConflict(held[0], why=f"a job of kind {held[1]!r}, not {draft.kind!r}")


def _draft_of_slot(info: ScheduleInfo, entry: Entry, slot: Slot, attempts: Attempts) -> Draft:
    alone = len(info.entries) == 1
    return _draft(info, entry, attempts)._replace(
        run_at=shift(slot.at, jitter_delay(info.name, slot.at, info.jitter), argument="jitter"),
        dedupe_key=entry.dedupe_key or slot_key(info.name, slot.at, None if alone else entry.name),
        slot=slot.at,
        catch_up=slot.catch_up,
    )


def _draft(info: ScheduleInfo, entry: Entry, attempts: Attempts) -> Draft:
    return Draft(
        entry.kind,
        entry.queue or info.queue,
        encode(entry.payload, limit=_ANY_SIZE),
        info.priority if entry.priority is None else entry.priority,
        attempts(entry.kind) if entry.max_attempts is None else entry.max_attempts,
        dedupe_key=entry.dedupe_key,
        actor=entry.actor,
        tenant_id=entry.tenant_id,
        subject=entry.subject,
        meta=None if entry.meta is None else encode(dict(entry.meta), limit=_ANY_SIZE),
        schedule=info.name,
    )
