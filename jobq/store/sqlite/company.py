"""Who shared the last synced commit, and whether the next one waits a moment for them."""

import time
from collections.abc import Callable

from jobq.store.sqlite.group import Group
from jobq.store.sqlite.turn import Turn

#: How long a synced commit waits, in seconds; with what the system adds, a fraction of what most syncs take.
MOMENT = 0.00005
#: Waits in vain are followed by more and more commits without one, at most so many.
MOST_SKIPPED = 63


def pause() -> None:
    """Wait the moment."""
    time.sleep(MOMENT)


class Company:
    """The threads that the last synced commit answered: a busy one writes again at once.

    Without the wait the threads of a busy process fall into two parties that take turns: one gets ready while the other
    is synced, and no commit is shared by all. ``pause`` is the wait. Only the holder of the turn calls it.
    """

    __slots__ = ("_last", "_pause", "_skip", "_vain")

    def __init__(self, pause: Callable[[], object]) -> None:
        self._pause = pause
        self._last: frozenset[int] = frozenset()
        self._vain = 0
        self._skip = 0

    def gather(self, group: Group, turn: Turn) -> None:
        """Wait for those who are not back yet, if that was of use lately, and carry out what they bring."""
        missing = self._last - group.threads
        if missing and self._skip:
            self._skip -= 1
        elif missing:
            self._pause()
            group.carry_riders(turn)
            self._vain = 0 if missing & group.threads else min(2 * self._vain + 1, MOST_SKIPPED)
            self._skip = self._vain
        self._last = group.threads
