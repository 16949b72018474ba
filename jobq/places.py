"""Where the enqueues of a thread go: into jobq's file, or into the innermost block that takes them elsewhere.

A place belongs to the thread that entered it: what is copied to another thread, a context for instance, takes none
along.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import Protocol

from jobq.model.draft import Draft


class Stage(Protocol):
    """Takes drafts instead of jobq's file, to hand them on later."""

    def put(self, drafts: Sequence[Draft], *, now: datetime) -> list[int]:
        """Keep resolved drafts in the host's open transaction, all of them or none, and return their numbers there."""
        ...


class _Place(threading.local):
    """The innermost place of each thread."""

    inner: "_Entered | None" = None


class _Entered:
    """One block that a thread has entered."""

    __slots__ = ("outer", "over", "stage")

    def __init__(self, stage: Stage | None, outer: "_Entered | None") -> None:
        self.stage = stage
        self.outer = outer
        #: Set at its end, without a call, which an interrupt could keep from happening.
        self.over = False


class Places:
    """The places that the threads of this process have entered, of all job queues of one file."""

    def __init__(self) -> None:
        self._place = _Place()

    @contextmanager
    def enter(self, stage: Stage | None) -> Iterator[None]:
        """Let what this thread enqueues go to a stage while the block runs; with None into jobq's file."""
        entered = _Entered(stage, self._place.inner)
        try:
            self._place.inner = entered
            yield
        finally:
            entered.over = True

    def stage(self) -> Stage | None:
        """Return where the calling thread's enqueues go; None means into jobq's file."""
        entered = self._place.inner
        if entered is None:
            return None
        while entered is not None and entered.over:
            entered = entered.outer
        self._place.inner = entered
        return None if entered is None else entered.stage

    def apart(self) -> AbstractContextManager[None]:
        """Return a block in which nothing is staged that this thread enqueues."""
        return nullcontext() if self.stage() is None else self.enter(None)

    def after_fork(self) -> None:
        """Forget them in a forked child, which must not touch the host's connection."""
        self._place = _Place()
