"""A lane: first in, first out, handed on by one thread at a time."""

from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Generic, TypeVar

from jobq.threads import Alone

Item = TypeVar("Item")


class Lane(Generic[Item]):
    """What waits to be told. ``hand_on`` takes the first of it and tells it; ``rest`` follows the last."""

    def __init__(self, hand_on: Callable[[], object], rest: Callable[[], object] = lambda: None) -> None:
        self.pending: deque[Item] = deque()
        self._hand_on = hand_on
        self._rest = rest
        self._handing_on = Alone()
        self._thread: int | None = None

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread is handing on right now."""
        return self._thread == get_ident()

    def drain(self) -> None:
        """Hand on all that waits, unless another thread is about it or this one already is."""
        # The second look after letting go finds what came between the last look and the end.
        while self.pending and self._handing_on.run(self._empty):
            pass

    def after_fork(self) -> None:
        """Make it usable in a forked child, and empty."""
        self._handing_on.after_fork()
        self.pending.clear()

    def _empty(self) -> None:
        try:
            self._thread = get_ident()
            while self.pending:
                self._hand_on()
            self._rest()
        finally:
            self._thread = None
