"""Schedules: slots of an interval, which due slots run, slot keys and jitter."""

import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from jobq import ArgumentError, Cron
from jobq.model.instant import MAX
from jobq.model.schedule import (
    MAX_KEY,
    MISSED_AFTER,
    CatchUp,
    Due,
    Interval,
    Slot,
    Timing,
    due_slots,
    jitter_delay,
    last_slot,
    sane_next_run,
    slot_key,
)
from jobq.model.zones import load_zone

START = datetime(2024, 1, 1, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
TEN_YEARS = timedelta(days=3_653)
#: Steps of a timing, far fewer than the slots of ten years, that finding the newest slot may take.
STEPS = 50


@attrs.define
class Counted:
    """A timing that counts how often it is asked."""

    timing: Timing
    steps: int = 0

    def next_after(self, when: datetime) -> datetime:
        """Count, and answer."""
        self.steps += 1
        return self.timing.next_after(when)


def at(*hours: float) -> list[datetime]:
    """Return instants so many hours after the start."""
    return [START + hour * HOUR for hour in hours]


def instants(due: Due) -> list[datetime]:
    """Return the slots that run."""
    return [slot.at for slot in due.slots]


HOURLY = Interval(HOUR, START)
TIMINGS = [
    pytest.param(HOURLY, id="interval"),
    pytest.param(Interval("1s", START), id="seconds"),
    pytest.param(Interval(0.001, START), id="milliseconds"),
    pytest.param(Interval("11d7h3m", START), id="days"),
    pytest.param(Cron("* * * * *"), id="each-minute"),
    pytest.param(Cron("*/7 * * * *", "Europe/Berlin"), id="zone"),
    pytest.param(Cron("* * 22 12 *"), id="all-of-one-day"),
    pytest.param(Cron("0 0 29 2 *"), id="leap-day"),
    pytest.param(Cron("5-55/7 2 1 2,7 *", "America/New_York"), id="two-clusters"),
]


def test_interval_keeps_its_phase() -> None:
    """The slots are anchor + k x period however late one asks, and the first is anchor + period."""
    assert HOURLY.next_after(START - TEN_YEARS) == START + HOUR
    assert HOURLY.next_after(START) == START + HOUR
    assert HOURLY.next_after(START + 5.9 * HOUR) == START + 6 * HOUR
    assert HOURLY.next_after(START + 6 * HOUR) == START + 7 * HOUR


def test_interval_does_not_drift_over_a_century() -> None:
    """A period that no float holds exactly: after a billion periods the slot is where integers say."""
    tenth = Interval(0.1, START)

    assert tenth.next_after(START + timedelta(days=36_525)) == START + timedelta(days=36_525, milliseconds=100)
    assert Interval("1.7s", START).next_after(START + 10**9 * timedelta(seconds=1.7)) == (
        START + (10**9 + 1) * timedelta(milliseconds=1_700)
    )


def test_interval_is_kept_in_milliseconds() -> None:
    """As the database keeps it: the period is rounded, what is finer in the anchor is dropped; all else is exact."""
    interval = Interval(1.0004, START + timedelta(microseconds=1_999))

    assert interval == Interval(SECOND, START + timedelta(milliseconds=1))
    assert interval.next_after(START) == START + timedelta(milliseconds=1_001)


@pytest.mark.parametrize("period", [0, -1, "-5m", 0.0004, float("nan"), float("inf"), True, None, "x", "", 1e12])
def test_interval_refuses_a_period(period: Any) -> None:
    """Zero and below, less than a millisecond, more than there is, and what is no duration."""
    with pytest.raises(ArgumentError) as caught:
        Interval(period, START)

    assert caught.value.argument == "every"


@pytest.mark.parametrize("anchor", [datetime(2024, 1, 1), "2024-01-01", None])  # noqa: DTZ001 - the subject
def test_interval_refuses_an_anchor(anchor: Any) -> None:
    """A naive one, and what is no datetime."""
    with pytest.raises(ArgumentError) as caught:
        Interval(HOUR, anchor)

    assert caught.value.argument == "anchor"


def test_interval_beyond_the_calendar_is_an_argument_error() -> None:
    """A period whose first slot no datetime can express is refused when that slot is asked for."""
    with pytest.raises(ArgumentError, match="years 1 to 9999"):
        Interval(timedelta(days=3_000_000), START).next_after(START)
    with pytest.raises(ArgumentError, match="years 1 to 9999"):
        HOURLY.next_after(MAX)


@pytest.mark.parametrize("policy", CatchUp)
def test_nothing_is_due_before_the_next_run(policy: CatchUp) -> None:
    """The next run stays what it is."""
    due = due_slots(HOURLY, START + HOUR, START + HOUR - timedelta(microseconds=1), policy, 5)

    assert due == Due(slots=(), next_run=START + HOUR, dropped=False)


@pytest.mark.parametrize("policy", CatchUp)
@pytest.mark.parametrize("late", [timedelta(), 2 * SECOND, MISSED_AFTER])
def test_one_slot_in_time_runs_under_every_policy(policy: CatchUp, late: timedelta) -> None:
    """A slot that a tick finds up to a minute late was not missed."""
    due = due_slots(HOURLY, START + HOUR, START + HOUR + late, policy, 5)

    assert due == Due(slots=(Slot(at=START + HOUR, catch_up=False),), next_run=START + 2 * HOUR, dropped=False)


@pytest.mark.parametrize("policy", CatchUp)
def test_b31_a_second_look_within_the_minute_finds_nothing(policy: CatchUp) -> None:
    """Ten ticks just before, at and after a slot run it once."""
    cron, next_run, found = Cron("30 0 * * *"), START + HOUR / 2, []
    for seconds in (-2, -1, 0, 0.5, 1, 2, 10, 30, 59, 61):
        due = due_slots(cron, next_run, START + HOUR / 2 + seconds * SECOND, policy, 5)
        next_run = due.next_run
        found.extend(instants(due))

    assert found == [START + HOUR / 2]
    assert next_run == START + HOUR / 2 + 24 * HOUR


def test_once_collapses_missed_slots_into_the_newest() -> None:
    """One run, marked as a catch-up, and the next run on phase."""
    due = due_slots(HOURLY, START + HOUR, START + 5 * HOUR + SECOND, CatchUp.ONCE, 10)

    assert due == Due(slots=(Slot(at=START + 5 * HOUR, catch_up=True),), next_run=START + 6 * HOUR, dropped=True)


def test_once_runs_a_single_late_slot_as_a_catch_up() -> None:
    """Nothing collapsed, but the slot is late."""
    due = due_slots(HOURLY, START + HOUR, START + 1.5 * HOUR, CatchUp.ONCE, 10)

    assert due == Due(slots=(Slot(at=START + HOUR, catch_up=True),), next_run=START + 2 * HOUR, dropped=False)


@pytest.mark.parametrize("hours", [1.5, 5.5])
def test_skip_waits_for_the_next_slot(hours: float) -> None:
    """Missed slots never run, one or many."""
    due = due_slots(HOURLY, START + HOUR, START + hours * HOUR, CatchUp.SKIP, 10)

    assert due == Due(slots=(), next_run=START + (int(hours) + 1) * HOUR, dropped=True)


def test_skip_runs_the_slot_that_is_due_just_now() -> None:
    """The older ones are skipped; this one was not missed, and carries none of them."""
    due = due_slots(HOURLY, START + HOUR, START + 5 * HOUR + SECOND, CatchUp.SKIP, 10)

    assert due == Due(slots=(Slot(at=START + 5 * HOUR, catch_up=False),), next_run=START + 6 * HOUR, dropped=True)


@pytest.mark.parametrize(
    ("period", "late", "runs"),
    [
        pytest.param(10, 5, True, id="half-of-a-short-period"),
        pytest.param(10, 5.001, False, id="more-than-half"),
        pytest.param(119, 59.5, True, id="half-of-just-under-two-minutes"),
        pytest.param(119, 59.501, False, id="more-than-half-of-that"),
        pytest.param(3_600, 60, True, id="a-minute"),
        pytest.param(3_600, 60.001, False, id="more-than-a-minute"),
    ],
)
@pytest.mark.parametrize("missed", [0, 3])
def test_skip_runs_the_newest_slot_up_to_half_way_to_the_next(
    period: float, late: float, runs: bool, missed: int
) -> None:
    """At most a minute; whether others were missed before makes no difference to it."""
    timing = Interval(period * SECOND, START)
    newest = START + (missed + 1) * period * SECOND
    due = due_slots(timing, START + period * SECOND, newest + late * SECOND, CatchUp.SKIP, 10)

    assert due.slots == ((Slot(at=newest, catch_up=False),) if runs else ())
    assert (due.next_run, due.dropped) == (newest + period * SECOND, not runs or missed > 0)


@pytest.mark.parametrize(
    ("bound", "expected", "dropped"),
    [
        pytest.param(10, at(1, 2, 3, 4, 5), False, id="fewer-than-the-bound"),
        pytest.param(5, at(1, 2, 3, 4, 5), False, id="just-the-bound"),
        pytest.param(2, at(4, 5), True, id="the-newest"),
        pytest.param(1, at(5), True, id="one"),
    ],
)
def test_all_runs_the_newest_in_order(bound: int, expected: list[datetime], dropped: bool) -> None:
    """Up to the bound, oldest first; all but one that is in time are catch-ups."""
    due = due_slots(HOURLY, START + HOUR, START + 5 * HOUR, CatchUp.ALL, bound)

    assert instants(due) == expected
    assert [slot.catch_up for slot in due.slots] == [slot != START + 5 * HOUR for slot in expected]
    assert (due.next_run, due.dropped) == (START + 6 * HOUR, dropped)


def test_all_marks_every_late_slot() -> None:
    """The newest too, when it is late itself."""
    due = due_slots(HOURLY, START + 4 * HOUR, START + 5.5 * HOUR, CatchUp.ALL, 5)

    assert due.slots == (Slot(at=START + 4 * HOUR, catch_up=True), Slot(at=START + 5 * HOUR, catch_up=True))


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("bound", [1, 5])
def test_ten_years_behind_is_on_phase_in_bounded_steps(timing: Timing, bound: int) -> None:
    """The slots are the newest there are and the next run is on phase, without walking over those that were missed."""
    counted, now = Counted(timing), START + TEN_YEARS + 31 * SECOND
    due = due_slots(counted, timing.next_after(START), now, CatchUp.ALL, bound)

    assert counted.steps <= bound * STEPS
    assert due.next_run == timing.next_after(now)
    following = [*instants(due)[1:], due.next_run]
    assert [timing.next_after(slot) for slot in instants(due)] == following
    assert 1 <= len(due.slots) <= bound
    assert due.dropped is (len(due.slots) == bound and due.slots[0].at > timing.next_after(START))


@pytest.mark.parametrize("timing", TIMINGS)
def test_newest_slot_is_the_one_that_a_walk_ends_at(timing: Timing) -> None:
    """So many slots after a random one: at the last of them, just before the next, and just before the last."""
    dice = random.Random(repr(timing))
    for _ in range(20):
        since = timing.next_after(START + dice.random() * TEN_YEARS)
        walk = [since]
        for _ in range(dice.randrange(60)):
            walk.append(timing.next_after(walk[-1]))
        following = timing.next_after(walk[-1])
        previous = walk[-2] if len(walk) > 1 else since

        assert last_slot(timing, walk[-1], since) == walk[-1]
        assert last_slot(timing, following - timedelta(microseconds=1), since) == walk[-1]
        assert last_slot(timing, walk[-1] - timedelta(microseconds=1), since) == previous


def test_newest_slot_near_the_first_year() -> None:
    """Looking back does not leave the calendar."""
    first = datetime(1, 1, 1, 3, tzinfo=UTC)

    assert last_slot(Cron("0 3 1 1 *"), first + 40 * HOUR, first) == first


@pytest.mark.parametrize("policy", CatchUp)
def test_stored_next_run_counts_as_a_slot(policy: CatchUp) -> None:
    """A promise that the rules no longer make, as after a change of the zone database, is kept."""
    odd = START + 2.5 * HOUR
    due = due_slots(HOURLY, odd, odd + SECOND, policy, 5)

    assert due == Due(slots=(Slot(at=odd, catch_up=False),), next_run=START + 3 * HOUR, dropped=False)


@pytest.mark.parametrize(
    ("next_run", "expected"),
    [
        pytest.param(0.5, 0.5, id="overdue"),
        pytest.param(1, 1, id="due-now"),
        pytest.param(2, 2, id="the-next-slot"),
        pytest.param(3, 3, id="one-period-further"),
        pytest.param(3.01, 2, id="further"),
        pytest.param(90_000, 2, id="ten-years-further"),
    ],
)
def test_b35_next_run_left_behind_by_a_wrong_clock_is_recomputed(next_run: float, expected: float) -> None:
    """One that is more than a period beyond the next slot came from a clock that was ahead."""
    assert sane_next_run(HOURLY, START + next_run * HOUR, START + HOUR) == START + expected * HOUR


def test_b35_only_slot_before_the_end_of_the_calendar_stays() -> None:
    """A period of five thousand years has a next run, and none after it to hold that against."""
    rare = Interval(timedelta(days=365 * 5_000), START)

    assert sane_next_run(rare, START + rare.period, START) == START + rare.period


def test_b35_daily_slot_is_not_fired_again_after_half_a_day_back() -> None:
    """The clock goes back 12 h just after the slot: its next run stays tomorrow's."""
    daily, slot = Cron("0 12 * * *"), START + 12 * HOUR
    next_run = due_slots(daily, slot, slot + SECOND, CatchUp.ONCE, 1).next_run

    assert sane_next_run(daily, next_run, slot - 12 * HOUR) == slot + 24 * HOUR


def test_slot_key_reads() -> None:
    """Schedule, slot in UTC and entry; fractions of a second only where there are some."""
    berlin = START.astimezone(load_zone("Europe/Berlin"))

    assert slot_key("digest", START) == "schedule:digest:2024-01-01T00:00:00Z"
    assert slot_key("digest", berlin, "team") == "schedule:digest:2024-01-01T00:00:00Z:team"
    assert slot_key("digest", START + timedelta(milliseconds=250)) == "schedule:digest:2024-01-01T00:00:00.250Z"
    assert slot_key("digest", START, "") == "schedule:digest:2024-01-01T00:00:00Z:"


def test_slot_key_of_long_names_fits_and_stays_its_own() -> None:
    """At most 512 characters, and still one key for each slot and entry."""
    keys = {slot_key("ä" * 480, START, entry) for entry in ("a", "b", "c" * 10_000)}
    keys |= {slot_key("ä" * 480 + "b", START + n * SECOND) for n in range(3)}
    keys |= {slot_key("\ud800" * 600, START), slot_key("\ud800" * 601, START)}

    assert len(keys) == 8
    assert max(map(len, keys)) <= MAX_KEY
    assert len(slot_key("n" * (MAX_KEY - len(slot_key("", START))), START)) == MAX_KEY


def test_jitter_is_stable_and_spread() -> None:
    """The same in each process for one slot of one schedule, others elsewhere, all over the range."""
    slots = [START + n * HOUR for n in range(2_000)]
    delays = [jitter_delay("digest", slot, 60) for slot in slots]

    assert delays == [jitter_delay("digest", slot, 60) for slot in slots]
    assert len(set(delays)) == len(slots)
    assert all(0 <= delay < 60 for delay in delays)
    assert (min(delays) < 1, max(delays) > 59, 28 < sum(delays) / len(delays) < 32) == (True, True, True)
    assert jitter_delay("other", START, 60) != jitter_delay("digest", START, 60)
    assert jitter_delay("digest", START, 0) == 0


def test_jitter_is_the_same_in_another_process() -> None:
    """It does not depend on the seed of Python's hashes."""
    script = """
from datetime import UTC, datetime
from jobq.model.schedule import jitter_delay
print(jitter_delay("digest", datetime(2024, 1, 1, tzinfo=UTC), 60.0))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert float(found.stdout) == jitter_delay("digest", START, 60.0)
