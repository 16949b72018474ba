"""The heartbeat: one statement for all leases, and what its answer means."""

from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.model.lease import Claim
from jobq.runtime.context import RunningJob
from jobq.runtime.execute import EVERYTHING
from jobq.runtime.hand import Hand
from jobq.runtime.runner import Runner
from jobq.testing import FakeClock


class Held:
    """A runner that has claimed one job and started its handler, by hand."""

    def __init__(self, jobs: jobq.JobQueue) -> None:
        self.jobs = jobs
        self.runner = Runner(jobs)
        jobs.job(name="slow")(lambda payload: None)
        self.id = jobs.enqueue("slow").id
        parts = self.runner._parts
        claims: list[Claim] = []
        parts.exchange.settle_and_claim((), claims, workers=("w",), queues=None, hand=1)
        hand = Hand(claims, claimed_at=jobs.clock.monotonic())
        parts.held.add(hand)
        job = hand.start_next(parts.runs(EVERYTHING).begin)
        assert job is not None
        self.run: RunningJob = job

    @property
    def reason(self) -> jobq.CancelReason | None:
        """Why the handler should stop."""
        return self.run.cancel_token.reason


@pytest.fixture
def held(jobs: jobq.JobQueue) -> Held:
    """A held job."""
    return Held(jobs)


def fail_with(error: Exception) -> Callable[..., Any]:
    """Return a verb that raises."""

    def verb(*args: Any, **kwargs: Any) -> Any:
        raise error

    return verb


def test_a_beat_renews_the_lease_and_the_row(held: Held, clock: FakeClock) -> None:
    """The lease ends a full length after the beat, and the runner's row says when."""
    clock.advance(50)
    held.runner.heartbeat.tick()
    job = held.jobs.get(held.id)

    assert job.lease_until is not None
    assert (job.lease_until - clock.now()).total_seconds() == 60
    assert [row.beat_at for row in held.jobs.store.runners()] == [clock.now()]


def test_a_superseded_beat_sets_lease_lost(held: Held, clock: FakeClock, caplog: Any) -> None:
    """When another claim holds the job, the handler is told that whatever it does is void."""
    clock.advance(61)
    held.jobs.lease(worker="other")
    held.runner.heartbeat.tick()

    assert held.reason is jobq.CancelReason.LEASE_LOST


def test_a_cancel_comes_with_the_beat(held: Held) -> None:
    """A request that nobody told this process about is in the answer."""
    held.jobs.live.clear()
    held.jobs.cancel(held.id)
    assert held.reason is None
    held.runner.heartbeat.tick()

    assert held.reason is jobq.CancelReason.USER


def test_b05_failing_beats_end_nothing(held: Held, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy, an I/O error and a bug each cost one beat; the later ones are written and the job is not reclaimed."""
    heartbeat = held.runner.heartbeat
    for error in (jobq.StoreBusy("f", "locked"), OSError("I/O"), TypeError("bug")):
        clock.advance(15)
        with monkeypatch.context() as patch:
            patch.setattr(held.jobs.store, "extend", fail_with(error))
            with pytest.raises(type(error)):
                heartbeat.tick()
    clock.advance(14)
    assert held.reason is None
    heartbeat.tick()
    held.runner.maintenance.tick()

    job = held.jobs.get(held.id)
    assert (job.state, job.attempts) == ("running", 1)
    assert heartbeat.may_claim


def test_b04_a_lease_without_a_beat_counts_as_lost(
    held: Held, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """After a full lease of silence the handler is told, nothing is claimed, and the next written beat ends that."""
    monkeypatch.setattr(held.jobs.store, "extend", fail_with(jobq.StoreBusy("f", "locked")))
    clock.advance(59)
    with pytest.raises(jobq.StoreBusy):
        held.runner.heartbeat.tick()
    assert held.reason is None
    clock.advance(1)
    with pytest.raises(jobq.StoreBusy):
        held.runner.heartbeat.tick()
    assert held.reason is jobq.CancelReason.LEASE_LOST
    assert not held.runner.heartbeat.may_claim

    monkeypatch.undo()
    held.runner.heartbeat.tick()
    assert held.runner.heartbeat.may_claim


def test_a_lapsed_lease_is_renewed_while_the_token_stands(held: Held, clock: FakeClock) -> None:
    """The token is the fence, not the clock: an owner that comes late keeps its job."""
    clock.advance("10m")
    held.runner.heartbeat.tick()

    assert held.reason is None
    assert held.jobs.lease(worker="other") == []
