"""Schedules as values: the rule that is stored, how it is listed, and what a tick made of it."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import attrs

from jobq.errors import ArgumentError
from jobq.model.cron import Cron
from jobq.model.entries import Entry
from jobq.model.schedule import CatchUp, Interval, Timing, last_slot, sane_next_run

#: The most missed slots that a schedule makes up for at once.
MOST_CATCH_UP = 1_000

#: No cron expression pauses for longer: 29 February on one weekday comes within 40 years.
_LONGEST_PAUSE = timedelta(days=366 * 90)
_TICK = timedelta.resolution
#: Earlier slots need not be told apart: no clock is that late.
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class RuleOptions:
    """What is said of a schedule besides its entries; every part of it was checked."""

    name: str
    cron: str | None
    #: Seconds.
    every: float | None
    tz: str
    #: None is the creation, and for a schedule that exists its present anchor.
    anchor: datetime | None
    catch_up: CatchUp
    max_catch_up: int
    #: Seconds.
    jitter: float
    queue: str | None
    priority: int | None
    #: The module that declares it; None where it was added by hand.
    module: str | None = None


@attrs.frozen(kw_only=True)
class Rule(RuleOptions):
    """What is stored of a schedule when it is added."""

    #: The entries as JSON text; :func:`jobq.model.entries.read_entries` reads it.
    entries: str


@attrs.frozen(kw_only=True)
class ScheduleInfo:
    """A schedule as it is stored.

    Times are aware and in UTC; durations are in seconds. ``next_run`` is the next slot that has not been dealt with.
    """

    name: str
    cron: str | None
    every: float | None
    tz: str
    anchor: datetime
    catch_up: CatchUp
    max_catch_up: int
    jitter: float
    queue: str | None
    priority: int | None
    #: Empty where the row was broken by hand; ``error`` says so after the next tick.
    entries: tuple[Entry, ...]
    next_run: datetime
    last_slot: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    paused_why: str | None
    #: Why it cannot fire, in words; None while all is well.
    error: str | None
    module: str | None
    created_at: datetime

    @property
    def paused(self) -> bool:
        """Whether its slots wait until it is resumed."""
        return self.paused_at is not None

    @property
    def timing(self) -> Timing:
        """The rule that names its slots; raises ArgumentError, CronError is one, where the row was broken by hand."""
        return timing_of(self.cron, self.every, self.tz, self.anchor)

    def anchored(self, now: datetime) -> datetime:
        """Return the anchor, moved back by whole periods where a clock that was ahead when it was set has come back.

        The phase stays; else there would be no slot until that time comes again. An anchor that was set beyond the
        creation is meant to be waited for.
        """
        if self.every is None or not now < self.anchor <= self.created_at:
            return self.anchor
        period = Interval(self.every, self.anchor).period
        return self.anchor + (now - self.anchor) // period * period

    def sane(self, now: datetime) -> "ScheduleInfo":
        """Return it with the next run and the anchor that the next tick gives it, where a clock has come back.

        One that a tick could not mend, because its row was broken by hand, is returned as it is.
        """
        anchor = self.anchored(now)
        try:
            next_run = sane_next_run(timing_of(self.cron, self.every, self.tz, anchor), self.next_run, now)
        except ArgumentError:
            return self
        return attrs.evolve(self, anchor=anchor, next_run=next_run)

    def slots(self, count: int, *, after: datetime) -> list[datetime]:
        """Return up to ``count`` slots from ``next_run`` on, none of them at or before ``after``."""
        sane = self.sane(after)
        timing, found = sane.timing, [sane.next_run] if sane.next_run > after else []
        try:
            while len(found) < count:
                found.append(timing.next_after(found[-1] if found else after))
        except ArgumentError:  # the calendar ends
            return found
        return found[:count]


@attrs.frozen(kw_only=True)
class Dispatched:
    """What a schedule did for one entry of one slot."""

    schedule: str
    #: None where it was run by hand.
    slot: datetime | None
    entry: str
    #: The new job, or the one that held the entry's own key.
    job_id: int
    created: bool
    catch_up: bool = False


@lru_cache(maxsize=4_096)
def timing_of(cron: str | None, every: float | None, tz: str, anchor: datetime) -> Timing:
    """Return the rule that names a schedule's slots.

    Raises:
        CronError: the expression is malformed or can never fire.
        ArgumentError: the zone is unknown, the period is below 1 ms, or it has both an expression and a period.
    """
    if cron is not None and every is not None:
        raise ArgumentError("every", "name either every or cron, not both")
    if cron is not None:
        return Cron(cron, tz)
    if every is None:
        raise ArgumentError("every", "name every or cron", fix='For example every="5m" or cron="0 7 * * mon-fri".')
    return Interval(every, anchor)


def sane_since(timing: Timing, next_run: datetime) -> datetime:
    """Return since when a next run is at most one period ahead: since the slot before the one before it.

    Where there is none, it is some instant before the first slot.
    """
    floor = max(next_run, _FIRST) - _LONGEST_PAUSE
    if isinstance(timing, Interval):
        floor = min(floor, timing.anchor)
    found = next_run
    for _ in range(2):
        found = last_slot(timing, max(floor, found - _TICK), floor)
    return found
