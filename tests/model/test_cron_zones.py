"""Cron expressions with a zone: what becomes of the hours that are skipped and of those that come twice."""

import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest

from jobq import ArgumentError, Cron, CronError
from jobq.model.zones import load_zone
from tests.model.test_cron import VECTORS, runs

MINUTE = timedelta(minutes=1)
#: Zones and a day on which their clocks change in a way of their own, with what is odd about it.
CHANGES = [
    pytest.param("America/New_York", "2026-03-08", id="an-hour-skipped"),
    pytest.param("America/New_York", "2026-11-01", id="an-hour-twice"),
    pytest.param("Europe/London", "2026-10-25", id="back-to-utc"),
    pytest.param("Europe/Dublin", "2026-03-29", id="winter-is-the-exception"),
    pytest.param("Australia/Lord_Howe", "2026-04-05", id="half-an-hour-twice"),
    pytest.param("Australia/Lord_Howe", "2026-10-04", id="half-an-hour-skipped"),
    pytest.param("Africa/Cairo", "2026-04-24", id="midnight-skipped"),
    pytest.param("America/Havana", "2026-11-01", id="midnight-twice"),
    pytest.param("America/St_Johns", "2010-03-14", id="one-minute-past-midnight"),
    pytest.param("Antarctica/Troll", "2026-03-29", id="two-hours-skipped"),
    pytest.param("Antarctica/Troll", "2026-10-25", id="two-hours-twice"),
    pytest.param("Pacific/Apia", "2011-12-30", id="a-day-skipped"),
    pytest.param("Pacific/Kwajalein", "1969-09-30", id="nearly-a-day-twice"),
    pytest.param("Asia/Kathmandu", "1986-01-01", id="a-quarter-of-an-hour"),
    pytest.param("Africa/Casablanca", "2026-02-15", id="before-ramadan"),
]


@attrs.frozen
class Minute:
    """One real minute and what the clocks show at it."""

    at: datetime
    wall: datetime


@cache
def real_minutes(tz: str, day: str) -> tuple[Minute, ...]:
    """Return the real minutes of the three days around one."""
    zone, middle = ZoneInfo(tz), datetime.fromisoformat(day).replace(tzinfo=UTC)
    instants = [middle + n * MINUTE for n in range(-36 * 60, 60 * 60)]
    return tuple(Minute(at, at.astimezone(zone).replace(tzinfo=None, fold=0)) for at in instants)


def by_elapsed_time(minutes: tuple[Minute, ...], wanted: "Wanted") -> Iterator[datetime]:
    """Yield each real minute at which the clocks show a wanted time."""
    yield from (minute.at for minute in minutes if wanted.has(minute.wall))


def by_wall_clock(minutes: tuple[Minute, ...], wanted: "Wanted") -> Iterator[datetime]:
    """Yield the first real minute at which the clocks show a wanted time or, for the first time, a later one."""
    seen = minutes[0].wall
    for minute in minutes[1:]:
        passed = []
        while seen < minute.wall:
            seen += MINUTE
            passed.append(wanted.has(seen))
        if any(passed):
            yield minute.at


@attrs.frozen
class Wanted:
    """A random expression, told in the plainest way."""

    expression: str
    minutes: frozenset[int]
    hours: frozenset[int]

    def has(self, wall: datetime) -> bool:
        """Whether the expression names this wall clock minute."""
        return wall.minute in self.minutes and wall.hour in self.hours

    @classmethod
    def rolled(cls, dice: random.Random, *, starred: bool) -> "Wanted":
        """Return one whose minute or hour begins with a star, or neither."""
        minutes = frozenset(dice.sample(range(60), dice.choice((1, 1, 3, 60))))
        hours = frozenset(dice.sample(range(24), dice.choice((1, 3, 24))))
        texts = [",".join(map(str, sorted(values))) for values in (minutes, hours)]
        if starred:
            step = dice.choice((1, 7, 20, 59))
            texts[0], minutes = f"*/{step}", frozenset(range(0, 60, step))
        if starred and dice.random() < 0.5:
            step = dice.choice((1, 2, 5))
            texts[1], hours = f"*/{step}", frozenset(range(0, 24, step))
        return cls(f"{texts[0]} {texts[1]} * * *", minutes, hours)


@pytest.mark.parametrize(("expression", "tz", "start", "expected"), VECTORS["zones"])
def test_b40_vectors(expression: str, tz: str, start: str, expected: list[str]) -> None:
    """Each agreed case around a change of the clocks gives its three runs."""
    assert runs(Cron(expression, tz), start) == expected


@pytest.mark.parametrize("day", ["2026-03-08T00:00:00Z", "2026-11-01T00:00:00Z"])
@pytest.mark.parametrize("expression", ["30 2 * * *", "0 * * * *", "*/30 1-3 * * *"])
def test_b40_utc_knows_no_change(expression: str, day: str) -> None:
    """In UTC the days on which New York's clocks change are days like any other."""
    ordinary = runs(Cron(expression), "2026-06-03T00:00:00Z", 40)

    shift = datetime.fromisoformat(day) - datetime.fromisoformat("2026-06-03T00:00:00Z")
    moved = [(datetime.fromisoformat(text) + shift).isoformat().replace("+00:00", "Z") for text in ordinary]
    assert runs(Cron(expression), day, 40) == moved


