"""The one shape of everything long-lived: a thread that is only "tick, then wait"."""

import math
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from jobq.clock import Clock
from jobq.errors import StoreError
from jobq.log import get_logger
from jobq.threads import Bell
from jobq.trouble import FATAL, FIRST_PAUSE, LONGEST_PAUSE, Trouble

logger = get_logger(__name__)

#: Seconds to wait for the thread of a stopped service; it is a daemon and cannot keep the process alive.
PATIENCE = 5.0
#: A service that looks after claimed jobs ticks at least this often, in seconds, while jobs are claimed.
IN_USE = 0.5
# Moments a second apart, the same for all services of this process and hardly those of another one.
_BEAT, _PHASE, _SLACK = 1.0, random.random(), 0.01


def together(seconds: float, now: float) -> float:
    """Return how long to wait instead of so many seconds, on a monotonic clock that says ``now``.

    Waits of a second and longer are cut, by less than a second, to end when those of other services end: waking is what
    an idle process pays for, so it wakes once and not once for each of its threads.
    """
    if seconds < _BEAT:
        return seconds
    cut = _PHASE + math.floor((now + seconds - _PHASE) / _BEAT) * _BEAT - now
    # One that ends a little before such a moment goes with it: it must not be followed by another one at once.
    return cut if cut > _SLACK else seconds


class Service(ABC):
    """A loop with a thread of its own. Subclasses say what a tick does and how long to wait after it.

    Tests call ``tick()`` without any thread. A tick that raises is reported and the next one comes; waits are real
    time, whatever the clock.
    """

    #: Names the thread and the reports.
    name = "service"

    def __init__(self, *, clock: Clock, trouble: Trouble) -> None:
        self.clock = clock
        self.trouble = trouble
        #: How many ticks raised.
        self.failures = 0
        #: The monotonic time of the last tick that worked; None before the first.
        self.last_good: float | None = None
        #: The thread, once started.
        self.thread: threading.Thread | None = None
        # Stands for the thread of the last start; None once it was stopped.
        self._life: object | None = None
        self._crashes = 0
        self._used = False
        # The wait under way, or infinite while it is being decided.
        self._resting = math.inf
        self._bell = Bell()

    @abstractmethod
    def tick(self) -> object:
        """Do once what is due."""

    @abstractmethod
    def pause(self) -> float:
        """Return how many seconds of real time to wait before the next tick."""

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self.thread is not None and self.thread.is_alive()

    @property
    def age(self) -> float | None:
        """Seconds since the last good tick; None before the first."""
        return None if self.last_good is None else self.clock.monotonic() - self.last_good

    def start(self, *, after: float = 0.0) -> None:
        """Start the thread, whose first tick comes after so many seconds; does nothing while it runs."""
        if self.alive and self._life is not None:
            return
        # A thread that was stopped may still be in its last tick, or asleep where an interrupt struck the stop: it sees
        # that this life is not its own.
        self._life = life = object()
        self._bell.ring()
        self._bell = bell = self.make_bell()
        self.thread = threading.Thread(
            target=self._loop, args=(life, bell, after), name=f"jobq-{self.name}", daemon=True
        )
        try:
            self.thread.start()
        except BaseException:
            if not self.thread.is_alive():
                bell.close()
            raise

    def stop(self) -> None:
        """End the loop and wait for its thread, unless this is that thread; does nothing before start. Idempotent."""
        self._life = None
        self._bell.ring()
        thread = self.thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join(PATIENCE)

    def make_bell(self) -> Bell:
        """Return what a thread about to start waits for."""
        return Bell()

    def poke(self) -> None:
        """Let the next tick come now."""
        self._resting = 0.0
        self._bell.ring()

    def stir(self, within: float) -> None:
        """See to it that the next tick comes within so many seconds: a busy thread wakes this one only if it must.

        What the tick is to find has to be in place before.
        """
        if self._resting > within:
            self.poke()

    def on_claim(self) -> None:
        """Take note that jobs were claimed; it cannot be asleep for long from now on."""
        self._used = True
        if self._resting > IN_USE:  # each claim comes by
            self.poke()

    def take_used(self) -> bool:
        """Return whether jobs were claimed since the last call.

        Who goes by what is held at this moment would fall asleep between two short jobs, and be woken by each.
        """
        used, self._used = self._used, False
        return used

    def after_fork(self) -> None:
        """Forget the thread, which does not exist in a forked child."""
        self.thread = self._life = None
        bell, self._bell = self._bell, Bell()
        bell.after_fork()

    def end(self) -> None:
        """Do what is left once the loop is over; nothing, unless a subclass says otherwise."""
        return

    def recover(self, error: BaseException) -> float:
        """Report what a tick raised, and return how many seconds to pause."""
        if isinstance(error, (StoreError, *FATAL)):
            return self.trouble.failed(self.name, error)
        logger.error("jobq.loop.crashed", loop=self.name, error=type(error).__name__)
        self._crashes += 1
        return min(FIRST_PAUSE * 2.0 ** min(self._crashes, 10), LONGEST_PAUSE)

    def _loop(self, life: object, bell: Bell, delay: float) -> None:
        if delay:
            bell.wait(delay)
        while self._life is life:
            # Before the tick: what is rung from here on may have come too late for it, so it does not wait.
            bell.clear()
            seconds = self._survive(self._round)
            if self._life is life:
                bell.wait(seconds)
        bell.close()
        self._survive(self.end)

    def _round(self) -> float:
        self.tick()
        self._crashes = 0
        self.last_good = self.clock.monotonic()
        self.trouble.worked(self.name)
        # Set before looking: whoever changes something now either is seen by pause() or sees this, and pokes.
        self._resting = math.inf
        self._resting = seconds = self.pause()
        return together(seconds, time.monotonic())

    def _survive(self, step: Callable[[], float | None]) -> float | None:
        """Take a step and return what it says; where it raises report that, and return how many seconds to pause."""
        try:
            return step()
        except BaseException as error:  # a bug, or whatever a host raises, must not end what keeps leases alive
            self.failures += 1
            return self.recover(error)
