"""A pause in which nothing is open that a fork would hand to the child.

A child that inherits an open SQLite handle takes no locks of its own on that file, and one that inherits a connection
to a server shares it with the parent; so the thread that has one closes it before the fork.
"""

import threading
from collections.abc import Callable

#: Longest wait for that thread, in seconds: it may be in the middle of a tick.
PATIENCE = 2.0


class ForkGap:
    """Asks another thread to let go of what it keeps, and lets it wait until the fork is over."""

    def __init__(self) -> None:
        self._asked: threading.Event | None = None
        self._over = threading.Event()

    def open(self, wake: Callable[[], None]) -> None:
        """Ask, and wait until the other thread has let go, for a bounded time; ``wake`` makes it look."""
        self._over = threading.Event()
        self._asked = asked = threading.Event()
        wake()
        asked.wait(PATIENCE)

    def close(self) -> None:
        """Let it go on."""
        self._asked = None
        self._over.set()

    def keep(self, let_go: Callable[[], None]) -> None:
        """Let go and wait, where that was asked; the other thread calls it whenever it keeps nothing in use."""
        asked, over = self._asked, self._over
        if asked is not None:
            let_go()
            asked.set()
            over.wait(2 * PATIENCE)
