"""Gates and their registry."""

import logging
import threading
from typing import Any

import pytest

from jobq.errors import ArgumentError, ConfigError
from jobq.gate import Gate, Gates, Permit
from tests.interrupts import strikes

PATIENCE = 10.0


@pytest.mark.parametrize(("asked", "permits"), [(3, 3), (1, 1), (0, 1), (-5, 1)])
def test_permits_below_one_become_one(asked: int, permits: int) -> None:
    """A gate always lets somebody pass."""
    gate = Gate("llm", asked)

    assert (gate.permits, gate.free) == (permits, permits)


def test_try_acquire_takes_what_is_there() -> None:
    """Permits are handed out until none is left, and come back by release."""
    gate = Gate("llm", 2)

    assert [gate.try_acquire() for _ in range(3)] == [True, True, False]
    assert gate.free == 0
    gate.release()
    assert gate.free == 1
    assert gate.try_acquire()


def test_acquire_holds_a_permit_inside_the_block() -> None:
    """The block holds one permit and gives it back, also when it raises."""
    gate = Gate("llm", 1)

    def use() -> None:
        with gate.acquire():
            raise KeyError(gate.free)

    with pytest.raises(KeyError, match="0"):
        use()
    assert gate.free == 1


def test_acquire_waits_for_a_permit() -> None:
    """A block that found no permit begins when one comes back."""
    gate = Gate("llm", 1)
    assert gate.try_acquire()
    trying, inside = threading.Event(), threading.Event()

    def enter() -> None:
        trying.set()
        with gate.acquire():
            inside.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    assert trying.wait(PATIENCE)
    assert not inside.is_set()
    gate.release()

    assert inside.wait(PATIENCE)
    thread.join(PATIENCE)
    assert gate.free == 1


