"""No fork happens while another thread is opening a database."""

import os
import threading

import pytest

from jobq.errors import ForkedHandle
from jobq.store.sqlite.building import Building
from tests.store.sqlite.enginekit import join, start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def test_fork_waits_for_an_opening() -> None:
    """It goes on when the opening is done, and others may open again afterwards."""
    building = Building()
    opening, may_end, forked = threading.Event(), threading.Event(), threading.Event()

    def open_slowly() -> None:
        with building.opening("a.db"):
            opening.set()
            assert may_end.wait(10)

    def prepare_fork() -> None:
        assert opening.wait(10)
        building.before_fork()
        forked.set()
        building.after_fork_in_parent()

    opener, forker = start(open_slowly), start(prepare_fork)
    assert opening.wait(10)
    assert not forked.wait(0.05)
    may_end.set()
    join(opener, forker)
    assert forked.is_set()
    with building.opening("a.db"):
        pass


def test_child_of_a_fork_that_could_not_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of SQLite's mutexes may be locked there for ever."""
    monkeypatch.setattr("jobq.store.sqlite.building._QUIET_WITHIN", 0.01)
    building = Building()
    entered, may_end = threading.Event(), threading.Event()

    def open_slowly() -> None:
        with building.opening("a.db"):
            entered.set()
            assert may_end.wait(10)

    opener = start(open_slowly)
    assert entered.wait(10)
    building.before_fork()
    building.after_fork_in_child()
    with pytest.raises(ForkedHandle), building.opening("a.db"):
        pass
    may_end.set()
    join(opener)


def test_opening_that_fails_holds_up_no_fork() -> None:
    """Whatever it raised, it is over."""
    building = Building()
    with pytest.raises(LookupError), building.opening("a.db"):
        raise LookupError
    building.before_fork()
    building.after_fork_in_child()
    with building.opening("a.db"):
        pass
