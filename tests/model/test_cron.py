"""Cron expressions in UTC: the grammar, the day rule, the next run, and what is refused."""

import copy
import json
import pickle
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq import ArgumentError, Cron, CronError
from jobq.model.instant import MAX, MIN

#: Rows of expression, start and the next three runs, which are null where the expression is to be refused.
VECTORS = json.loads(Path(__file__).with_name("cron_vectors.json").read_text(encoding="utf-8"))
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
#: Far more calls of Python functions than any step needs: 40 years are 480 months.
BOUND = 1_200


def runs(cron: Cron, start: str, count: int = 3) -> list[str]:
    """Return the next runs as text."""
    found, when = [], datetime.fromisoformat(start)
    for _ in range(count):
        when = cron.next_after(when)
        found.append(when.isoformat().replace("+00:00", "Z"))
    return found


def calls_of(step: Any) -> int:
    """Return how many Python functions a step calls."""
    count = 0

    def seen(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        step()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(("expression", "start", "expected"), VECTORS["utc"] + VECTORS["ruled"])
def test_b39_vectors(expression: str, start: str, expected: list[str] | None) -> None:
    """Each agreed case gives its three runs, or is refused when the expression is made."""
    if expected is None:
        with pytest.raises(CronError):
            Cron(expression)
    else:
        assert runs(Cron(expression), start) == expected


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 30-31 feb */2"])
def test_b38_never_is_refused_in_bounded_work(expression: str) -> None:
    """An expression that no day of any year matches is refused when it is made, and says why."""

    def refused() -> None:
        with pytest.raises(CronError, match="it can never fire") as caught:
            Cron(expression)
        assert caught.value.field == "day of month"
        assert caught.value.fix

    assert calls_of(refused) < BOUND


def test_b38_leap_day_over_a_century() -> None:
    """2100 is no leap year, so four years become eight."""
    assert runs(Cron("0 0 29 2 *"), "2096-02-29T00:00:00Z", 2) == ["2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"]


@pytest.mark.parametrize("weekday", range(7))
@pytest.mark.parametrize("start", [2026, 2072, 2096, 2200])
def test_b38_rarest_day_is_found_in_bounded_work(weekday: int, start: int) -> None:
    """29 February on one weekday comes every 28 or 40 years; the step there is over months, never over minutes."""
    cron = Cron(f"59 23 */28 2 {weekday}")
    when = datetime(start, 3, 1, tzinfo=UTC)
    while True:
        assert calls_of(lambda: cron.next_after(when)) < BOUND  # noqa: B023 - called at once
        when = cron.next_after(when)
        assert when.isoweekday() % 7 == weekday
        assert (when.month, when.day) in {(2, 1), (2, 29)}
        if when.day == 29:
            break
    assert when.year - start <= 40


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        pytest.param("0 0 * * 5-7", "0 0 * * 0,5,6", id="seven-ends-a-range"),
        pytest.param("0 0 * * sat-sun", "0 0 * * 0,6", id="sun-ends-a-range"),
        pytest.param("0 0 * * 1-SUN", "0 0 * * 0-6", id="number-to-name"),
        pytest.param("0 0 * * sun-tue", "0 0 * * 0-2", id="sun-begins-a-range"),
        pytest.param("0 0 * * sun-sun", "0 0 * * 0", id="sun-alone"),
        pytest.param("0 0 * * sun-7", "0 0 * * *", id="sunday-to-sunday"),
        pytest.param("0 0 * * 7", "0 0 * * 0", id="seven-is-sunday"),
        pytest.param("0 0 * * mon/2", "0 0 * * 0,1,3,5", id="bare-weekday-to-the-end"),
        pytest.param("0 0 * * FrI", "0 0 * * 5", id="any-case"),
        pytest.param("5/15 0 * * *", "5,20,35,50 0 * * *", id="bare-start"),
        pytest.param("5-5/15 0 * * *", "5 0 * * *", id="range-of-one-with-step"),
        pytest.param("*/20,7 0 * * *", "0,7,20,40 0 * * *", id="star-in-a-list"),
        pytest.param("05 007 * * *", "5 7 * * *", id="leading-zeros"),
        pytest.param("0 0 1 jan-MAR/2 *", "0 0 1 1,3 *", id="month-names-with-step"),
        pytest.param("0 0 * * *,1", "0 0 * * *", id="full-list"),
    ],
)
def test_two_texts_of_one_plan(expression: str, same: str) -> None:
    """Different ways to write the same set of values give the same runs."""
    assert runs(Cron(expression), "2026-01-15T12:00:00Z", 20) == runs(Cron(same), "2026-01-15T12:00:00Z", 20)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param("1 * 1", "01 05 12 19", id="either"),
        pytest.param("*/2 * 1", "05 19 09 23", id="star-in-the-month: both"),
        pytest.param("5 * */1", "05 05 05 05", id="star-in-the-week: both"),
        pytest.param("1-31 * 1", "01 02 03 04", id="full-range: either"),
        pytest.param("1,* * 1", "01 02 03 04", id="star-not-in-front: either"),
        pytest.param("*,1 * 1", "05 12 19 26", id="star-in-front: both"),
    ],
)
def test_day_rule_goes_by_the_first_character(days: str, expected: str) -> None:
    """If neither day field begins with a star either may match, else both have to; crontab(5)."""
    found = runs(Cron(f"0 6 {days}"), "2026-01-01T00:00:00Z", 4)

    assert [text[8:10] for text in found] == expected.split()


