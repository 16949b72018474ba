"""The overseer: hands that take too long, run budgets, stuck handlers."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import jobq
from jobq.model.lease import ClaimRequest
from jobq.runtime.execute import EVERYTHING
from jobq.runtime.hand import Hand
from jobq.runtime.parts import Parts
from jobq.testing import FakeClock

PATIENCE = 10.0


@pytest.fixture
def parts(jobs: jobq.JobQueue) -> Parts:
    """The parts of a runner that is not started."""
    describe: Any = None
    return Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)


def take(jobs: jobq.JobQueue, parts: Parts, count: int) -> Hand:
    """Claim so many jobs for one thread, as a worker does."""
    parts.exchange.observe()
    request = ClaimRequest(("w",), 60.0, jobs.handlers.kinds(), None, count)
    jobs.register()
    hand = Hand(jobs.store.claim(request, durable=False), claimed_at=jobs.clock.monotonic())
    parts.held.add(hand)
    parts.overseer.watch(hand)
    return hand


def states(jobs: jobq.JobQueue) -> list[tuple[str, int]]:
    """Return state and attempts of each job by id."""
    return [(job.state.value, job.attempts) for job in reversed(jobs.find())]


def test_an_old_hand_is_divided(jobs: jobq.JobQueue, parts: Parts, clock: FakeClock) -> None:
    """When a handler takes too long, what is over is settled and the unstarted jobs are free for others, uncounted."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue_many([jobq.NewJob("note") for _ in range(4)])
    hand = take(jobs, parts, 4)
    runs = parts.runs(EVERYTHING)
    first = hand.start_next(runs.begin)
    assert first is not None
    hand.finish(first, runs.carry_out(first))
    assert hand.start_next(runs.begin) is not None

    clock.advance(0.009)
    parts.overseer.tick()
    assert [state for state, _ in states(jobs)] == ["running"] * 4

    clock.advance(0.002)
    parts.overseer.tick()
    assert states(jobs) == [("succeeded", 1), ("running", 1), ("queued", 0), ("queued", 0)]
    assert len(parts.held) == 1


def test_a_hand_is_recalled_by_a_pause_of_its_queue(jobs: jobq.JobQueue, parts: Parts) -> None:
    """The unstarted jobs of a paused queue go back at once; other queues' hands stay."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    take(jobs, parts, 1)
    parts.overseer.recall(queue="other")
    parts.overseer.tick()
    assert states(jobs) == [("running", 1)]

    parts.overseer.recall(queue="default")
    parts.overseer.tick()
    assert states(jobs) == [("queued", 0)]


def test_a_hand_is_recalled_by_a_pause_of_a_kind_in_it(jobs: jobq.JobQueue, parts: Parts) -> None:
    """The unstarted jobs go back at once; hands without a job of that kind stay."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    take(jobs, parts, 1)
    parts.overseer.recall(kind="other")
    parts.overseer.tick()
    assert states(jobs) == [("running", 1)]

    parts.overseer.recall(kind="note")
    parts.overseer.tick()
    assert states(jobs) == [("queued", 0)]


def test_a_cancel_reaches_an_unstarted_job(jobs: jobq.JobQueue, parts: Parts) -> None:
    """A job that waits in a hand never starts once it is cancelled; the others in it go back uncounted."""
    jobs.job(name="note")(lambda payload: None)
    made = jobs.enqueue_many([jobq.NewJob("note") for _ in range(2)])
    hand = take(jobs, parts, 2)

    assert jobs.cancel(made[1].id) is True
    assert hand.start_next(parts.runs(EVERYTHING).begin) is None
    parts.overseer.tick()
    assert states(jobs) == [("queued", 0), ("cancelled", 1)]
    assert not jobs.live


def test_a_settle_that_failed_is_tried_again(
    jobs: jobq.JobQueue, parts: Parts, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the overseer took and could not write down is not lost."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    take(jobs, parts, 1)
    clock.advance(1)
    with monkeypatch.context() as patch:
        patch.setattr(jobs.store, "settle", fail_busy)
        with pytest.raises(jobq.StoreBusy):
            parts.overseer.tick()
    parts.overseer.tick()

    assert states(jobs) == [("queued", 0)]


def fail_busy(settlements: object, *, durable: bool) -> None:
    """Stand in for a store that somebody else keeps busy."""
    raise jobq.StoreBusy("f", "locked")


@pytest.fixture
def stuck_events(jobs: jobq.JobQueue) -> Iterator[list[jobq.JobStuck]]:
    """The reports of stuck handlers."""
    found: list[jobq.JobStuck] = []
    with jobs.bus.subscribe(jobq.JobStuck, found.append):
        yield found


def test_a_budget_that_is_over_is_told_and_a_stuck_handler_reported_once(
    jobs: jobq.JobQueue, parts: Parts, clock: FakeClock, stuck_events: list[jobq.JobStuck]
) -> None:
    """At the budget's end the callbacks run; five seconds later one report says that the handler goes on."""
    called = threading.Event()
    jobs.job(name="slow", timeout=10)(lambda payload: None)
    made = jobs.enqueue("slow")
    hand = take(jobs, parts, 1)
    job = hand.start_next(parts.runs(EVERYTHING).begin)
    assert job is not None
    job.cancel_token.on_cancel(called.set)

    clock.advance(10)
    parts.overseer.tick()
    assert called.wait(PATIENCE)
    assert job.cancel_token.reason is jobq.CancelReason.TIMEOUT
    clock.advance(4.9)
    parts.overseer.tick()
    assert stuck_events == []
    clock.advance(0.1)
    parts.overseer.tick()
    parts.overseer.tick()
    assert [(event.job_id, event.kind, event.ran) for event in stuck_events] == [(made.id, "slow", 15.0)]
    assert parts.overseer.stuck == (made.id,)

    hand.finish(job, parts.runs(EVERYTHING).carry_out(job))
    parts.overseer.tick()
    assert parts.overseer.stuck == ()


def test_it_sleeps_unless_there_is_something_to_look_after(jobs: jobq.JobQueue, parts: Parts) -> None:
    """Idle it sleeps for a minute; an open hand makes it look every ten milliseconds."""
    jobs.job(name="note")(lambda payload: None)
    assert parts.overseer.pause() == 60
    jobs.enqueue("note")
    hand = take(jobs, parts, 1)
    assert parts.overseer.pause() == 0.010
    parts.overseer.forget(hand)
    assert parts.overseer.pause() == 0.5


def test_short_jobs_wake_it_once(jobs: jobq.JobQueue, parts: Parts) -> None:
    """It stays awake for one round after a claim, so that a stream of short jobs does not wake it with each."""
    overseer = parts.overseer
    overseer.on_claim()

    assert [overseer.pause(), overseer.pause()] == [0.5, 60]
