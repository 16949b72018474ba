"""How a connection waits for a lock that another process holds."""

import random
import time

import apsw

#: The longest pause between two looks, in seconds. A small transaction takes about so long.
LONGEST = 0.001


class Patience:
    """SQLite's busy handler of one connection (https://sqlite.org/c3ref/busy_handler.html): so many seconds a wait.

    SQLite's own waits longer with each look, up to a tenth of a second, and who came last looks most often: in a storm
    of small transactions one process waited for seconds. Short pauses of a random length give everybody an even chance.
    They are Python's, so a Ctrl-C ends them.
    """

    __slots__ = ("_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0

    def __call__(self, looks: int) -> bool:
        """Pause, and return whether to look again; ``looks`` is 0 when a wait begins."""
        now = time.monotonic()
        if not looks:
            self._until = now + self._seconds
        if now >= self._until:
            return False
        time.sleep(random.random() * min(LONGEST, self._until - now))
        return True


def wait_at_most(connection: apsw.Connection, seconds: float) -> None:
    """Let each wait of a connection for a lock end after so many seconds, with BUSY; 0 or fewer do not wait."""
    connection.set_busy_handler(Patience(seconds))
