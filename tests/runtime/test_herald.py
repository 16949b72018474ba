"""The herald: listeners run on its thread, and neither the heartbeat nor the overseer ever waits for one."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jobq
from jobq.runtime.parts import Parts
from tests.runtime.conftest import PATIENCE, Changes

Open = Callable[..., jobq.JobQueue]
EVENT = jobq.HealthChanged(component="store", healthy=False, detail="")


class Slow:
    """A listener that says when it was called, on which thread, and returns when it may."""

    def __init__(self) -> None:
        self.called, self.may_end = threading.Event(), threading.Event()
        self.threads: list[str] = []

    def __call__(self, event: jobq.Event) -> None:
        self.threads.append(threading.current_thread().name)
        self.called.set()
        assert self.may_end.wait(PATIENCE)


@pytest.fixture
def slow() -> Iterator[Slow]:
    """A slow listener, which is let go after the test."""
    found = Slow()
    yield found
    found.may_end.set()


@pytest.fixture
def parts(jobs: jobq.JobQueue) -> Iterator[Parts]:
    """The parts of a runner that is not started."""
    describe: Any = None
    found = Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)
    yield found
    found.herald.stop()


def test_what_is_told_runs_on_its_thread(jobs: jobq.JobQueue, parts: Parts, slow: Slow) -> None:
    """The teller returns at once, and the listener is called soon."""
    jobs.bus.subscribe(jobq.HealthChanged, slow)
    parts.herald.start()
    parts.herald.tell(EVENT)

    assert slow.called.wait(PATIENCE)
    assert slow.threads == ["jobq-herald"]
    slow.may_end.set()


def test_without_its_thread_it_tells_on_the_spot(jobs: jobq.JobQueue, parts: Parts) -> None:
    """In a drain under a fake clock there is nobody else."""
    told: list[jobq.Event] = []
    jobs.bus.subscribe(jobq.HealthChanged, told.append)
    parts.herald.tell(EVENT)

    assert told == [EVENT]


def test_its_end_tells_what_is_left(jobs: jobq.JobQueue, parts: Parts) -> None:
    """What the last steps of a stop post is told before the thread is gone."""
    told: list[jobq.Event] = []
    parts.herald.start()
    jobs.bus.subscribe(jobq.HealthChanged, told.append)
    jobs.bus.post(EVENT)
    parts.herald.stop()

    assert told == [EVENT]


def test_a_slow_listener_does_not_stop_the_heart(
    open_real: Open, changes: Changes, slow: Slow, monkeypatch: pytest.MonkeyPatch, errors: Any
) -> None:
    """A beat that failed is told by somebody else: the next beats come while the listener still runs."""
    jobs = open_real(lease=0.3)
    failing = [jobq.StoreFull("f", "disk full")]
    beat = jobs.store.beat_runner

    def fail_once(row: object) -> None:
        if failing:
            raise failing.pop()
        beat(row)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs.store, "beat_runner", fail_once)
    with jobs.bus.subscribe(jobq.HealthChanged, slow), jobq.Runner(jobs) as runner:
        assert slow.called.wait(PATIENCE)
        before = runner.heartbeat.last_good or 0.0
        changes.wait_for(lambda: (runner.heartbeat.last_good or 0.0) > before + 0.15)
        assert not slow.may_end.is_set()
        slow.may_end.set()
    # By the herald, unless a worker came by first.
    assert "jobq-heartbeat" not in slow.threads
    assert errors.take() == ["jobq.store.failed"]


def test_what_the_overseer_settles_is_told_by_the_herald(open_real: Open, slow: Slow) -> None:
    """A job that goes back from a slow hand has its event told soon, and not on the overseer's thread."""
    jobs = open_real(hand=32)
    stop, entered = threading.Event(), threading.Event()

    @jobs.job
    def step(payload: str) -> None:
        if payload == "block":
            entered.set()
            assert stop.wait(PATIENCE)

    def listen(event: jobq.JobStateChanged) -> None:
        if entered.is_set() and event.state is jobq.JobState.QUEUED and event.previous is jobq.JobState.RUNNING:
            slow(event)

    jobs.enqueue_many([jobq.NewJob("step", "quick") for _ in range(200)])
    jobs.enqueue("step", "block")
    jobs.enqueue_many([jobq.NewJob("step", "quick") for _ in range(20)])
    with jobs.bus.subscribe(jobq.JobStateChanged, listen), jobq.Runner(jobs, workers={"default": 1}):
        assert slow.called.wait(PATIENCE)
        slow.may_end.set()
        stop.set()
    assert "jobq-overseer" not in slow.threads
