"""The scheduler: its loop, its waits, its leaders, and what ends it not."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import jobq
from jobq.model.instant import EPOCH
from jobq.runtime.runner import Runner
from jobq.store.scheduling import ScheduleOutlook
from jobq.testing import FakeClock
from tests.conftest import ErrorLog
from tests.runtime.conftest import Changes


def add(jobs: jobq.JobQueue, **options: Any) -> None:
    """Store a schedule of an hour."""
    jobs.schedules.add("s", **{"every": "1h", "kind": "a", **options})  # type: ignore[arg-type]


def test_a_tick_returns_what_it_dispatched(jobs: jobq.JobQueue, runner: Runner, clock: FakeClock) -> None:
    """Values that name schedule, slot, entry and job; nothing due is an empty list."""
    add(jobs)
    assert runner.scheduler.tick() == []
    clock.advance("1h")
    (made,) = runner.scheduler.tick()

    assert (made.schedule, made.slot, made.entry, made.created) == ("s", clock.now(), "a", True)
    assert jobs.get(made.job_id).slot == clock.now()
    assert runner.scheduler.tick() == []


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        pytest.param(0, 1.0, id="far"),
        pytest.param(3_599.75, 0.25, id="near"),
        pytest.param(3_599.9999, 0.001, id="a-moment"),
        pytest.param(3_600, 1.0, id="just-fired"),
    ],
)
def test_it_waits_for_the_next_slot_and_at_most_a_second(
    jobs: jobq.JobQueue, runner: Runner, clock: FakeClock, passed: float, expected: float
) -> None:
    """Waits are real time, whatever the clock says."""
    add(jobs)
    clock.advance(passed)
    runner.scheduler.tick()
    assert runner.scheduler.pause() == pytest.approx(expected, abs=1e-6)


def test_b35_no_wait_is_longer_than_a_second_after_the_clock_goes_back(
    jobs: jobq.JobQueue, runner: Runner, clock: FakeClock
) -> None:
    """The slot that fired does not fire again, and the next one comes within a period."""
    jobs.job(name="a")(lambda payload: None)
    add(jobs)
    clock.advance("1h")
    assert len(runner.scheduler.tick()) == 1
    clock.jump("-12h")
    assert runner.scheduler.tick() == []
    assert runner.scheduler.pause() <= 1.0
    assert jobs.schedules.get("s").next_run == clock.now() + timedelta(hours=1)
    counts = runner.drain(until="12h")
    slots = [job.slot for job in jobs.find()]

    # The job that was due already, and one for each of the 12 hours but the last, whose slot has fired.
    assert counts.succeeded == len(set(slots)) == len(slots) == 1 + 11


def test_nothing_due_asks_no_leader_and_writes_nothing(
    jobs: jobq.JobQueue, clock: FakeClock, open_again: Callable[..., jobq.JobQueue]
) -> None:
    """An idle process looks on a reader."""

    class Never:
        """A leader that must not be asked."""

        def leads(self) -> bool:
            """Fail."""
            raise AssertionError("it was asked")

        def resign(self) -> None:
            """Do nothing."""

    add(jobs)
    runner = jobq.Runner(jobs, leader=Never())
    before = jobs.store.data_version()
    assert runner.scheduler.tick() == []
    assert jobs.store.data_version() == before
    clock.advance("1h")
    with pytest.raises(AssertionError):
        runner.scheduler.tick()


def test_a_lease_leader_ticks_and_the_others_do_not(
    jobs: jobq.JobQueue, open_again: Callable[..., jobq.JobQueue], clock: FakeClock
) -> None:
    """Until its lease runs out or it stops."""
    first = jobq.Runner(jobs, leader=jobq.LeaseLeader(jobs, length="10s"))
    other = open_again()
    second = jobq.Runner(other, leader=jobq.LeaseLeader(other, length="10s"))
    jobs.schedules.add("s", every=1, kind="a")

    def who() -> list[int]:
        clock.advance(1)
        return [len(second.scheduler.tick()), len(first.scheduler.tick())]

    clock.advance(1)
    assert len(first.scheduler.tick()) == 1
    assert [who() for _ in range(20)] == [[0, 1]] * 20
    first.scheduler.stop()
    assert who() == [1, 0]
    clock.advance(11)
    assert len(first.scheduler.tick()) == 1


def test_b37_failing_ticks_end_nothing(
    open_real: Callable[..., jobq.JobQueue], changes: Changes, errors: ErrorLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy, an I/O error, bugs; then one run, and health says how old the last good tick is."""
    jobs = open_real()
    jobs.job(name="a")(lambda payload: None)
    jobs.bus.subscribe(jobq.JobStateChanged, changes.on_event)
    jobs.schedules.add("s", every="1h", kind="a", anchor=jobs.clock.now() - timedelta(seconds=3_599.8))
    faults: list[BaseException] = [
        jobq.StoreBusy("f", "locked"), jobq.StoreUnavailable("f", "I/O"), TypeError("bug"), OSError("I/O"),
        jobq.StoreBusy("f", "locked"),
    ]  # fmt: skip
    store, look = jobs.store, jobs.store.look_schedules
    healed = threading.Event()

    def failing() -> ScheduleOutlook:
        if faults:
            raise faults.pop()
        healed.set()
        return look()

    monkeypatch.setattr(store, "look_schedules", failing)
    with jobq.Runner(jobs) as runner:
        assert runner.health().loops["scheduler"] is None or not faults
        assert healed.wait(20)
        changes.wait_for(lambda: jobs.counts()[jobq.JobState.SUCCEEDED] == 1)
        changes.wait_for(lambda: runner.health().loops["scheduler"] is not None)
        age = runner.health().loops["scheduler"]
        assert age is not None
        assert age < 5
        assert runner.scheduler.failures == 5
        assert runner.scheduler.alive

    assert len(jobs.find()) == 1
    assert set(errors.take()) == {"jobq.loop.crashed", "jobq.store.failed"}


