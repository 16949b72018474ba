"""The lines of the log that runs of this process have written and nobody has kept yet."""

import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

from jobq.model.lease import Claim
from jobq.model.lines import Line
from jobq.threads import Alone

#: How many lines wait at most, and how many characters of them.
MOST_LINES, MOST_SIZE = 10_000, 8 * 1024 * 1024
#: How many lines are kept at once.
BATCH = 500


class Lines:
    """A bounded buffer: putting a line in it never waits for a database; when it is full the line is lost, counted."""

    def __init__(self) -> None:
        #: How many lines found no room: exact.
        self.lost = 0
        self._pending: deque[Line] = deque()
        self._size = 0
        self._lock = threading.Lock()
        self._keeping = Alone()

    def __len__(self) -> int:
        return len(self._pending)

    def put(self, line: Line) -> None:
        """Take a line, or count it as lost."""
        line = line.bounded()
        with self._lock:
            if len(self._pending) < MOST_LINES and self._size + line.size <= MOST_SIZE:
                self._pending.append(line)
                self._size += line.size
            else:
                self.lost += 1

    def drain(self, keep: Callable[[list[Line]], object]) -> None:
        """Hand over what waits, in order and in batches, unless another thread is about it.

        A batch that ``keep`` raises for goes on waiting.
        """
        self._keeping.run(lambda: self._drain(keep))

    def after_fork(self) -> None:
        """Be empty in a forked child: the parent keeps what waits."""
        self._lock = threading.Lock()
        self._keeping.after_fork()
        self._pending.clear()
        self._size = self.lost = 0

    def _drain(self, keep: Callable[[list[Line]], object]) -> None:
        left = len(self._pending)
        while left > 0:
            # By index: others may append meanwhile, and only this thread takes.
            batch = [self._pending[index] for index in range(min(left, BATCH))]
            keep(batch)
            left -= len(batch)
            with self._lock:
                for line in batch:
                    self._pending.popleft()
                    self._size -= line.size


#: The run that the calling code is a part of: where its lines go, and its claim.
RUN: ContextVar[tuple[Lines, Claim] | None] = ContextVar("jobq.run", default=None)
