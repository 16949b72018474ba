"""Schedules: which slots are due, which of them run, and what they are called. Pure; a clock ten years ahead is cheap.

A slot is an instant at which a schedule makes its jobs. A slot counts as missed once a later one is due too, or when
it is more than :data:`MISSED_AFTER` late; for ``skip`` half the way to the next slot is enough, if that is less.
"""

import hashlib
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

import attrs

from jobq.errors import ArgumentError
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import EPOCH, require_aware

#: A slot that is later than this is missed: far more than a tick under load takes, far less than a stop or a sleep.
MISSED_AFTER = timedelta(seconds=60)
#: The longest key of a slot, which is that of a dedupe key.
MAX_KEY = 512

_MILLISECOND = timedelta(milliseconds=1)
_TICK = timedelta.resolution
#: The first look back, which finds the slot of a schedule that runs each minute.
_NARROW = timedelta(minutes=2)
_OUT_OF_RANGE = "the slot after it is outside the years 1 to 9999"


class CatchUp(StrEnum):
    """What becomes of the slots that were missed while nobody ticked."""

    ONCE = "once"  #: they collapse into one run, which carries the newest slot
    SKIP = "skip"  #: they never run
    ALL = "all"  #: the newest of them run, up to a bound


class Timing(Protocol):
    """A rule that names slots: an :class:`Interval` or a :class:`~jobq.model.cron.Cron`."""

    def next_after(self, when: datetime) -> datetime:
        """Return the first slot strictly after an instant, in UTC, in bounded work; ArgumentError if there is none."""


def _to_period(value: Duration) -> timedelta:
    milliseconds = round(to_seconds(value, argument="every") * 1_000)
    if milliseconds < 1:
        raise ArgumentError("every", "a period is at least 1 ms", fix='Use a duration such as 30, "5m" or "1h30m".')
    return milliseconds * _MILLISECOND


def _to_anchor(value: datetime) -> datetime:
    anchor = require_aware(value, argument="anchor")
    return anchor - (anchor - EPOCH) % _MILLISECOND


@attrs.frozen
class Interval:
    """Slots at anchor + k × period for k = 1, 2, ...: exactly, however late a tick is.

    ``period`` takes any duration and is rounded to milliseconds, at least one; what is finer in ``anchor``, an aware
    datetime, is dropped, as it is when it is stored. Anything else raises :class:`ArgumentError`.
    """

    period: timedelta = attrs.field(converter=_to_period)
    anchor: datetime = attrs.field(converter=_to_anchor)

    def next_after(self, when: datetime) -> datetime:
        """Return the first slot strictly after an aware datetime, in UTC; never one before anchor + period.

        A slot beyond the year 9999 raises :class:`ArgumentError`.
        """
        # Integer arithmetic on timedeltas: no rounding, whatever the number of periods.
        count = (require_aware(when, argument="when") - self.anchor) // self.period + 1
        try:
            return self.anchor + max(count, 1) * self.period
        except OverflowError:
            raise ArgumentError("when", _OUT_OF_RANGE) from None


@attrs.frozen(kw_only=True)
class Slot:
    """A slot that is to run; ``catch_up`` says that it was missed, or carries others that were."""

    at: datetime
    catch_up: bool


@attrs.frozen(kw_only=True)
class Due:
    """What a tick has to do for one schedule."""

    #: The slots to run, oldest first.
    slots: tuple[Slot, ...]
    #: The schedule's next slot, after now.
    next_run: datetime
    #: Whether slots were due that get no run of their own.
    dropped: bool


