"""Trouble with the store: one report per change of state, growing pauses, nothing lost."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jobq
from jobq.trouble import FIRST_PAUSE, Trouble
from tests.runtime.conftest import PATIENCE, Changes

Open = Callable[..., jobq.JobQueue]
FULL = jobq.StoreFull("f", "disk full")


@pytest.fixture
def told(jobs: jobq.JobQueue) -> Iterator[list[bool]]:
    """What the bus says about the health of the store."""
    found: list[bool] = []
    with jobs.bus.subscribe(jobq.HealthChanged, lambda event: found.append(event.healthy)):
        yield found


@pytest.fixture
def fatal() -> list[int]:
    """Grows with each demand to stop."""
    return []


@pytest.fixture
def trouble(jobs: jobq.JobQueue, fatal: list[int]) -> Trouble:
    """A fresh record of trouble."""
    return Trouble(jobs.bus.publish, on_fatal=lambda: fatal.append(1))


def test_one_report_for_many_failures(trouble: Trouble, told: list[bool], errors: Any) -> None:
    """However many loops fail however often, it is said once, and once that it is over."""
    for _ in range(3):
        trouble.failed("a", FULL)
        trouble.failed("b", FULL)
    assert errors.take() == ["jobq.store.failed"]
    trouble.worked("a")
    assert not trouble.healthy
    trouble.worked("b")
    trouble.worked("b")

    assert trouble.healthy
    assert told == [False, True]


def test_pauses_grow_to_five_seconds(trouble: Trouble, errors: Any) -> None:
    """Each failure of a loop doubles its pause; a success starts over."""
    pauses = [trouble.failed("a", FULL) for _ in range(8)]
    trouble.worked("a")

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert trouble.failed("a", FULL) == 0.1
    errors.take()


def test_a_busy_store_is_no_news(trouble: Trouble, told: list[bool]) -> None:
    """Somebody else works: it is waited out without a report."""
    assert trouble.failed("a", jobq.StoreBusy("f", "locked")) == 0.1
    assert trouble.healthy
    assert told == []


def test_a_corrupt_store_stops_the_runner_once(trouble: Trouble, fatal: list[int], errors: Any) -> None:
    """It is reported once and demands the stop once."""
    for loop in ("a", "b", "a"):
        trouble.failed(loop, jobq.StoreCorrupt("f", "malformed"))

    assert fatal == [1]
    assert errors.take() == ["jobq.store.failed"]


class Failing:
    """A store whose settling verb raises as long as it is told to."""

    def __init__(self, store: Any, error: Exception) -> None:
        self._store = store
        self._error = error
        self.failing = threading.Event()
        self.failed = threading.Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def settle_and_claim(self, settlements: Any, request: Any, *, durable: bool) -> Any:
        """Fail when there is something to settle."""
        if settlements and self.failing.is_set():
            self.failed.release()
            raise self._error
        return self._store.settle_and_claim(settlements, request, durable=durable)


@pytest.mark.parametrize(
    ("error", "reports"),
    [
        pytest.param(jobq.StoreBusy("f", "locked"), [], id="busy"),
        pytest.param(FULL, ["jobq.store.failed"], id="full"),
        pytest.param(jobq.StoreUnavailable("f", "I/O"), ["jobq.store.failed"], id="unavailable"),
    ],
)
def test_an_outcome_is_kept_until_it_can_be_settled(
    open_real: Open, error: Exception, reports: list[str], errors: Any
) -> None:
    """The job ran once, and its end is written when the cause is gone."""
    jobs = open_real()
    runs = []
    jobs.job(name="note")(lambda payload: runs.append(1))
    store = Failing(jobs.store, error)
    jobs._store = store  # type: ignore[assignment]
    store.failing.set()
    with jobq.Runner(jobs, workers={"default": 1}) as runner:
        made = jobs.enqueue("note")
        for _ in range(3):
            assert store.failed.acquire(timeout=PATIENCE)
        store.failing.clear()
        assert made.wait(PATIENCE).state == "succeeded"
        assert runner.health().running
    assert runs == [1]
    assert errors.take() == reports


def test_a_bug_while_settling_costs_no_thread(open_real: Open, errors: Any) -> None:
    """A worker that trips over a bug goes on, and settles its run one by one."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)
    store = Failing(jobs.store, TypeError("bug"))
    jobs._store = store  # type: ignore[assignment]
    store.failing.set()
    with jobq.Runner(jobs, workers={"default": 1}) as runner:
        made = jobs.enqueue("note")
        assert made.wait(PATIENCE).state == "succeeded"
        store.failing.clear()
        assert jobs.enqueue("note").wait(PATIENCE).state == "succeeded"
        assert runner.health().workers == 1
    assert set(errors.take()) == {"jobq.worker.crashed"}


