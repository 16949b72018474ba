"""The progress of one run: often told, seldom written."""

import math
import threading
from collections.abc import Callable
from typing import Protocol

from jobq.blocks import Blocks
from jobq.clock import Clock
from jobq.errors import StoreError
from jobq.model.lease import Claim
from jobq.model.progress import Progress

#: Seconds between two writes about one run.
EVERY = 0.5


class Host(Protocol):
    """A job queue, as far as progress needs one."""

    @property
    def clock(self) -> Clock:
        """Tells when a write is due."""
        ...

    @property
    def blocks(self) -> Blocks:
        """Tells whether the calling thread has a transaction open."""
        ...

    def report(self, claim: Claim, progress: Progress) -> bool:
        """Write it; return False where the token is old."""
        ...

    def deliver(self) -> None:
        """Tell the listeners."""
        ...


class Reporter:
    """Writes how far a run is: the first word, the first that all is done, and else the newest each half second.

    What was not written is written by the runner's maintenance, or else when the handler ends, so the row ends with the
    last word. Several threads of a handler may use it.
    """

    __slots__ = ("_claim", "_full", "_jobs", "_latest", "_lock", "_on_lost", "_told", "_wrote")

    def __init__(self, claim: Claim, *, jobs: Host, on_lost: Callable[[], object]) -> None:
        self._claim = claim
        self._jobs = jobs
        self._on_lost = on_lost
        self._latest: Progress | None = None
        # The one that the row holds. What is told meanwhile is another object, so nothing is lost between threads.
        self._told: Progress | None = None
        self._full = False
        self._wrote = -math.inf
        self._lock = threading.Lock()

    def tell(self, progress: Progress) -> None:
        """Take the newest word, and write it if it is due; a database in trouble gets it later.

        Inside a transaction of this thread nothing is written: other writers wait for the end of that.
        """
        self._latest = progress
        if self._jobs.blocks.mine() is not None:
            return
        at_once = progress.whole and not self._full
        if at_once or self.due:
            self._full = self._full or at_once
            self.flush()
            self._jobs.deliver()

    @property
    def due(self) -> bool:
        """Whether there is something to write, and the last write is long enough ago."""
        waits = self._latest is not self._told
        return waits and self._jobs.clock.monotonic() - self._wrote >= EVERY

    def flush(self) -> None:
        """Write what was not written; what the database does not take now stays for the next time."""
        with self._lock:
            self._wrote = self._jobs.clock.monotonic()
            try:
                self.join()
            except StoreError:
                return  # whoever settles or beats next reports it

    def join(self) -> None:
        """Write what was not written, as a part of the transaction that the calling thread has open."""
        progress = self._latest
        if progress is None or progress is self._told:
            return
        if not self._jobs.report(self._claim, progress):
            self._on_lost()
        self._told = progress

    def forget(self) -> None:
        """Take note that what was joined to a transaction was rolled back."""
        self._told = None
