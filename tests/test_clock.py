"""The two clocks: they keep the same protocol, and the fake one moves only when told to."""

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobq.clock import Clock, SystemClock
from jobq.errors import ArgumentError
from jobq.testing import FakeClock

START = datetime(2024, 1, 1, tzinfo=UTC)


def test_system_clock_tells_aware_utc() -> None:
    """The wall time of the machine is aware and in UTC."""
    clock: Clock = SystemClock()

    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()
    assert not clock.deterministic


def test_system_clock_wait_ends_early_when_the_event_is_set() -> None:
    """A set event ends a wait of any length at once, also one longer than the system can count."""
    event = threading.Event()
    event.set()

    assert SystemClock().wait(event, 1e12)


class _Recorder(threading.Event):
    """An event that notes how long it was asked to wait."""

    timeouts: list[float]

    def wait(self, timeout: float | None = None) -> bool:
        """Note the timeout and give up at once."""
        assert timeout is not None
        self.timeouts.append(timeout)
        return False


def test_system_clock_wait_asks_for_no_more_than_the_system_can_count() -> None:
    """A wait of ten thousand years is cut to the longest there is, a negative one to none."""
    event = _Recorder()
    event.timeouts = []

    for seconds in (3e11, 5.0, -5.0):
        SystemClock().wait(event, seconds)

    assert event.timeouts == [threading.TIMEOUT_MAX, 5.0, 0.0]


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.001])
def test_system_clock_wait_gives_up(seconds: float) -> None:
    """An event that nobody sets is reported as such when the time is over."""
    assert not SystemClock().wait(threading.Event(), seconds)


def test_fake_clock_stands_still() -> None:
    """Without being told the fake clock does not move."""
    clock: Clock = FakeClock()

    assert clock.now() == clock.now() == START
    assert clock.monotonic() == clock.monotonic()
    assert clock.deterministic


def test_fake_clock_starts_at_any_instant() -> None:
    """A start in another zone is the same instant in UTC; a naive one is refused."""
    east = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    assert FakeClock(east).now().isoformat() == "2024-01-01T00:00:00+00:00"
    with pytest.raises(ArgumentError):
        FakeClock(datetime(2024, 1, 1))  # noqa: DTZ001 - the subject of the test


def test_fake_clock_advances_both_clocks_exactly() -> None:
    """A hundred thousand small steps add up without drift, on both clocks."""
    clock = FakeClock()
    before = clock.monotonic()

    for _ in range(100_000):
        clock.advance("0.1s")

    assert clock.now() - START == timedelta(seconds=10_000)
    assert clock.monotonic() - before == 10_000


def test_fake_clock_jumps_the_wall_clock_alone() -> None:
    """A jump sets the wall clock either way and leaves the monotonic one."""
    clock = FakeClock()
    before = clock.monotonic()

    clock.jump("-12h")
    assert clock.now() == START - timedelta(hours=12)
    clock.jump(timedelta(days=1))
    assert clock.now() == START + timedelta(hours=12)
    assert clock.monotonic() == before


def test_fake_clock_does_not_advance_backwards() -> None:
    """Time passes forward only; the refusal leaves the clock alone."""
    clock = FakeClock()

    with pytest.raises(ArgumentError):
        clock.advance(-1)
    assert clock.now() == START


def test_fake_clock_stays_in_the_calendar() -> None:
    """Moving beyond year 9999 is refused, and neither clock has moved."""
    clock = FakeClock()
    before = clock.monotonic()

    with pytest.raises(ArgumentError):
        clock.advance("3650000d")
    assert (clock.now(), clock.monotonic()) == (START, before)


def test_fake_clock_wait_lets_time_pass() -> None:
    """A wait on an event that is not set costs its time at once."""
    clock = FakeClock()

    assert not clock.wait(threading.Event(), 2.5)
    assert clock.now() == START + timedelta(seconds=2.5)


def test_fake_clock_wait_on_a_set_event_costs_nothing() -> None:
    """A wait on a set event returns at once."""
    clock, event = FakeClock(), threading.Event()
    event.set()

    assert clock.wait(event, 60)
    assert clock.now() == START


def test_fake_clock_wait_always_moves() -> None:
    """A wait shorter than the resolution moves the clock all the same, so that a loop of waits ends."""
    clock = FakeClock()

    clock.wait(threading.Event(), 1e-9)

    assert clock.now() > START


def test_fake_clock_loses_no_step_of_any_thread() -> None:
    """Threads that advance at the same time all count."""
    clock = FakeClock()
    barrier = threading.Barrier(4)

    def step() -> None:
        barrier.wait(timeout=10)
        for _ in range(1_000):
            clock.advance(1)

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)

    assert clock.now() == START + timedelta(seconds=4_000)