def due_slots(timing: Timing, next_run: datetime, now: datetime, catch_up: CatchUp, max_catch_up: int) -> Due:
    """Return which slots of a schedule run now, and its next run.

    ``next_run`` is the oldest slot that has not been dealt with; while it is after ``now`` nothing is due and it is
    returned unchanged. Else the next run is the first slot after ``now``, and of those from ``next_run`` to ``now``:

    - ``once`` runs the newest;
    - ``skip`` runs the newest unless it is late by more than :data:`MISSED_AFTER` or more than half the way to the slot
      after it, whichever is less, and none of the others;
    - ``all`` runs the newest ``max_catch_up``, but at least one.

    The work grows with the slots that run, not with those that were missed. ``next_run`` counts as a slot even where
    ``timing`` does not name it any more, as after a change of the zone database.
    """
    if next_run > now:
        return Due(slots=(), next_run=next_run, dropped=False)
    newest = last_slot(timing, now, next_run)
    upcoming = timing.next_after(now)
    grace = min(MISSED_AFTER, (upcoming - newest) / 2) if catch_up is CatchUp.SKIP else MISSED_AFTER
    late = now - newest > grace
    if catch_up is CatchUp.ALL:
        chosen = _newest(timing, newest, next_run, max_catch_up)
        slots = tuple(Slot(at=at, catch_up=late or at < newest) for at in chosen)
        dropped = chosen[0] > next_run
    elif catch_up is CatchUp.SKIP and late:
        slots, dropped = (), True
    else:
        dropped = newest > next_run
        slots = (Slot(at=newest, catch_up=late or (dropped and catch_up is CatchUp.ONCE)),)
    return Due(slots=slots, next_run=upcoming, dropped=dropped)


def sane_next_run(timing: Timing, next_run: datetime, now: datetime) -> datetime:
    """Return ``next_run``, or the first slot after ``now`` where it is further than one period ahead.

    That is what a clock leaves behind that was far ahead and came back. Slots that run a second time by it are held
    back by their guard rows, not here.
    """
    if next_run <= now or next_run <= (first := timing.next_after(now)):
        return next_run
    return first if next_run > timing.next_after(first) else next_run


def last_slot(timing: Timing, until: datetime, since: datetime) -> datetime:
    """Return the newest slot at or before ``until``; ``since`` if none lies between the two.

    It looks back over windows that double, then halves the one that holds a slot: under 50 steps for ten years.
    """
    width = _NARROW
    none_after = until
    while (found := timing.next_after(_start(since, until, width))) > until:
        if until - since <= width:
            return since
        none_after, width = until - width, 2 * width
    while (following := timing.next_after(found)) <= until:
        middle = following + (none_after - following) // 2
        beyond = timing.next_after(middle)
        if beyond <= until:
            found = beyond
        else:
            found, none_after = following, middle
    return found


def slot_key(name: str, slot: datetime, entry: str | None = None) -> str:
    """Return the text that names a slot of a schedule, or an entry's part of it, for use as a dedupe key.

    It reads ``schedule:digest:2024-01-01T07:00:00Z`` and has at most :data:`MAX_KEY` characters: longer names are
    cut, and a digest of the whole keeps them apart.
    """
    text = f"schedule:{name}:{_slot_text(slot)}" + ("" if entry is None else f":{entry}")
    if len(text) <= MAX_KEY:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[: MAX_KEY - len(digest) - 1]}~{digest}"


def jitter_delay(name: str, slot: datetime, maximum: float) -> float:
    """Return the seconds by which a slot's jobs run later: from 0 up to ``maximum``, always the same for a slot.

    The slot itself does not move. Nothing is drawn, so each scheduler of a fleet comes to the same answer.
    """
    digest = hashlib.sha256(slot_key(name, slot).encode(errors="surrogatepass")).digest()
    # 53 bits are what a float holds; a longer fraction would be rounded up to 1.
    return maximum * ((int.from_bytes(digest[:8]) >> 11) / 2**53)


def _start(since: datetime, until: datetime, width: timedelta) -> datetime:
    return since if until - since <= width else until - width


def _newest(timing: Timing, newest: datetime, oldest: datetime, count: int) -> tuple[datetime, ...]:
    """Return the newest slots from ``oldest`` to ``newest``, ascending."""
    found = [newest]
    while len(found) < count and found[-1] > oldest:
        found.append(last_slot(timing, found[-1] - _TICK, oldest))
    return tuple(reversed(found))


def _slot_text(slot: datetime) -> str:
    utc = require_aware(slot, argument="slot")
    return utc.isoformat(timespec="milliseconds" if utc.microsecond else "seconds").replace("+00:00", "Z")
