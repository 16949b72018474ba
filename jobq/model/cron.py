"""Cron expressions: what they may say, and when they run next. Pure: no clock, and no loop over minutes.

The fields are sets of bits, so that the next matching minute, hour, day or month is the lowest bit above the present
one. The rule for the two day fields is that of classic cron, crontab(5): it goes by whether their text begins with
``*``, not by what they contain.
"""

import re
from calendar import isleap
from datetime import MAXYEAR, UTC, date, datetime, tzinfo

import attrs

from jobq.errors import ArgumentError, CronError
from jobq.model.instant import require_aware
from jobq.model.zones import load_zone, next_elapsed, next_fixed

#: The longest expression; one that lists every value of every field is shorter.
MAX_LENGTH = 1_000

_ITEM = re.compile(r"(?:\*|([0-9]+|[A-Za-z]+)(?:-([0-9]+|[A-Za-z]+))?)(?:/([0-9]+))?")
_BLANKS = re.compile(r"[ \t]+")
_DAYS_IN = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
#: Multiplied with seven bits, it repeats them over the days of a month.
_FIVE_WEEKS = sum(1 << 7 * week for week in range(5))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: An instant from which on the rules of every zone are the ones that are in force for good.
_FAR = datetime(2100, 1, 1, tzinfo=UTC)
_FIVE = 'Write "minute hour day-of-month month day-of-week", such as "0 7 * * mon-fri"; @daily is "0 0 * * *".'


def _bits(low: int, high: int) -> int:
    return (2 << high) - (1 << low)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


@attrs.frozen
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def read(self, text: str) -> int:
        """Return the values that a field's text names, as bits."""
        if text == "*":
            return _bits(self.low, self.high)
        bits = 0
        for item in text.split(","):
            if not item:
                raise self._error(text, "a value is missing")
            bits |= self._item(item)
        return bits

    def _item(self, item: str) -> int:
        match = _ITEM.fullmatch(item)
        if match is None:
            raise self._error(item, "it is no number, range or step")
        first, last, step = match.groups()
        low = self.low if first is None else self._value(first)
        high = low if first and not step else self.high
        if last:
            high = self._value(last)
            if last.lower() == "sun" and low:
                high = 7  # Sunday ends a week that did not begin with it.
        if low > high:
            raise self._error(item, "the range ends before it begins")
        if step and not int(step):
            raise self._error(item, "a step is 1 or more")
        return sum(1 << value for value in range(low, high + 1, int(step))) if step else _bits(low, high)

    def _value(self, text: str) -> int:
        if text.lower() in self.names:
            return self.low + self.names.index(text.lower())
        if text.isalpha():
            raise self._error(text, "it is not a name of this field")
        if not self.low <= int(text) <= self.high:
            raise self._error(text, "it is out of range")
        return int(text)

    def _error(self, text: str, problem: str) -> CronError:
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        allowed = f"{self.low}-{self.high}{names}"
        fix = f"The {self.name} takes {allowed}; ranges as in 2-5, lists as in 2,5, *, steps as in */2 or 2-5/2."
        return CronError(text, problem, field=self.name, allowed=allowed, fix=fix)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEKDAYS),
)


@attrs.frozen
class _Plan:
    """The wall clock minutes that an expression names."""

    minutes: int
    hours: int
    days: int
    months: int
    #: Sunday to Saturday, twice over, so that a shift turns them to the weekday that a month begins with.
    weekdays: int
    #: Whether a day has to match both day fields rather than either.
    both: bool
    #: Whether it goes by elapsed time rather than by fixed times of day, which matters where clocks change.
    elapsed: bool

    def first_after(self, start: datetime) -> datetime:
        """Return the first of these minutes after the one that a time lies in, in its zone.

        OverflowError where the calendar ends before; until then there is one within 40 years (29 February on one
        given weekday, over a year 2100).
        """
        year, month, day, zone = start.year, start.month, start.day, start.tzinfo
        days = self._days_of(year, month) >> day
        if days & 1:
            hour, minute = start.hour, start.minute + 1
            minutes = self.minutes >> minute if self.hours >> hour & 1 else 0
            if minutes:
                return datetime(year, month, day, hour, minute + _lowest(minutes), tzinfo=zone)
            hours = self.hours >> hour + 1
            if hours:
                return datetime(year, month, day, hour + 1 + _lowest(hours), _lowest(self.minutes), tzinfo=zone)
        days &= -2
        while not days:
            year, month, day = (year, month + 1, 0) if month < 12 else (year + 1, 1, 0)
            if year > MAXYEAR:
                raise OverflowError
            days = self._days_of(year, month)
        return datetime(year, month, day + _lowest(days), _lowest(self.hours), _lowest(self.minutes), tzinfo=zone)

    def _days_of(self, year: int, month: int) -> int:
        """Return the matching days of a month as bits; bit 1 is the first day."""
        if not self.months >> month & 1:
            return 0
        weekdays = (self.weekdays >> date(year, month, 1).isoweekday() % 7 & 127) * _FIVE_WEEKS << 1
        days = self.days & weekdays if self.both else self.days | weekdays
        return days & (2 << (28 if month == 2 and not isleap(year) else _DAYS_IN[month])) - 1


