"""Time zones of cron expressions: loading one by name, and walking over the days on which its clocks change.

A wall clock time that is skipped lies in a gap, one that comes twice in an overlap; PEP 495 says how ``fold`` tells
its two passes apart. Zone data comes from :mod:`zoneinfo`; nothing here looks at a clock.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from jobq.errors import ArgumentError

#: Returns the first wanted minute after the minute of a time, both on the wall clocks of its zone.
FirstAfter = Callable[[datetime], datetime]

_SECOND = timedelta(seconds=1)
_HOUR = timedelta(hours=1)
#: Wanted times that lie in so many gaps on end always do: a run between them would have come within a few years.
_GAPS = 40


def load_zone(name: str) -> tzinfo:
    """Return the zone of an IANA name such as ``Europe/Berlin``; UTC needs no zone database.

    A name that the database does not know raises :class:`ArgumentError` whose ``fix`` names the extra ``tz`` where
    there is no database at all, and else the nearest name.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    # KeyError: unknown. ValueError: not below the database. OSError: a directory of it. TypeError: not text.
    except (KeyError, ValueError, OSError, TypeError):
        raise ArgumentError("tz", f"{name!r:.80} is not a time zone that is known here", fix=_fix(name)) from None


def next_fixed(first_after: FirstAfter, zone: tzinfo, when: datetime) -> datetime:
    """Return the first instant after ``when``, in UTC, of a job that runs at fixed wall clock times.

    A time in a gap runs at the first instant after the gap, one in an overlap on the first pass only.
    """
    local = when.astimezone(zone)
    if local.fold:
        local = max(local, _last_minute_before(_change(local), _offsets(local)[0], zone))
    wall = first_after(local)
    before, after = _offsets(wall)
    return _change(wall) if before < after else wall.astimezone(UTC)


def next_elapsed(first_after: FirstAfter, zone: tzinfo, when: datetime) -> datetime:
    """Return the first instant after ``when``, in UTC, at which the clocks of the zone show a wanted minute.

    A time in a gap never comes, one in an overlap comes on both passes. OverflowError where all times lie in gaps.
    """
    local = when.astimezone(zone)
    wall = first_after(local)
    late = wall.replace(fold=1)
    if late.utcoffset() == local.utcoffset() and wall - local <= _HOUR:
        return late.astimezone(UTC)  # The usual case: the clocks do not change in between.
    before, after = _offsets(local)
    if before != after and not local.fold and wall > _last_minute_before(_change(local), before, zone):
        # Nothing is left of the first pass: the second begins where the clocks are set back to.
        wall = first_after(_last_minute_before(_change(local), after, zone))
    wall = _outside_gaps(first_after, zone, wall)
    first = wall.astimezone(UTC)
    return first if first > when else wall.replace(fold=1).astimezone(UTC)


def _outside_gaps(first_after: FirstAfter, zone: tzinfo, wall: datetime) -> datetime:
    for _ in range(_GAPS):
        before, after = _offsets(wall)
        if before >= after:
            return wall
        wall = first_after(_last_minute_before(_change(wall), after, zone))
    raise OverflowError


def _fix(name: object) -> str:
    known = available_timezones()
    if not known:
        return "This system has no time zone database: install the extra, pip install 'jobq[tz]', or use UTC."
    near = get_close_matches(str(name), known, n=1)
    return f"Did you mean {near[0]}?" if near else "Use an IANA name such as Europe/Berlin, or UTC."


def _offsets(wall: datetime) -> tuple[timedelta, timedelta]:
    """Return the offset of a wall clock time on its first pass and on its second.

    They are the same but around a change: in a gap the first is smaller, in an overlap larger.
    """
    first, second = wall.replace(fold=0).utcoffset(), wall.replace(fold=1).utcoffset()
    assert first is not None
    assert second is not None
    return first, second


def _change(wall: datetime) -> datetime:
    """Return the instant, in UTC, of the change whose gap or overlap a wall clock time lies in."""
    before, after = _offsets(wall)
    floor = wall.replace(tzinfo=UTC, microsecond=0)
    # Changes happen at whole seconds; these two instants lie on either side of this one.
    low, high = floor - max(before, after), floor - min(before, after)
    while high - low > _SECOND:
        middle = low + (high - low) // 2 // _SECOND * _SECOND
        if middle.astimezone(wall.tzinfo).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def _last_minute_before(change: datetime, offset: timedelta, zone: tzinfo) -> datetime:
    """Return the last minute that begins before a change, as the clocks of a zone show it at an offset."""
    wall = (change + offset).replace(tzinfo=zone)
    # Old offsets have seconds, so that a change can lie within a minute.
    return (wall - _SECOND).replace(second=0)