def test_threads_run_a_schedule_on_time(open_real: Callable[..., jobq.JobQueue], changes: Changes) -> None:
    """A real runner on the real clock: a slot each 50 ms, none twice."""
    jobs = open_real()
    seen: list[Any] = []

    @jobs.job
    def a(payload: Any, job: jobq.RunningJob) -> None:
        seen.append((job.slot, job.catch_up))
        changes.on_event(job)

    jobs.schedules.add("s", every=0.05, kind="a", anchor=EPOCH)
    with jobq.Runner(jobs):
        changes.wait_for(lambda: len(seen) >= 5)
    slots = [slot for slot, _ in seen]

    assert len(set(slots)) == len(slots)
    assert all((slot - EPOCH) % timedelta(seconds=0.05) == timedelta(0) for slot in slots)


def test_drain_until_visits_slots_and_retries_in_order(
    jobs: jobq.JobQueue, runner: Runner, clock: FakeClock, errors: ErrorLog
) -> None:
    """The next due time, slot or lease end, whichever is first; a broken schedule does not hold it up."""
    at: list[float] = []

    @jobs.job(retry=jobq.RetryPolicy(base="90s"), max_attempts=2)
    def a(payload: Any, job: jobq.RunningJob) -> None:
        at.append(clock.monotonic() - 1_000)
        if job.attempt == 1:
            raise ConnectionError("not yet")

    jobs.schedules.add("s", every="2m", kind="a")
    jobs.schedules.add("bad", every="1m", kind="gone")
    jobs.store.register([], [], ["gone"])
    counts = runner.drain(until="4m")

    assert errors.take() == ["jobq.schedule.failed"]
    assert at == [120, 210, 240]
    assert (counts.claimed, counts.retried, counts.succeeded) == (3, 2, 1)
