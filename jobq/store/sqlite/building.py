"""Openings under way, which a fork has to wait for.

Opening a database takes mutexes inside SQLite. A process that is copied while another thread holds one has it locked
for ever in the child, where the next call of SQLite would hang.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from jobq import fork
from jobq.errors import ForkedHandle

#: How long a fork waits for openings, in seconds.
_QUIET_WITHIN = 5.0
_PAUSE = 0.001


class Building:
    """Keeps count of the openings of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[object] = set()
        self._spoiled = False
        fork.register(self, first=True)

    @contextmanager
    def opening(self, path: str) -> Iterator[None]:
        """Let no fork happen meanwhile; raises ForkedHandle in a child whose fork could not wait."""
        if self._spoiled:
            raise ForkedHandle(path)
        token = object()
        try:
            with self._lock:
                self._under_way.add(token)
            yield
        finally:
            with self._lock:
                self._under_way.discard(token)

    def before_fork(self) -> None:
        """Let nobody begin, and wait within limits for those who have begun."""
        until = time.monotonic() + _QUIET_WITHIN
        self._lock.acquire()
        while self._under_way and time.monotonic() < until:
            self._lock.release()
            time.sleep(_PAUSE)
            self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget the parent's threads; refuse to open anything where one of them was inside SQLite."""
        self._spoiled = self._spoiled or bool(self._under_way)
        self._lock = threading.Lock()
        self._under_way = set()


#: SQLite's mutexes are the process's, and so is this.
building = Building()
