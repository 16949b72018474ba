"""The fork hook: order, weak references, and one that raises."""

import gc
import os

import pytest

from jobq import fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


class Listener:
    """Notes what it is told."""

    def __init__(self, name: str, noted: list[str], *, fails: bool = False, first: bool = False) -> None:
        self.name = name
        self.noted = noted
        self.fails = fails
        fork.register(self, first=first)

    def before_fork(self) -> None:
        """Note the call."""
        self.noted.append(f"before {self.name}")
        if self.fails:
            raise LookupError(self.name)

    def after_fork_in_parent(self) -> None:
        """Note the call."""
        self.noted.append(f"parent {self.name}")

    def after_fork_in_child(self) -> None:
        """Note the call."""
        self.noted.append(f"child {self.name}")


def _fork(noted: list[str]) -> list[str]:
    """Fork, and return what was noted in the child."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, "|".join(noted).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return told.split("|")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_youngest_is_told_first_before_and_last_after() -> None:
    """What stands on top is quiet before its foundation, and the foundation is back first."""
    noted: list[str] = []
    keep = [Listener("foundation", noted), Listener("top", noted)]

    in_child = _fork(noted)

    assert in_child == ["before top", "before foundation", "child foundation", "child top"]
    assert noted == ["before top", "before foundation", "parent foundation", "parent top"]
    assert len(keep) == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_one_that_comes_first_is_told_before_the_youngest_and_after_the_oldest() -> None:
    """It keeps others from registering meanwhile, whenever it was registered itself."""
    noted: list[str] = []
    keep = [Listener("gate", noted, first=True), Listener("foundation", noted), Listener("top", noted)]

    assert _fork(noted)[0] == "before gate"
    assert noted == [
        *("before gate", "before top", "before foundation"),
        *("parent foundation", "parent top", "parent gate"),
    ]
    assert len(keep) == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_one_that_registers_during_a_fork_is_told_nothing_of_it() -> None:
    """Only who was told before the fork is told after it: nobody undoes what it never did."""
    noted: list[str] = []
    late: list[Listener] = []

    class Registers(Listener):
        def before_fork(self) -> None:
            super().before_fork()
            late.append(Listener("late", self.noted))

    keep = Registers("early", noted)

    _fork(noted)

    assert [line for line in noted if "late" in line] == []
    assert keep.noted == ["before early", "parent early"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forgotten_listener_is_not_told() -> None:
    """Registering keeps nothing alive."""
    noted: list[str] = []
    Listener("gone", noted)
    gc.collect()

    assert _fork(noted) == [""]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_that_raises_does_not_keep_the_others_from_being_told() -> None:
    """The interpreter reports the error, and everybody else is told all the same."""
    noted: list[str] = []
    keep = [Listener("foundation", noted), Listener("broken", noted, fails=True), Listener("top", noted)]

    _fork(noted)

    assert [line for line in noted if line.startswith("before")] == ["before top", "before broken", "before foundation"]
    assert [line for line in noted if line.startswith("parent")] == ["parent foundation", "parent broken", "parent top"]
    assert len(keep) == 3


def test_listeners_that_a_collection_takes_away_meanwhile_hinder_no_fork() -> None:
    """Where the garbage collector runs while the listeners are looked up, those that are left are told."""

    class Listener:
        """Quiet; a part of a cycle, so that only a collection takes it away."""

        def __init__(self) -> None:
            self.told = 0
            self.itself = self

        def before_fork(self) -> None:
            """Count."""
            self.told += 1

        def after_fork_in_parent(self) -> None:
            """Do nothing."""

        def after_fork_in_child(self) -> None:
            """Do nothing."""

    gc.collect()  # what other tests have left
    kept = Listener()
    fork.register(kept)
    threshold = gc.get_threshold()
    gc.disable()
    for _ in range(500):
        fork.register(Listener())
    try:
        # Soon, but not before the look-up has begun.
        gc.set_threshold(gc.get_count()[0] + 200)
        gc.enable()
        fork._before()
        fork._in_parent()
    finally:
        gc.set_threshold(*threshold)

    assert kept.told == 1
