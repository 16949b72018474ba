"""Stored schedules as values: their timing, and since when a next run is sane."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobq.errors import ArgumentError, CronError
from jobq.model.cron import Cron
from jobq.model.schedule import Interval, Timing, sane_next_run
from jobq.model.scheduled import sane_since, timing_of

START = datetime(2024, 1, 1, tzinfo=UTC)


def test_timing_is_a_cron_expression_or_an_interval() -> None:
    """By what the row holds."""
    assert timing_of("0 7 * * *", None, "Europe/Berlin", START) == Cron("0 7 * * *", "Europe/Berlin")
    assert timing_of(None, 300.0, "UTC", START) == Interval(timedelta(minutes=5), START)


@pytest.mark.parametrize(
    ("cron", "every", "error"),
    [
        (None, None, ArgumentError),
        ("* * * * *", 1.0, ArgumentError),
        ("x", None, CronError),
        (None, 0.0, ArgumentError),
    ],
)
def test_bad_timing_is_refused(cron: str | None, every: float | None, error: type[ArgumentError]) -> None:
    """Neither, both, or one that means nothing."""
    with pytest.raises(error):
        timing_of(cron, every, "UTC", START)


TIMINGS = [
    Interval(timedelta(minutes=5), START),
    Interval(timedelta(days=4_000), START),
    Cron("*/7 3 * * *"),
    Cron("0 7 * * mon-fri", "Europe/Berlin"),
    Cron("0 0 29 2 *"),
    Cron("30 2 * * *", "America/New_York"),
]


@given(
    timing=st.sampled_from(TIMINGS),
    ahead=st.integers(0, 3),
    base=st.integers(0, 10**9),
    now=st.integers(-(10**7), 2 * 10**9),
)
@settings(max_examples=300, deadline=None)
def test_sane_since_says_when_nothing_is_recomputed(timing: Timing, ahead: int, base: int, now: int) -> None:
    """It is the edge of what sane_next_run does, on both sides."""
    next_run = START + timedelta(seconds=base)
    for _ in range(ahead + 1):
        next_run = timing.next_after(next_run)
    when = START + timedelta(seconds=now)
    since = sane_since(timing, next_run)
    if since <= when:
        assert sane_next_run(timing, next_run, when) == next_run
    elif isinstance(timing, Cron) or since > START:
        assert sane_next_run(timing, next_run, when) < next_run