@pytest.mark.parametrize(("tz", "day"), CHANGES)
@pytest.mark.parametrize("starred", [False, True], ids=["fixed", "starred"])
def test_b40_around_a_change_as_told_by_every_minute(tz: str, day: str, starred: bool) -> None:
    """Over three days the runs are those that looking at each real minute gives."""
    dice, minutes = random.Random(f"{tz} {day} {starred}"), real_minutes(tz, day)
    rule = by_elapsed_time if starred else by_wall_clock
    for _ in range(25):
        wanted = Wanted.rolled(dice, starred=starred)
        expected = [at for at in rule(minutes, wanted) if at > minutes[0].at]

        cron, when, found = Cron(wanted.expression, tz), minutes[0].at, []
        while (when := cron.next_after(when)) <= minutes[-1].at:
            found.append(when)

        assert found == expected, wanted.expression


@pytest.mark.parametrize(("tz", "day"), CHANGES)
@pytest.mark.parametrize("expression", ["*/7 * * * *", "5-59/20 0-23 * * *", "30 2 * * *"])
def test_b40_next_run_does_not_depend_on_where_one_looks_from(tz: str, day: str, expression: str) -> None:
    """From each real minute, and from seconds within it, the next run is the first of all runs that is later."""
    cron, minutes = Cron(expression, tz), real_minutes(tz, day)
    following = cron.next_after(minutes[0].at)
    for minute in minutes[::3]:
        for when in minute.at, minute.at + timedelta(seconds=59, microseconds=999_999):
            while following <= when:
                following = cron.next_after(following)
            assert cron.next_after(when) == following


def test_b40_two_changes_that_cancel_each_other_are_seen() -> None:
    """From the first pass of an hour that comes twice to a time next summer at the same offset: the second pass."""
    cron = Cron("*/45 1 1 7,11 *", "America/New_York")

    assert runs(cron, "2026-11-01T05:50:00Z", 3) == [
        "2026-11-01T06:00:00Z",
        "2026-11-01T06:45:00Z",
        "2027-07-01T05:00:00Z",
    ]


def test_b40_gap_after_gap() -> None:
    """Tehran skipped the first hour of 22 March in three years on end; in the fourth it skipped that of the 21st."""
    assert runs(Cron("*/30 0 22 3 *", "Asia/Tehran"), "2009-01-01T00:00:00Z", 2) == [
        "2012-03-21T19:30:00Z",
        "2012-03-21T20:00:00Z",
    ]


def test_b38_times_that_a_zone_always_skips_are_refused() -> None:
    """When 29 March is a Sunday, Berlin's clocks go from 2:00 to 3:00; a fixed time runs then, elapsed time never."""
    with pytest.raises(CronError, match="the clocks of Europe/Berlin skip") as caught:
        Cron("*/30 2 29 3 */7", "Europe/Berlin")

    assert caught.value.fix
    assert runs(Cron("30 2 29 3 */7", "Europe/Berlin"), "2026-01-01T00:00:00Z", 1) == ["2026-03-29T01:00:00Z"]
    assert runs(Cron("*/30 2-3 29 3 */7", "Europe/Berlin"), "2026-01-01T00:00:00Z", 1) == ["2026-03-29T01:00:00Z"]
    assert Cron("*/30 2 29 3 */7").next_after(datetime(2026, 1, 1, tzinfo=UTC)).hour == 2


def test_b40_offsets_with_seconds() -> None:
    """Until 1972 Liberia was behind by 44 minutes and 30 seconds: the minutes of its clocks keep to that."""
    assert runs(Cron("* * * * *", "Africa/Monrovia"), "1972-01-07T00:42:00Z", 3) == [
        "1972-01-07T00:42:30Z",
        "1972-01-07T00:43:30Z",
        "1972-01-07T00:45:00Z",
    ]
    assert runs(Cron("0,20 0 * * *", "Africa/Monrovia"), "1972-01-06T01:10:00Z", 3) == [
        "1972-01-07T00:44:30Z",
        "1972-01-08T00:00:00Z",
        "1972-01-08T00:20:00Z",
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Europe/Nowhere", id="unknown"),
        pytest.param("Europe", id="directory"),
        pytest.param("", id="empty"),
        pytest.param("../etc/passwd", id="outside-the-database"),
        pytest.param("/etc/localtime", id="absolute"),
        pytest.param("Europe/Ber\0lin", id="nul"),
        pytest.param("Europe/\ud800", id="surrogate"),
        pytest.param("UTC+2", id="offset"),
        pytest.param(None, id="none"),
        pytest.param(3, id="number"),
        pytest.param(UTC, id="zone-itself"),
        pytest.param(["Europe/Berlin"], id="list"),
    ],
)
def test_unknown_zone_is_refused(name: Any) -> None:
    """Whatever is no name in the database is refused by one error, when the expression is made."""
    with pytest.raises(ArgumentError) as caught:
        Cron("* * * * *", tz=name)

    assert caught.value.argument == "tz"
    assert caught.value.fix
    assert "jobq[tz]" not in caught.value.fix


def test_mistyped_zone_names_the_nearest() -> None:
    """A slip of the keyboard is told what was meant."""
    with pytest.raises(ArgumentError) as caught:
        load_zone("Europe/Berln")

    assert caught.value.fix == "Did you mean Europe/Berlin?"


def test_without_a_zone_database_the_error_names_the_extra() -> None:
    """UTC still works there; every other zone says what to install."""
    script = """
import sys, zoneinfo
sys.modules["tzdata"] = None
zoneinfo.reset_tzpath(to=[])
import jobq
print(jobq.Cron("* * * * *").tz)
try:
    jobq.Cron("* * * * *", "Europe/Berlin")
except jobq.ArgumentError as error:
    print(error.fix)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert found.stdout.startswith("UTC\n")
    assert "jobq[tz]" in found.stdout
