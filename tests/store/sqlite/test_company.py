"""The wait of a synced commit for the threads that the one before it answered: when it is made, and when no more."""

from collections.abc import Callable
from typing import Any

import pytest

from jobq.store.sqlite.company import MOST_SKIPPED, Company


class Shared:
    """A group, and who joins it when it looks for riders again."""

    def __init__(self, *threads: int, later: tuple[int, ...] = ()) -> None:
        self.threads = frozenset(threads)
        self._later = later

    def carry_riders(self, turn: object) -> None:
        """Let them ride."""
        self.threads |= frozenset(self._later)


@pytest.fixture
def pauses() -> list[None]:
    """One entry for each wait."""
    return []


@pytest.fixture
def gather(pauses: list[None]) -> Callable[..., frozenset[int]]:
    """Let a group gather before its commit; returns who shares it."""
    company = Company(lambda: pauses.append(None))
    turn: Any = None

    def gathered(*threads: int, later: tuple[int, ...] = ()) -> frozenset[int]:
        group: Any = Shared(*threads, later=later)
        company.gather(group, turn)
        shared: frozenset[int] = group.threads
        return shared

    return gathered


def test_lone_thread_never_waits(gather: Callable[..., frozenset[int]], pauses: list[None]) -> None:
    """Who shares commits with nobody is not held up."""
    for _ in range(5):
        gather(1)

    assert pauses == []


def test_commit_waits_for_those_whom_the_last_one_answered(
    gather: Callable[..., frozenset[int]], pauses: list[None]
) -> None:
    """Two parties that take turns become one."""
    gather(1)

    assert gather(2, 3, 4, later=(1,)) == {1, 2, 3, 4}
    assert len(pauses) == 1
    gather(1, 2, 3, 4)
    assert len(pauses) == 1


def test_waits_in_vain_become_rare(gather: Callable[..., frozenset[int]], pauses: list[None]) -> None:
    """Threads that do something else after each write cost the others next to nothing."""
    commits = 20 * MOST_SKIPPED
    for number in range(commits):
        gather(number)

    assert len(pauses) < commits // MOST_SKIPPED + 10


def test_who_comes_back_is_waited_for_again(gather: Callable[..., frozenset[int]], pauses: list[None]) -> None:
    """After waits in vain one that was of use makes the next one sure."""
    for number in range(4):
        gather(number)
    while len(gather(1, later=(2,))) == 1 and len(gather(2, later=(1,))) == 1:
        pass
    pauses.clear()

    gather(3)

    assert len(pauses) == 1
