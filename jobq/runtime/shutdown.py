"""The stop of a runner, step by step.

::

    GRACE        nothing is claimed, hands are released; handlers go on, heart beating, until the grace period is over
    CANCELLING   their tokens say SHUTDOWN; up to five seconds more
    VOIDING      what still runs loses its token: queued, uncounted, due when its lease would have ended
    OVER         the services have stopped, the heartbeat last

Each step is taken by whoever looks, the caller of ``stop()`` or the overseer, so a stop may be asked for from a handler
or a listener, whose thread cannot wait for itself, and needs no thread of its own.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

from jobq.cancellation import CancelReason
from jobq.errors import JobqError
from jobq.log import get_logger
from jobq.model.outcome import Voided
from jobq.runtime.exchange import Exchange
from jobq.runtime.hand import Ended
from jobq.runtime.held import Held
from jobq.runtime.pool import Pool
from jobq.runtime.worker import Worker
from jobq.threads import Alone, Bell

logger = get_logger(__name__)

#: Seconds that handlers get to notice that their token was set.
NOTICE = 5.0


class Phase(IntEnum):
    """How far a stop has gone."""

    RUNNING = 0
    GRACE = 1
    CANCELLING = 2
    VOIDING = 3
    OVER = 4


class Shutdown:
    """One stop of one set of worker threads; every method may be called from any thread, any number of times."""

    def __init__(
        self,
        *,
        pools: Sequence[Pool],
        workers: Sequence[Worker],
        held: Held,
        exchange: Exchange,
        recall: Callable[[], None],
        finish: Callable[[], None],
    ) -> None:
        self._pools = pools
        self._workers = workers
        self._held = held
        self._exchange = exchange
        self._recall = recall
        self._finish = finish
        self._lock = threading.Lock()
        self._advancing = Alone()
        self._bells: list[Bell] = []
        self._deadline = 0.0
        self.phase = Phase.RUNNING

    @property
    def over(self) -> bool:
        """Whether everything has stopped."""
        return self.phase is Phase.OVER

    def begin(self, grace: float) -> None:
        """Stop claiming; a second call can only shorten the grace period."""
        with self._lock:
            deadline = time.monotonic() + grace
            if self.phase is Phase.RUNNING:
                self.phase, self._deadline = Phase.GRACE, deadline
                logger.info("jobq.runner.stopping", grace=grace)
            elif self.phase is Phase.GRACE:
                self._deadline = min(self._deadline, deadline)
        self._ring()
        for pool in self._pools:
            pool.close()
        self._recall()

    def advance(self) -> None:
        """Take every step that is due, unless another thread is about it; an interrupted step is taken again."""
        if self.phase not in (Phase.RUNNING, Phase.OVER):
            self._advancing.run(self._advance)

    def pause(self) -> float:
        """Return how many seconds may pass before the next step is due."""
        return max(0.0, self._deadline - time.monotonic())

    def worker_ended(self) -> None:
        """Take note that a worker thread is about to end."""
        self._ring()

    def wait(self) -> None:
        """Drive the stop to its end."""
        with self._listen() as bell:
            while not self.over:
                self.advance()
                if not self.over and not (self.phase < Phase.VOIDING and self._due()):
                    # Bounded: the last worker may ring just before its thread counts as ended.
                    bell.wait(min(self.pause(), 0.05) or 0.01)

    def wait_until_over(self, timeout: float | None) -> bool:
        """Wait without driving; return whether it is over."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        with self._listen() as bell:
            while not self.over and (left := until - time.monotonic()) > 0:
                # Bounded, for an interrupt of the one who rings may come before this bell.
                bell.wait(min(left, 0.5))
        return self.over

    @contextmanager
    def _listen(self) -> Iterator[Bell]:
        bell = Bell()
        try:
            self._bells.append(bell)
            yield bell
        finally:
            # A new list: who rings may be going through the old one.
            self._bells = [kept for kept in self._bells if kept is not bell]

    def _ring(self) -> None:
        for bell in self._bells:
            bell.ring()

    def _advance(self) -> None:
        if self.phase is Phase.GRACE and self._due():
            self._set_tokens()
            self._step(Phase.CANCELLING, NOTICE)
        if self.phase is Phase.CANCELLING and self._due():
            self._step(Phase.VOIDING, 0.0)
        if self.phase is Phase.VOIDING:
            self._end()

    def _end(self) -> None:
        """Void and finish, once more after an interrupt; then it is over in any case, so that it can start again."""
        try:
            self._close_down()
        except BaseException:
            try:
                self._close_down()
            finally:
                self._step(Phase.OVER, 0.0)
            raise
        self._step(Phase.OVER, 0.0)
        logger.info("jobq.runner.stopped")

    def _close_down(self) -> None:
        self._void()
        self._finish()

    def _due(self) -> bool:
        return time.monotonic() >= self._deadline or not any(worker.thread.is_alive() for worker in self._workers)

    def _step(self, phase: Phase, seconds: float) -> None:
        with self._lock:
            self._deadline = time.monotonic() + seconds
            self.phase = phase
        self._ring()

    def _set_tokens(self) -> None:
        for job in self._held.running():
            job.cancel_token.request(CancelReason.SHUTDOWN)

    def _void(self) -> None:
        ended: list[Ended] = []
        for hand in self._held.hands():
            ended += (*self._exchange.take_back(hand), *hand.abandon(Voided()))
        for worker in self._workers:
            worker.give_up()
        try:
            self._exchange.settle(ended)
            self._exchange.announce()
        except JobqError as error:
            # The leases expire by themselves; a stop that never ended would be worse.
            logger.error("jobq.runner.void_failed", jobs=len(ended), error=type(error).__name__)