@pytest.mark.parametrize(
    ("expression", "field", "text", "allowed"),
    [
        pytest.param("60 * * * *", "minute", "60", "0-59", id="minute"),
        pytest.param("0 1,24 * * *", "hour", "24", "0-23", id="hour-in-a-list"),
        pytest.param("0 0 0 * *", "day of month", "0", "1-31", id="day"),
        pytest.param("0 0 1 febr *", "month", "febr", "1-12 or jan-dec", id="month"),
        pytest.param("0 0 1 * 8", "day of week", "8", "0-7 or sun-sat", id="weekday"),
        pytest.param("*/0 * * * *", "minute", "*/0", "0-59", id="step-of-zero"),
        pytest.param("0 0 * * fri-mon", "day of week", "fri-mon", "0-7 or sun-sat", id="backwards"),
        pytest.param("1,,2 * * * *", "minute", "1,,2", "0-59", id="empty-item"),
        pytest.param("5-sun * * * *", "minute", "sun", "0-59", id="name-in-the-minute"),
        pytest.param("0 0 * * ſun", "day of week", "ſun", "0-7 or sun-sat", id="letter-beyond-ascii"),
        pytest.param("*/*/2 * * * *", "minute", "*/*/2", "0-59", id="two-steps"),
        pytest.param("0 0 ? * *", "day of month", "?", "1-31", id="question-mark"),
        pytest.param("0 H * * *", "hour", "H", "0-23", id="hash"),
        pytest.param("0 0 * * 5L", "day of week", "5L", "0-7 or sun-sat", id="last"),
    ],
)
def test_refusal_names_field_text_and_what_is_allowed(expression: str, field: str, text: str, allowed: str) -> None:
    """Whoever mistyped it sees where, what, and how it is written."""
    with pytest.raises(CronError) as caught:
        Cron(expression)

    error = caught.value
    assert (error.field, error.text, error.allowed) == (field, text, allowed)
    assert all(part in str(error) for part in (field, repr(text), allowed))
    assert isinstance(error, ArgumentError)
    assert field in str(error.fix)
    assert allowed in str(error.fix)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("", id="empty"),
        pytest.param(" \t ", id="blank"),
        pytest.param("* * * *", id="four"),
        pytest.param("0 * * * * *", id="six"),
        pytest.param("@hourly", id="alias"),
        pytest.param("*\n* * * *", id="line-break"),
        pytest.param("*\u00a0* * * *", id="no-break-space"),
        pytest.param("0," * 600 + "0 * * * *", id="too-long"),
        pytest.param(None, id="none"),
        pytest.param(5, id="number"),
        pytest.param(b"* * * * *", id="bytes"),
    ],
)
def test_refusal_of_the_whole_says_what_an_expression_is(expression: Any) -> None:
    """The wrong number of fields, other blanks, aliases and what is no text."""
    with pytest.raises(CronError) as caught:
        Cron(expression)

    assert caught.value.field is None
    assert "mon-fri" in str(caught.value.fix)


def test_long_text_is_cut_in_the_message() -> None:
    """A message stays readable; the attribute has all of it."""
    with pytest.raises(CronError) as caught:
        Cron("9" * 900 + " * * * *")

    assert len(str(caught.value)) < 120
    assert len(caught.value.text) == 900


def test_next_run_is_strictly_later_and_in_utc() -> None:
    """At a slot, just after one and just before; the answer is in UTC whatever zone was asked in."""
    cron, east = Cron("0 12 * * *"), timezone(timedelta(hours=9))

    assert cron.next_after(NOON) == NOON + timedelta(days=1)
    assert cron.next_after(NOON - timedelta(microseconds=1)) == NOON
    assert cron.next_after((NOON - timedelta(hours=1)).astimezone(east)).isoformat() == "2026-01-15T12:00:00+00:00"


def test_naive_time_is_refused() -> None:
    """A naive datetime would be guessed at."""
    with pytest.raises(ArgumentError) as caught:
        Cron("* * * * *").next_after(datetime(2026, 1, 1))  # noqa: DTZ001 - the subject of the test

    assert caught.value.argument == "when"


@pytest.mark.parametrize("tz", ["UTC", "America/New_York"])
@pytest.mark.parametrize("expression", ["* * * * *", "0 0 29 2 *", "0 0 1 1 */7"])
def test_end_of_the_calendar(expression: str, tz: str) -> None:
    """After the last run that a datetime can express there is an ArgumentError, never an OverflowError."""
    with pytest.raises(ArgumentError, match="years 1 to 9999"):
        Cron(expression, tz).next_after(MAX)

    assert Cron(expression).next_after(MIN) > MIN


def test_value_by_its_two_texts() -> None:
    """Equal and hashed by expression and zone; copies and pickles run alike."""
    cron = Cron("0 7 * * mon-fri", tz="Europe/Berlin")

    assert cron == Cron("0 7 * * mon-fri", "Europe/Berlin")
    assert len({cron, Cron("0 7 * * mon-fri", "Europe/Berlin"), Cron("0 7 * * mon-fri"), Cron("0 7 * * 1-5")}) == 3
    assert repr(cron) == "Cron(expression='0 7 * * mon-fri', tz='Europe/Berlin')"
    for other in copy.deepcopy(cron), pickle.loads(pickle.dumps(cron)):
        assert other == cron
        assert other.next_after(NOON) == cron.next_after(NOON)


@given(
    st.sampled_from(["* * * * *", "*/7 3 * * *", "0 0 1-7 * 1", "59 23 31 12 *", "0 */6 */2 2-11/3 *"]),
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds
    st.floats(0, 1, exclude_max=True),
)
def test_no_run_lies_between(expression: str, when: datetime, part: float) -> None:
    """From anywhere between a time and its next run, that run is the next."""
    cron = Cron(expression)
    following = cron.next_after(when)

    assert following > when
    assert cron.next_after(when + part * (following - when)) in {following, cron.next_after(following)}
    assert cron.next_after(following - timedelta(microseconds=1)) == following
