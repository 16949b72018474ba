"""Durations and instants at the edge."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.errors import ArgumentError
from jobq.model.duration import MAX_SECONDS, to_seconds, to_text
from jobq.model.instant import MAX, MIN, require_aware, shift

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param(5, 5.0, id="int"),
        pytest.param(0.25, 0.25, id="float"),
        pytest.param(-5, -5.0, id="negative"),
        pytest.param(timedelta(minutes=1, milliseconds=1), 60.001, id="timedelta"),
        pytest.param("90s", 90.0, id="seconds"),
        pytest.param("5m", 300.0, id="minutes"),
        pytest.param("1h30m", 5_400.0, id="two-units"),
        pytest.param("2d", 172_800.0, id="days"),
        pytest.param("500ms", 0.5, id="milliseconds"),
        pytest.param("1d2h3m4s5ms", 93_784.005, id="all-units"),
        pytest.param("1.5h", 5_400.0, id="fraction"),
        pytest.param("-5s", -5.0, id="negative-text"),
        pytest.param(" 7s ", 7.0, id="blanks-around"),
        pytest.param("30", 30.0, id="bare-number"),
    ],
)
def test_to_seconds_reads(value: Any, seconds: float) -> None:
    """Numbers, timedeltas and text name the same seconds."""
    assert to_seconds(value, argument="delay") == pytest.approx(seconds, abs=1e-12)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(True, id="bool"),
        pytest.param(float("nan"), id="nan"),
        pytest.param(float("inf"), id="inf"),
        pytest.param(float("-inf"), id="minus-inf"),
        pytest.param(10**18, id="too-long"),
        pytest.param(10**400, id="beyond-float"),
        pytest.param(timedelta.max, id="longest-timedelta"),
        pytest.param(None, id="none"),
        pytest.param(b"5s", id="bytes"),
        pytest.param("", id="empty"),
        pytest.param("s", id="unit-alone"),
        pytest.param("5x", id="unknown-unit"),
        pytest.param("1h30", id="number-without-unit-behind-one"),
        pytest.param("1m2h", id="wrong-order"),
        pytest.param("1s1s", id="twice"),
        pytest.param("1 h", id="blank-inside"),
        pytest.param("٣s", id="other-digits"),
        pytest.param("1e5s", id="exponent"),
        pytest.param("nan", id="nan-text"),
        pytest.param("9" * 15 + "d", id="too-long-text"),
    ],
)
def test_b52_to_seconds_refuses(value: Any) -> None:
    """What is no finite duration in range is refused with the name of the argument."""
    with pytest.raises(ArgumentError) as caught:
        to_seconds(value, argument="delay")

    assert caught.value.argument == "delay"
    assert caught.value.fix


@pytest.mark.parametrize("value", [-(10**18), -(10**400), -1e300])
def test_b52_to_seconds_takes_any_negative_finite_number(value: float) -> None:
    """A negative duration of any size means long ago and stays computable."""
    assert to_seconds(value, argument="delay") == -MAX_SECONDS


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (2, "2s"),
        (0.5, "0.5s"),
        (60, "1m"),
        (5_400, "1h30m"),
        (90_061.25, "1d1h1m1.25s"),
        (-5, "-5s"),
        (-1e-9, "0s"),
        (0.000_001, "0.000001s"),
        (59.999_999_9, "1m"),
    ],
)
def test_to_text_is_short(seconds: float, text: str) -> None:
    """Seconds are written with the fewest units."""
    assert to_text(seconds) == text


@given(st.floats(min_value=-1e9, max_value=1e9))
def test_to_text_reads_back(seconds: float) -> None:
    """The text of a duration names the same duration, to the microsecond."""
    assert to_seconds(to_text(seconds), argument="delay") == pytest.approx(seconds, abs=1e-6)


def test_b52_require_aware_converts_exactly() -> None:
    """An aware datetime of another zone is the same instant in UTC."""
    east = datetime(2024, 6, 1, 1, 2, 3, 456_789, tzinfo=timezone(timedelta(hours=5, minutes=45)))

    converted = require_aware(east, argument="run_at")

    assert converted == east
    assert converted.isoformat() == "2024-05-31T19:17:03.456789+00:00"


def test_b52_require_aware_takes_year_9999() -> None:
    """The last instant that a datetime can express is in range."""
    assert require_aware(MAX, argument="run_at") == MAX


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(datetime(2024, 1, 1), id="naive"),  # noqa: DTZ001 - the subject of the test
        pytest.param("2024-01-01T00:00:00+00:00", id="text"),
        pytest.param(NOON.date(), id="date"),
        pytest.param(0, id="number"),
        pytest.param(datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), id="before-the-first"),
        pytest.param(datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), id="after-the-last"),
    ],
)
def test_b52_require_aware_refuses(value: Any) -> None:
    """A naive, foreign or unrepresentable time is refused with the name of the argument."""
    with pytest.raises(ArgumentError) as caught:
        require_aware(value, argument="run_at")

    assert caught.value.argument == "run_at"


def test_shift_moves_either_way() -> None:
    """Seconds are added or taken off exactly."""
    assert shift(NOON, 0.000_001, argument="delay") == NOON.replace(microsecond=1)
    assert shift(NOON, -60, argument="delay") == NOON.replace(hour=11, minute=59)


@pytest.mark.parametrize(
    ("start", "seconds"),
    [(NOON, MAX_SECONDS), (NOON, -MAX_SECONDS), (MAX, 1.0), (MIN, -1.0), (NOON, float("nan")), (NOON, float("inf"))],
)
def test_b52_shift_refuses_to_leave_the_calendar(start: datetime, seconds: float) -> None:
    """A sum outside the years 1 to 9999 is an ArgumentError, never an OverflowError."""
    with pytest.raises(ArgumentError, match="years 1 to 9999"):
        shift(start, seconds, argument="delay")
