"""What every measured job queue can be asked for, and the stopwatch that its jobs press."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

#: What a job carries: a hundred bytes.
PAYLOAD = "x" * 100
#: How many jobs go into one acknowledged batch where the caller says how many.
BATCH = 100

# Ways to drain, by what is promised meanwhile.
GONE = "gone when taken"
SINGLE = "one at a time"
BATCHES = "in batches"


class Stopwatch:
    """The time between the starts of the first and the last job; over after so many jobs, or so many seconds."""

    def __init__(self, *, jobs: int, seconds: float) -> None:
        self.over = threading.Event()
        self._jobs, self._seconds = jobs, seconds
        self._numbers = itertools.count()
        self._first = self._last = 0.0
        self._between = 0

    def lap(self) -> None:
        """Count a job that starts now, from any thread."""
        number, now = next(self._numbers), time.perf_counter()
        if number == 0:
            self._first = now
        elif not self.over.is_set():
            self._last, self._between = now, number
            if number >= self._jobs - 1 or now - self._first > self._seconds:
                self.over.set()

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self._between / (self._last - self._first)


Drain = Callable[[Stopwatch], None]


class Rival(Protocol):
    """A job queue in a folder, opened with ``synced`` commits or without."""

    #: Which of the two it can be.
    durabilities: tuple[bool, ...]
    #: Whether it takes many jobs in one transaction.
    bulk: bool

    def __init__(self, folder: Path, *, synced: bool) -> None: ...

    def enqueue(self) -> None:
        """Accept one job, in a transaction of its own."""

    def enqueue_many(self, count: int) -> None:
        """Accept so many jobs in one transaction."""

    def fill(self, count: int) -> None:
        """Have so many jobs wait, however they get there: this is not measured."""

    def drains(self) -> Mapping[str, Drain]:
        """Return the ways to drain it; each presses the stopwatch at the start of each job, until that is over."""

    def listen(self, answer: Callable[[], None]) -> None:
        """Run jobs as they come, calling ``answer`` at the start of each, until the process ends."""

    def close(self) -> None:
        """Close its handles."""