def test_a_corrupt_store_ends_the_threads(open_real: Open, errors: Any) -> None:
    """One report, and the runner has stopped by itself."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)
    store = Failing(jobs.store, jobq.StoreCorrupt("f", "malformed"))
    jobs._store = store  # type: ignore[assignment]
    store.failing.set()
    runner = jobq.Runner(jobs)
    runner.start()
    jobs.enqueue("note")

    assert runner.wait(PATIENCE)
    assert not runner.health().store_healthy
    assert errors.take() == ["jobq.store.failed"]


def test_a_loop_survives_a_bug(open_real: Open, changes: Changes, errors: Any) -> None:
    """A tick that raises is logged and counted, and the next ones come."""
    jobs = open_real(lease=0.3)
    jobs.job(name="note")(lambda payload: None)
    runner = jobq.Runner(jobs)
    beat, broken = jobs.store.beat_runner, threading.Event()
    broken.set()

    def beat_runner(row: Any) -> None:
        if broken.is_set():
            raise TypeError("bug")
        beat(row)

    jobs.store.beat_runner = beat_runner  # type: ignore[method-assign]
    with runner:
        changes.wait_for(lambda: runner.heartbeat.failures >= 2)
        broken.clear()
        changes.wait_for(lambda: runner.health().loops["heartbeat"] is not None)
        assert jobs.enqueue("note").wait(PATIENCE).state == "succeeded"
    assert set(errors.take()) == {"jobq.loop.crashed"}


def test_b61_a_file_that_cannot_be_opened_is_not_hammered(open_real: Open, changes: Changes, errors: Any) -> None:
    """Every loop fails, and all of them together try a bounded number of times; when it is back, work goes on."""
    jobs = open_real(poll=0.01)
    jobs.job(name="note")(lambda payload: None)
    store, missing, tries = jobs.store, threading.Event(), []

    class Missing:
        def __getattr__(self, name: str) -> Any:
            verb = getattr(store, name)

            def call(*args: Any, **kwargs: Any) -> Any:
                if missing.is_set():
                    tries.append(time.monotonic())
                    raise jobq.StoreUnavailable("f", "unable to open database file")
                return verb(*args, **kwargs)

            return call

    jobs._store = Missing()  # type: ignore[assignment]
    with jobq.Runner(jobs, workers={"default": 8}):
        changes.wait_for(lambda: jobs.enqueue("note").wait(PATIENCE).state == "succeeded")
        begun = time.monotonic()
        missing.set()
        changes.wait_for(lambda: time.monotonic() - begun > 1.5)
        missing.clear()
        elapsed = time.monotonic() - begun
        assert jobs.enqueue("note").wait(PATIENCE).state == "succeeded"

    # After 0, 0.1, 0.3, 0.7, 1.5 s: the watch, maintenance and the scheduler; the threads themselves are idle.
    assert 1 <= len(tries) <= 3 * (1 + math.log2(1 + elapsed / FIRST_PAUSE))
    assert errors.take() == ["jobq.store.failed"]