def _parse(expression: str) -> _Plan:
    if not isinstance(expression, str):
        raise CronError("", f"an expression is text, not a {type(expression).__name__}", fix=_FIVE)
    if len(expression) > MAX_LENGTH:
        raise CronError(expression, f"an expression has at most {MAX_LENGTH:,} characters", fix=_FIVE)
    texts = _BLANKS.split(expression.strip(" \t"))
    if len(texts) != len(_FIELDS):
        raise CronError(expression, f"five fields are needed, not {len(texts) if texts[0] else 0}", fix=_FIVE)
    minutes, hours, days, months, weekdays = (field.read(text) for field, text in zip(_FIELDS, texts, strict=True))
    starred = [text.startswith("*") for text in texts]
    both = starred[2] or starred[4]
    if both and _lowest(days) > 29:
        _refuse_missing_day(texts[2], days, months)
    return _Plan(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=((weekdays | weekdays >> 7) & 127) * 129,
        both=both,
        elapsed=starred[0] or starred[1],
    )


def _refuse_missing_day(text: str, days: int, months: int) -> None:
    """Refuse days that no month of the expression has; every other one falls on each weekday some year."""
    longest = max(_DAYS_IN[month] for month in range(1, 13) if months >> month & 1)
    if _lowest(days) > longest:
        raise CronError(
            text,
            "it can never fire, no month of the expression has that day",
            field="day of month",
            allowed=f"1-{longest} in these months",
            fix=f"Use a day from 1 to {longest}, or other months; every month has a 28th.",
        )


def _refuse_only_gaps(cron: "Cron", _attribute: object, zone: tzinfo) -> None:
    """Refuse times that lie in the hour that the zone's clocks skip, year after year."""
    plan = cron._plan
    if zone is not UTC and plan.elapsed and plan.hours != _bits(0, 23):
        try:
            next_elapsed(plan.first_after, zone, _FAR)
        except OverflowError:
            raise CronError(
                cron.expression,
                f"it can never fire, the clocks of {cron.tz} skip its times each year",
                fix="Use another hour, or a minute that does not begin with * to run after the skipped hour.",
            ) from None


@attrs.frozen
class Cron:
    """A cron expression and the zone whose wall clock it goes by.

    Five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or names, day of week 0-7 (0 and 7 are Sunday) or
    names; ``*``, ranges, lists and steps. A malformed expression, and one that can never fire, raises
    :class:`CronError`; an unknown zone :class:`ArgumentError`. Two are equal when both texts are.
    """

    expression: str
    tz: str = "UTC"
    _plan: _Plan = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: _parse(self.expression), takes_self=True),
    )
    _zone: tzinfo = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: load_zone(self.tz), takes_self=True),
        validator=_refuse_only_gaps,
    )

    def agrees(self, other: object) -> bool:
        """Whether another timing is an expression that names the same slots: however it is spelt, in the same zone."""
        return isinstance(other, Cron) and (self._plan, self.tz) == (other._plan, other.tz)

    def next_after(self, when: datetime) -> datetime:
        """Return the first run strictly after an aware datetime, in UTC.

        The work is bounded for every expression. Where the clocks of the zone change, a fixed time that is skipped
        runs at the first instant after the gap, one that comes twice on the first pass only; an expression whose
        minute or hour begins with ``*`` runs on both passes and not for the hour that never was. A naive ``when``,
        and one that no run follows before the year 10000, raises :class:`ArgumentError`.
        """
        when = require_aware(when, argument="when")
        try:
            if self._zone is UTC:
                return self._plan.first_after(when)
            step = next_elapsed if self._plan.elapsed else next_fixed
            return step(self._plan.first_after, self._zone, when)
        except OverflowError:
            raise ArgumentError("when", "the time, or the run after it, is outside the years 1 to 9999") from None
