"""Trouble with the store, as the loops of a runner see it: one report per change of state, growing pauses."""

import threading
from collections.abc import Callable

from jobq.errors import (
    ForeignHandle,
    ForkedHandle,
    JobqError,
    QueueClosed,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreError,
)
from jobq.log import get_logger
from jobq.model.events import Event, HealthChanged

logger = get_logger(__name__)

#: What no waiting mends: the runner reports it once and stops.
FATAL = (StoreCorrupt, QueueClosed, ForeignHandle, ForkedHandle, SchemaTooNew)

#: Seconds: the first pause, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class Trouble:
    """Keeps which loops of a runner fail; the store is healthy while none does.

    A loop that only reads may work while another cannot write, so each loop speaks for itself.
    """

    def __init__(self, tell: Callable[[Event], None], *, on_fatal: Callable[[], None]) -> None:
        # It has to return at once: the heartbeat reports here.
        self._tell = tell
        self._on_fatal = on_fatal
        self._lock = threading.Lock()
        self._pauses: dict[str, float] = {}
        self._told = False
        #: Why the runner stops, if it does because of the store.
        self.fatal: JobqError | None = None

    @property
    def healthy(self) -> bool:
        """Whether the last operation of each loop worked."""
        return not self._pauses and self.fatal is None

    def failed(self, loop: str, error: JobqError) -> float:
        """Take note of a failure and return how long the loop should pause, in seconds.

        A busy store is no change of state: somebody else works. What is fatal stops the runner.
        """
        if isinstance(error, StoreBusy):
            logger.debug("jobq.store.busy", loop=loop)
            return FIRST_PAUSE
        with self._lock:
            pause = self._pauses.get(loop, FIRST_PAUSE)
            self._pauses[loop] = min(2 * pause, LONGEST_PAUSE)
            first, self._told = not self._told, True
            fatal = isinstance(error, FATAL) and self.fatal is None
            if fatal:
                self.fatal = error
        if first:
            detail = type(error).__name__ + (f": {error.detail}" if isinstance(error, StoreError) else "")
            logger.error("jobq.store.failed", loop=loop, error=detail)
            self._tell(HealthChanged(component="store", healthy=False, detail=detail))
        if fatal:
            self._on_fatal()
        return pause

    def worked(self, loop: str) -> None:
        """Take note that the loop's last operation worked."""
        if loop not in self._pauses:
            return
        with self._lock:
            self._pauses.pop(loop, None)
            recovered = self._told and self.healthy
            if recovered:
                self._told = False
        if recovered:
            logger.info("jobq.store.recovered")
            self._tell(HealthChanged(component="store", healthy=True, detail=""))

    def forget(self, loop: str) -> None:
        """Forget a loop that has ended."""
        self.worked(loop)

    def reset(self) -> None:
        """Start anew, for a runner that is started again or lives in a forked child."""
        self._lock = threading.Lock()
        self._pauses.clear()
        self._told = False
        self.fatal = None
