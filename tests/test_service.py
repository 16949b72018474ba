"""The loop of every service: it survives what a tick raises, and a stop that was not waited out."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobq.clock import SystemClock
from jobq.service import Service
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
