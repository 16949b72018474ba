"""The one shape of everything long-lived in a runner: a thread that is only "tick, then wait"."""

import math
import threading
from abc import ABC, abstractmethod

from jobq.clock import Clock
from jobq.errors import StoreError
from jobq.log import get_logger
from jobq.runtime.trouble import FATAL, FIRST_PAUSE, LONGEST_PAUSE, Trouble

logger = get_logger(__name__)

#: Seconds to wait for the thread of a stopped service; it is a daemon and cannot keep the process alive.
PATIENCE = 5.0
#: A service that looks after claimed jobs ticks at least this often, in seconds, while jobs are claimed.
IN_USE = 0.5


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
        self._stopping = False
        self._delay = 0.0
        self._crashes = 0
        self._used = False
        # The wait under way, or infinite while it is being decided.
        self._resting = math.inf
        self._wake = threading.Event()

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
        if self.alive:
            return
        self._stopping = False
        self._delay = after
        self._wake.clear()
        self.thread = threading.Thread(target=self._loop, name=f"jobq-{self.name}", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """End the loop and wait for its thread, unless this is that thread; does nothing before start."""
        self._stopping = True
        self._wake.set()
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE)

    def poke(self) -> None:
        """Let the next tick come now."""
        self._resting = 0.0
        self._wake.set()

    def stir(self, within: float) -> None:
        """See to it that the next tick comes within so many seconds: a busy thread wakes this one only if it must.

        What the tick is to find has to be in place before.
        """
        if self._resting > within:
            self.poke()

    def on_claim(self) -> None:
        """Take note that jobs were claimed; it cannot be asleep for long from now on."""
        self._used = True
        self.stir(IN_USE)

    def take_used(self) -> bool:
        """Return whether jobs were claimed since the last call.

        Who goes by what is held at this moment would fall asleep between two short jobs, and be woken by each.
        """
        used, self._used = self._used, False
        return used

    def after_fork(self) -> None:
        """Forget the thread, which does not exist in a forked child."""
        self.thread = None
        self._wake = threading.Event()

    def _loop(self) -> None:
        if self._delay:
            self._wake.wait(self._delay)
        while not self._stopping:
            seconds = self._guarded_tick()
            # A poke that came during the tick is still set, so nothing that happened meanwhile waits.
            if not self._stopping:
                self._wake.wait(seconds)
            self._wake.clear()

    def _guarded_tick(self) -> float:
        try:
            self.tick()
        except (StoreError, *FATAL) as error:
            self.failures += 1
            return self.trouble.failed(self.name, error)
        except Exception as error:  # a bug must not end what keeps leases alive
            self.failures += 1
            logger.error("jobq.loop.crashed", loop=self.name, error=type(error).__name__)
            self._crashes += 1
            return min(FIRST_PAUSE * 2.0 ** min(self._crashes, 10), LONGEST_PAUSE)
        self._crashes = 0
        self.last_good = self.clock.monotonic()
        self.trouble.worked(self.name)
        # Set before looking: whoever changes something now either is seen by pause() or sees this, and pokes.
        self._resting = math.inf
        self._resting = seconds = self.pause()
        return seconds
