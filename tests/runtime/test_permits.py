"""Permits of gates around a claim."""

from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.gate import Gates, Permit
from jobq.model.lease import Claim
from jobq.runtime.hand import Hand
from jobq.runtime.parts import Parts
from jobq.runtime.permits import Permits, Taken
from tests.runtime.test_hand import claim as one_claim


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
    claims: list[Claim] = []
    parts.exchange.settle_and_claim((), claims, workers=("a", "b"), queues=None, hand=1)

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
        parts.exchange.settle_and_claim((), [], workers=("a",), queues=None, hand=1)
    assert jobs.gate("llm").free == 3


def test_putting_back_calls_nobody(jobs: jobq.JobQueue, parts: Parts) -> None:
    """Two runners that call each other back with every unused permit would never rest."""
    calls = []
    jobs.gate("llm").on_release(lambda: calls.append(1))
    parts.exchange.settle_and_claim((), [], workers=("a", "b"), queues=None, hand=1)

    assert calls == []


def test_an_unstarted_job_that_goes_back_returns_its_permit(jobs: jobq.JobQueue, parts: Parts) -> None:
    """A stop between claim and start leaves no permit behind."""
    jobs.enqueue("ask")
    claims: list[Claim] = []
    parts.exchange.settle_and_claim((), claims, workers=("a",), queues=None, hand=1)
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
    assert permits.take({}, 2) == {"llm": 0}
    assert not permits.came_free()
    gate.release()
    assert [permits.came_free(), permits.came_free()] == [True, False]


def test_a_claimed_job_has_a_permit_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one asked for finds the gate full, the second does not, for somebody gave one back in between."""
    gates = Gates()
    permits = Permits(gates, lambda: {"ask": "llm"})
    gate, held, take = gates.get("llm"), Permit(), gates.get("llm").take
    assert gate.take(held)

    def take_late(permit: Permit) -> bool:
        taken = take(permit)
        gate.put_back(held)
        return taken

    monkeypatch.setattr(gate, "take", take_late)
    taken: Taken = {}
    assert permits.take(taken, 2) == {"llm": 1}
    permits.settle(taken, [one_claim(1)._replace(kind="ask")])

    assert gate.free == 0


def test_a_claim_that_got_its_permits_forgets_nobody_who_did_not() -> None:
    """Another pool's claim in between does not take the wake-up from the one that was refused."""
    gates = Gates()
    permits = Permits(gates, lambda: {"ask": "llm"})
    gate, held = gates.get("llm"), Permit()
    assert gate.take(held)
    permits.take({}, 1)
    gate.put_back(held)
    taken: Taken = {}
    assert permits.take(taken, 1) == {"llm": 1}
    assert not permits.came_free()
    permits.settle(taken, ())

    assert permits.came_free()


def test_one_gate_that_came_free_leaves_the_others_to_be_told() -> None:
    """Each starved gate is told by itself."""
    gates = Gates()
    permits = Permits(gates, lambda: {"ask": "a", "tell": "b"})
    held = [Permit(), Permit()]
    for name, permit in zip("ab", held, strict=True):
        gates.get(name).take(permit)
    permits.take({}, 1)
    gates.get("a").put_back(held[0])
    assert [permits.came_free(), permits.came_free()] == [True, False]
    gates.get("b").put_back(held[1])
    assert permits.came_free()


def test_a_look_that_found_no_permit_is_told_as_well() -> None:
    """The watch that saw a gate closed looks again when a permit was put back without use."""
    gates = Gates()
    permits = Permits(gates, lambda: {"ask": "llm"})
    gate, held = gates.get("llm"), Permit()
    gate.take(held)
    assert permits.free() == {"llm": 0}
    gate.put_back(held)

    assert permits.came_free()


@pytest.fixture
def claim(parts: Parts) -> Callable[..., list[Claim]]:
    """Claims for so many threads, and counts what it was called back for."""

    def take(threads: int, on_permit: Callable[[], object]) -> list[Claim]:
        claims: list[Claim] = []
        workers = tuple(map(str, range(threads)))
        parts.exchange.settle_and_claim((), claims, workers=workers, queues=None, hand=1, on_permit=on_permit)
        return claims

    return take


def test_a_claim_without_a_permit_is_called_back_when_one_is_put_back(
    jobs: jobq.JobQueue, claim: Callable[..., list[Claim]]
) -> None:
    """Another pool that took the permits on a chance and did not use them wakes the one that starves, once."""
    gate, calls = jobs.gate("llm"), [0]
    held = [Permit() for _ in range(3)]
    assert all(map(gate.take, held))
    jobs.enqueue("ask")
    assert claim(1, lambda: calls.append(1)) == []
    assert calls == [0]
    gate.put_back(held[0])
    gate.put_back(held[1])

    assert calls == [0, 1]
    assert len(claim(1, lambda: calls.append(2))) == 1


def test_a_claim_that_put_permits_back_is_not_called_by_them(
    jobs: jobq.JobQueue, claim: Callable[..., list[Claim]]
) -> None:
    """A pool with more idle threads than permits and no work would wake itself for ever."""
    calls: list[int] = []
    assert claim(8, lambda: calls.append(1)) == []
    assert claim(1, lambda: calls.append(1)) == []

    assert calls == []
    assert jobs.gate("llm").free == 3
