"""What the transactions that threads keep open mean to the world outside the database.

Nothing of a block is told before its commit: no event, no cancel, no log line. What was told too early could not be
taken back.
"""

import os
from collections.abc import Callable
from threading import get_ident

from jobq.clock import Clock
from jobq.errors import InsideTransaction
from jobq.log import get_logger
from jobq.model.events import Event
from jobq.places import Places

logger = get_logger(__name__)

#: In seconds; a block that is open for longer is reported: all other writers wait for it.
LONG = 1.0

Call = Callable[[], object]


class Block:
    """One transaction that a thread keeps open."""

    def __init__(self, clock: Clock) -> None:
        self.thread = get_ident()
        self.committed = False
        #: Set at its end, before the lock is given back; without a call, which an interrupt could keep from happening.
        self.over = False
        #: Events to be told after the commit.
        self.events: list[Event] = []
        #: What follows the commit, such as asking handlers to stop.
        self.after_commit: list[Call] = []
        #: What is carried out when the block has ended, however it ended.
        self.at_end: list[Call] = []
        self._process = os.getpid()
        self._clock = clock
        self._started = clock.monotonic()
        self._reported = False

    def begin(self) -> None:
        """Count the time from now: before it the thread waited for the lock."""
        self._started = self._clock.monotonic()

    @property
    def is_ours(self) -> bool:
        """Whether this is still the process that opened it, and not a forked child."""
        return self._process == os.getpid()

    def mark(self) -> tuple[int, int]:
        """Return how much is kept now, for :meth:`undo`."""
        return len(self.events), len(self.after_commit)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget what was kept since the mark: a block inside the block was rolled back."""
        del self.events[mark[0] :]
        del self.after_commit[mark[1] :]

    def report(self) -> None:
        """Log, once, a block that has been open for too long."""
        open_for = self._clock.monotonic() - self._started
        if open_for > LONG and not self._reported:
            self._reported = True
            logger.warning("jobq.transaction.prolonged", seconds=round(open_for, 1), thread=self.thread)

    def finish(self, failed: BaseException | None) -> None:
        """Do what follows the commit, then what was to be carried out at the end.

        The first error of the latter comes out, unless the block itself failed; then it is a note on that error.
        """
        for call in self.after_commit if self.committed else ():
            call()
        first: Exception | None = None
        for call in self.at_end:
            try:
                call()
            except Exception as error:
                first = first or error
        if first is not None and failed is None:
            raise first
        if first is not None and failed is not None:
            failed.add_note(f"An enqueue with join=False failed at the end of the block: {first!r}")
            logger.error("jobq.enqueue.failed", error=type(first).__name__)


class Blocks:
    """The block that is open on a file in this process; there is at most one, because it holds the write lock."""

    def __init__(self) -> None:
        self._open: Block | None = None
        #: Where the enqueues of each thread go.
        self.places = Places()

    def mine(self) -> Block | None:
        """Return the block of the calling thread, None where it has none open."""
        block = self._open
        return block if block is not None and not block.over and block.thread == get_ident() else None

    def enter(self, block: Block) -> None:
        """Let a block begin, on the thread that holds the write lock."""
        block.begin()
        self._open = block

    def report(self) -> None:
        """Log the open block if it has been open for too long and was not reported yet, from any thread."""
        block = self._open
        if block is not None and not block.over:
            block.report()

    def after_fork(self) -> None:
        """Forget it in a forked child, whose block it is not."""
        self._open = None
        self.places.after_fork()

    def refuse(self, verb: str) -> None:
        """Raise InsideTransaction if the calling thread has a block open."""
        if self.mine() is not None:
            raise InsideTransaction(verb)

    def refuse_handlers(self, verb: str) -> None:
        """Raise InsideTransaction where what handlers do on this thread would become a part of somebody's block."""
        self.refuse(verb)
        if self.places.stage() is not None:
            raise InsideTransaction(verb)

    def after_commit(self, call: Call) -> None:
        """Call something when what the calling thread does now is committed: at once where no block is open."""
        block = self.mine()
        if block is None:
            call()
        else:
            block.after_commit.append(call)
