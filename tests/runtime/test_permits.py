"""Permits of gates around a claim."""

from typing import Any

import pytest

import jobq
from jobq.gate import Gates
from jobq.runtime.hand import Hand
from jobq.runtime.parts import Parts
from jobq.runtime.permits import Permits


@pytest.fixture
def parts(jobs: jobq.JobQueue) -> Parts:
    """The parts of a runner with a gated kind."""
    describe: Any = None
    jobs.gate("llm", permits=3)
    jobs.job(name="ask", gate="llm")(lambda payload: None)
    return Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)


def test_unused_permits_are_back_after_the_claim(jobs: jobq.JobQueue, parts: Parts) -> None:
    """A claim for two threads takes two permits and keeps those of the jobs it brought."""
    jobs.enqueue("ask")
    _, claims = parts.exchange.settle_and_claim((), workers=("a", "b"), queues=None, hand=1)

    assert len(claims) == 1
    assert jobs.gate("llm").free == 2


def test_a_claim_that_fails_keeps_no_permit(
    jobs: jobq.JobQueue, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the store raises, the permits are back."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise jobq.StoreBusy("f", "locked")

    monkeypatch.setattr(jobs.store, "settle_and_claim", fail)
    with pytest.raises(jobq.StoreBusy):
        parts.exchange.settle_and_claim((), workers=("a",), queues=None, hand=1)
    assert jobs.gate("llm").free == 3


def test_putting_back_calls_nobody(jobs: jobq.JobQueue, parts: Parts) -> None:
    """Two runners that call each other back with every unused permit would never rest."""
    calls = []
    jobs.gate("llm").on_release(lambda: calls.append(1))
    parts.exchange.settle_and_claim((), workers=("a", "b"), queues=None, hand=1)

    assert calls == []


def test_an_unstarted_job_that_goes_back_returns_its_permit(jobs: jobq.JobQueue, parts: Parts) -> None:
    """A stop between claim and start leaves no permit behind."""
    jobs.enqueue("ask")
    _, claims = parts.exchange.settle_and_claim((), workers=("a",), queues=None, hand=1)
    assert jobs.gate("llm").free == 2
    parts.exchange.settle(parts.exchange.take_back(Hand(claims, claimed_at=0.0)))

    assert jobs.gate("llm").free == 3
    assert jobs.find()[0].state == "queued"


def test_a_refused_permit_is_looked_for_once() -> None:
    """After a claim without a permit, its coming free is told once."""
    gates = Gates()
    permits = Permits(gates, lambda: {"ask": "llm"})
    gate = gates.get("llm")
    assert not permits.came_free()
    gate.try_acquire()
    assert permits.take(2) == {"llm": 0}
    assert not permits.came_free()
    gate.put_back()
    assert [permits.came_free(), permits.came_free()] == [True, False]
