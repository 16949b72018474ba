"""The loop of every service: it survives what a tick raises, and a stop that was not waited out."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.clock import SystemClock
from jobq.service import Service, together
from jobq.trouble import Trouble
from tests.conftest import ErrorLog
from tests.interrupts import strikes
from tests.runtime.conftest import PATIENCE


class Probe(Service):
    """A service whose ticks the test decides."""

    name = "probe"

    def __init__(self, on_tick: Callable[[], object]) -> None:
        super().__init__(clock=SystemClock(), trouble=Trouble(lambda event: None, on_fatal=lambda: None))
        self.ticks = threading.Semaphore(0)
        self._on_tick = on_tick

    def tick(self) -> None:
        """Do as told, and count."""
        self.ticks.release()
        self._on_tick()

    def pause(self) -> float:
        """Wait for a poke."""
        return 60.0

    def ticked(self) -> bool:
        """Whether a tick that was not asked for yet came in time."""
        return self.ticks.acquire(timeout=PATIENCE)


@pytest.fixture
def quiet() -> Iterator[Probe]:
    """A started service that does nothing."""
    probe = Probe(lambda: None)
    probe.start()
    yield probe
    probe.stop()


def test_a_poke_brings_a_tick(quiet: Probe) -> None:
    """The first tick comes by itself, each other one for a poke."""
    assert quiet.ticked()
    for _ in range(5):
        quiet.poke()
        assert quiet.ticked()


def test_an_interrupted_poke_leaves_it_usable(quiet: Probe) -> None:
    """Wherever Ctrl-C strikes who pokes, the loop goes on and the next poke brings a tick."""
    assert quiet.ticked()
    for _ in strikes(quiet.poke):
        while quiet.ticks.acquire(timeout=0.01):
            pass
        quiet.poke()
        assert quiet.ticked()


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_whatever_a_tick_raises_the_loop_goes_on(error: Any, errors: ErrorLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, and the next tick comes."""
    monkeypatch.setattr("jobq.service.FIRST_PAUSE", 0.001)
    raised = [error]

    def raise_once() -> None:
        if raised:
            raise raised.pop()

    probe = Probe(raise_once)
    probe.start()
    assert probe.ticked()
    assert probe.ticked()
    probe.stop()
    assert errors.take() == ["jobq.loop.crashed"]


def test_it_starts_again_while_the_last_tick_of_before_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that a stop did not wait for neither keeps a new one from starting nor lives on beside it."""
    monkeypatch.setattr("jobq.service.PATIENCE", 0.01)
    go_on = threading.Event()
    probe = Probe(lambda: go_on.wait(PATIENCE))
    probe.start()
    assert probe.ticked()
    old = probe.thread
    probe.stop()
    probe.start()
    assert probe.ticked()
    go_on.set()
    assert old is not None
    old.join(PATIENCE)

    assert not old.is_alive()
    assert probe.alive
    monkeypatch.undo()
    probe.stop()
    assert not probe.alive


def test_a_stop_beside_a_start_never_joins_what_was_not_started() -> None:
    """Before its thread is up there is nothing to wait for."""
    probe = Probe(lambda: None)
    probe.thread = threading.Thread(target=lambda: None)
    probe.stop()
    assert not probe.alive


SECONDS, NOW = st.floats(0.0, 100.0), st.floats(0.0, 1e7)


@given(SECONDS, NOW)
def test_a_wait_is_cut_by_less_than_a_second_and_never_longer(seconds: float, now: float) -> None:
    """One of less than a second is left as it is, and none is cut to nothing: that would be a tick too many."""
    wait = together(seconds, now)

    assert wait == seconds if seconds < 1 else max(0.009, seconds - 1.001) < wait <= seconds + 1e-6


@given(NOW, st.floats(0.05, 0.95))
def test_idle_services_wake_at_the_same_moment(now: float, later: float) -> None:
    """After one round each, two that tick every second go together, whenever they were started."""
    ends = []
    for began in (now, now + later):
        at = began
        for _ in range(3):
            at += together(1.0, at)
        ends.append(at % 1.0)

    assert min(abs(ends[0] - ends[1]), 1 - abs(ends[0] - ends[1])) < 0.011