def test_never_more_inside_than_permits() -> None:
    """Threads that storm a gate are never more inside at once than it has permits."""
    gate = Gate("llm", 2)
    barrier = threading.Barrier(8)
    lock = threading.Lock()
    inside, most, passed = 0, 0, 0

    def storm() -> None:
        nonlocal inside, most, passed
        barrier.wait(PATIENCE)
        for _ in range(200):
            with gate.acquire():
                with lock:
                    inside += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1
                    passed += 1

    threads = [threading.Thread(target=storm, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert passed == 1_600
    assert most <= 2
    assert gate.free == 2


def test_release_without_a_permit_does_nothing() -> None:
    """No release makes more permits than the gate has, nor tells anybody."""
    gate = Gate("llm", 1)
    calls: list[int] = []
    gate.on_release(lambda: calls.append(1))

    gate.release()

    assert (gate.free, calls) == (1, [])


def test_on_release_calls_back_until_unsubscribed() -> None:
    """Each release calls back with the permit free already; after the end of the subscription none does."""
    gate = Gate("llm", 1)
    seen: list[int] = []
    end = gate.on_release(lambda: seen.append(gate.free))

    with gate.acquire():
        pass
    end()
    end()
    with gate.acquire():
        pass

    assert seen == [1]


def test_on_release_ends_one_subscription_of_two() -> None:
    """A callback that is subscribed twice is called once after one of the two ended."""
    gate = Gate("llm", 1)
    calls: list[int] = []

    def callback() -> None:
        calls.append(1)

    gate.on_release(callback)
    gate.on_release(callback)()
    with gate.acquire():
        pass

    assert calls == [1]


def test_on_release_callback_may_use_the_gate() -> None:
    """No lock is held while callbacks run."""
    gate = Gate("llm", 1)
    taken: list[bool] = []
    gate.on_release(lambda: taken.append(gate.try_acquire()))

    with gate.acquire():
        pass

    assert taken == [True]


def test_on_release_callback_that_raises_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """The permit is back and the other callbacks are called; the log does not show what the error says."""
    gate = Gate("llm", 1)
    calls: list[int] = []

    def broken() -> None:
        raise RuntimeError("hunter2")

    gate.on_release(broken)
    gate.on_release(lambda: calls.append(1))
    with caplog.at_level(logging.ERROR, logger="jobq"), gate.acquire():
        pass

    assert (gate.free, calls) == (1, [1])
    assert "jobq.callback.failed" in caplog.text
    assert "hunter2" not in caplog.text
    caplog.clear()


def test_put_back_returns_a_permit_in_silence() -> None:
    """A permit that was taken on the chance of work comes back without a release callback, and never one too many."""
    gate, permit, calls = Gate("llm", 1), Permit(), []
    gate.on_release(lambda: calls.append(1))
    assert gate.take(permit)

    gate.put_back(permit)
    gate.put_back(permit)

    assert (gate.free, calls) == (1, [])


def test_take_and_end_of_a_permit_are_idempotent() -> None:
    """Taken twice a permit is one, and ended twice it calls back once."""
    gate, permit, calls = Gate("llm", 2), Permit(), []
    gate.on_release(lambda: calls.append(1))

    assert [gate.take(permit), gate.take(permit), gate.free] == [True, True, 1]
    gate.end(permit)
    gate.end(permit)

    assert (gate.free, calls) == (2, [1])


def test_release_gives_back_only_what_try_acquire_took() -> None:
    """A release too many takes no permit from a block that still holds it."""
    gate = Gate("llm", 1)
    with gate.acquire():
        gate.release()
        assert gate.free == 0


def test_call_when_free_calls_once_however_it_came_free() -> None:
    """Who found no permit hears of the next one, though nobody used it; with a permit free it is called at once."""
    gate, permit, calls = Gate("llm", 1), Permit(), []

    def callback() -> None:
        calls.append(gate.free)

    assert gate.take(permit)
    gate.call_when_free(callback)
    gate.call_when_free(callback)
    gate.put_back(Permit())
    assert calls == []
    gate.put_back(permit)
    gate.put_back(permit)
    assert calls == [1]
    gate.call_when_free(callback)
    assert calls == [1, 1]


def test_interrupted_at_any_moment_a_block_holds_no_permit() -> None:
    """Wherever Ctrl-C strikes, the permit is back and the lock is free."""
    gate, struck = Gate("llm", 1), 0

    def use() -> None:
        with gate.acquire():
            pass

    for _ in strikes(use):
        struck += 1
        assert gate.free == 1
        use()

    assert struck > 20


def test_interrupted_at_any_moment_a_refused_try_takes_nothing() -> None:
    """A try that raises has taken nothing; one that succeeded is undone by one release."""
    gate, struck = Gate("llm", 1), 0
    for _ in strikes(gate.try_acquire):
        struck += 1
        assert gate.free == 1

    assert struck > 5
    gate.release()
    assert gate.free == 1


def test_interrupted_release_leaves_the_gate_usable() -> None:
    """A release that was struck either has happened or can be repeated; never more, never less."""
    gate = Gate("llm", 2)
    assert gate.try_acquire()

    def release() -> None:
        assert gate.try_acquire()
        gate.release()

    for _ in strikes(release, part="gate"):
        while gate.free < 1:
            gate.release()
        assert gate.free == 1
    gate.release()
    assert gate.free == 2


def test_a_waiter_that_gives_up_passes_its_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two threads that wait, the second gets the permit although the first was called and left."""
    monkeypatch.setattr("jobq.gate.LONGEST_WAIT", 10 * PATIENCE)
    gate, held, first, entered = Gate("llm", 1), Permit(), Permit(), threading.Event()
    assert gate.take(held)
    gate._waiting[first] = None

    def enter() -> None:
        with gate.acquire():
            entered.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    while len(gate._waiting) < 2:
        pass
    gate.put_back(held)
    assert first.called.wait(PATIENCE)
    gate._leave(first)

    assert entered.wait(PATIENCE)
    thread.join(PATIENCE)


def test_gates_make_a_gate_once() -> None:
    """A name leads to one gate, whether or not the number is said again."""
    gates = Gates()
    gate = gates.get("llm", 3)

    assert gates.get("llm") is gate
    assert gates.get("llm", 3) is gate
    assert gates.get("other") is not gate


def test_gates_first_use_without_a_number_makes_one_permit() -> None:
    """A gate that nobody sized lets one pass at a time, and a number below one says the same."""
    gates = Gates()

    assert gates.get("llm").permits == 1
    assert gates.get("llm", 0) is gates.get("llm")


def test_gates_refuse_another_number() -> None:
    """Two numbers for one name contradict each other; the gate keeps the first."""
    gates = Gates()
    gates.get("llm", 3)

    with pytest.raises(ConfigError, match="3 permits, not 4"):
        gates.get("llm", 4)
    assert gates.get("llm").permits == 3


@pytest.mark.parametrize(
    ("name", "permits", "argument"),
    [("", 1, "name"), (None, 1, "name"), ("llm", True, "permits"), ("llm", 1.5, "permits"), ("llm", "2", "permits")],
)
def test_gates_refuse_malformed_arguments(name: Any, permits: Any, argument: str) -> None:
    """A name is text and a number is whole."""
    with pytest.raises(ArgumentError) as caught:
        Gates().get(name, permits)

    assert caught.value.argument == argument


def test_gates_agree_between_threads() -> None:
    """Threads that ask for a new name at once get the same gate."""
    gates = Gates()
    barrier = threading.Barrier(8)
    found: list[Gate] = []

    def ask() -> None:
        barrier.wait(PATIENCE)
        found.append(gates.get("llm", 2))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_after_fork_frees_every_permit_and_lock() -> None:
    """What threads of the parent held, permits or the lock itself, does not bind the child."""
    gates = Gates()
    gate = gates.get("llm", 2)
    assert gate.try_acquire()
    gate._lock.acquire()

    gates.after_fork()

    assert gate.free == 2
    assert gate.try_acquire()
    assert gates.get("llm") is gate
