"""A stop that is interrupted, or races with a start: it reaches its end, and no thread is left."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.database import LiveRuns
from jobq.runtime.held import Held
from jobq.runtime.shutdown import Phase, Shutdown
from jobq.service import Service
from tests.interrupts import strikes
from tests.runtime.conftest import PATIENCE

Open = Callable[..., jobq.JobQueue]


class Silent:
    """An exchange with nothing to settle."""

    def settle(self, ended: object) -> None:
        """Do nothing."""

    def announce(self) -> None:
        """Do nothing."""


def shutdown(finish: Callable[[], None]) -> Shutdown:
    """Return the stop of a runner without threads."""
    exchange: Any = Silent()
    held = Held(LiveRuns())
    return Shutdown(pools=(), workers=(), held=held, exchange=exchange, recall=lambda: None, finish=finish)


def test_a_stop_interrupted_at_any_moment_is_ended_by_the_next() -> None:
    """Wherever Ctrl-C strikes, a second stop comes to its end, and the services were stopped."""
    finished: list[int] = []
    stops: list[Shutdown] = []

    def stop() -> None:
        finished.clear()
        stops.clear()
        stops.append(shutdown(lambda: finished.append(1)))
        stops[-1].begin(0.0)
        stops[-1].wait()

    struck = 0
    for _ in strikes(stop, part="runtime/shutdown"):
        struck += 1
        if not stops:
            continue
        stops[-1].begin(0.0)
        thread = threading.Thread(target=stops[-1].wait, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert stops[-1].over
        assert finished

    assert struck > 30


def test_an_interrupt_in_the_last_step_ends_it_all_the_same() -> None:
    """The step is taken once more, then it is over, and Ctrl-C reaches whoever pressed it."""
    calls: list[int] = []

    def finish() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    stop = shutdown(finish)
    stop.begin(0.0)
    with pytest.raises(KeyboardInterrupt):
        stop.advance()

    assert (stop.phase, len(calls)) == (Phase.OVER, 2)


def test_a_bug_in_the_last_step_does_not_go_on_for_ever() -> None:
    """A step that fails twice is over as well: the runner can be started again."""

    def finish() -> None:
        raise KeyError("bug")

    stop = shutdown(finish)
    stop.begin(0.0)
    with pytest.raises(KeyError):
        stop.wait()

    assert stop.over


def test_waiting_ends_when_another_thread_has_stopped_it() -> None:
    """Who only waits is woken, or has the answer that it goes on."""
    stop = shutdown(lambda: None)
    assert not stop.wait_until_over(0.0)
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(stop.wait_until_over(PATIENCE)))
    thread.start()
    stop.begin(0.0)
    stop.wait()
    thread.join(PATIENCE)

    assert answers == [True]


def test_a_real_stop_interrupted_anywhere_leaves_no_thread(open_real: Open) -> None:
    """Ctrl-C in the stop of a started runner: the next stop ends every thread, and it starts again."""
    runner = jobq.Runner(open_real(), workers={"default": 1})

    def stop() -> None:
        runner.start()
        runner.stop(0)

    for _ in strikes(stop, part="runtime/crew", every=3):
        runner.stop(0)
        assert not runner.health().running
        assert not [service.name for service in runner._parts.services if service.alive]


@pytest.mark.parametrize("who", ["another", "same"])
def test_a_stop_in_the_middle_of_a_start_leaves_no_thread(
    open_real: Open, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """Asked for by another thread, or by a signal handler on the starting one, the stop stops what was started."""
    runner = jobq.Runner(open_real())
    stopping: list[threading.Thread] = []
    overseer = runner._parts.overseer

    def start(**options: float) -> None:
        if who == "same":
            runner.stop(0)
        else:
            stopping.append(threading.Thread(target=runner.stop, args=(0,)))
            stopping[0].start()
            while runner._crew is not None and runner._crew.shutdown.phase is Phase.RUNNING:
                pass
        Service.start(overseer, **options)

    monkeypatch.setattr(overseer, "start", start)
    runner.start()
    for thread in stopping:
        thread.join(PATIENCE)

    assert not runner.health().running
    assert not [service.name for service in runner._parts.services if service.alive]
