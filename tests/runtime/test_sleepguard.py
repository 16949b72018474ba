"""The sleep guard: pure comparisons of two clocks."""

from datetime import timedelta

import pytest

from jobq.model.runner import RunnerRow
from jobq.runtime.sleepguard import SleepGuard
from jobq.testing import FakeClock


class Real:
    """The real monotonic clock, as a test moves it."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def real() -> Real:
    """A real clock that stands still."""
    return Real()


@pytest.fixture
def guard(clock: FakeClock, real: Real) -> SleepGuard:
    """A guard for leases of a minute."""
    return SleepGuard(clock, lease=60, real=real)


def row(clock: FakeClock, *, boot_id: str = "boot") -> RunnerRow:
    """Return the row of a runner that beats now."""
    return RunnerRow("r", "h", 1, {}, (), boot_id, clock.monotonic(), clock.now(), clock.now())


def test_time_that_passes_trips_nothing(guard: SleepGuard, clock: FakeClock) -> None:
    """Both clocks move together however far: nobody slept."""
    clock.advance("90d")
    guard.observe()

    assert not guard.holding
    assert guard.take_step() is None


@pytest.mark.parametrize(("jump", "holds"), [(29, False), (30, True), (-30, True), (-29, False), (-43_200, True)])
def test_half_a_lease_of_drift_holds(guard: SleepGuard, clock: FakeClock, jump: float, holds: bool) -> None:
    """The wall clock moving alone by half a lease, in either direction, holds reclaiming back."""
    clock.jump(jump)
    guard.observe()

    assert guard.holding is holds


def test_the_hold_ends_after_one_lease(guard: SleepGuard, clock: FakeClock) -> None:
    """It lasts one lease of monotonic time."""
    clock.jump("1h")
    guard.observe()
    clock.advance(59.9)
    assert guard.holding
    clock.advance(0.1)
    assert not guard.holding


def test_a_step_back_is_told_once(guard: SleepGuard, clock: FakeClock) -> None:
    """The step says what the clock would have shown and by how much it went back; slewing is no step."""
    clock.advance(10)
    due = clock.now()
    clock.jump(-3600)
    guard.observe()
    guard.observe()
    step = guard.take_step()

    assert step is not None
    assert step.since == due
    assert step.seconds == pytest.approx(3600)
    assert guard.take_step() is None

    clock.jump(-0.9)
    guard.observe()
    assert guard.take_step() is None


def test_a_step_that_failed_comes_again(guard: SleepGuard, clock: FakeClock) -> None:
    """What could not be dealt with is not forgotten."""
    clock.jump(-60)
    guard.observe()
    step = guard.take_step()
    assert step is not None
    guard.put_back(step)

    assert guard.take_step() == step


def test_a_wait_that_overslept_holds(guard: SleepGuard, real: Real) -> None:
    """An observation that comes half a lease too late in real time means that the process did not run."""
    guard.expect(1.0)
    real.at += 30.9
    guard.observe()
    assert not guard.holding
    guard.expect(1.0)
    real.at += 31.0
    guard.observe()
    assert guard.holding


def test_nobody_oversleeps_who_is_not_expected(guard: SleepGuard, real: Real) -> None:
    """Between two drains any time may pass."""
    guard.expect(1.0)
    guard.forget()
    real.at += 1000
    guard.observe()

    assert not guard.holding


def test_a_process_that_starts_after_a_wake_sees_it(clock: FakeClock, real: Real) -> None:
    """The pair that another process wrote before the sleep disagrees with ours."""
    before = row(clock)
    clock.advance(5)
    clock.jump("8h")
    guard = SleepGuard(clock, lease=60, real=real)
    guard.compare([before], "boot")

    assert guard.holding


def test_rows_of_other_boots_and_old_rows_say_nothing(guard: SleepGuard, clock: FakeClock) -> None:
    """Monotonic times compare within one boot; and whoever slept long ago has beaten since."""
    other, old = row(clock, boot_id="other"), row(clock)
    clock.jump(timedelta(hours=1))
    guard.compare([other], "boot")
    assert not guard.holding
    clock.advance(61)
    guard.compare([old], "boot")
    assert not guard.holding
