"""Time as a service: the wall clock, the monotonic clock and waiting, behind one small protocol.

Everything that needs the time is given a clock, so that a test can bring its own (``jobq.testing.FakeClock``).
"""

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What jobq asks of a clock; implementations are safe to use from several threads."""

    @property
    def deterministic(self) -> bool:
        """Whether time passes only when told to; jitter is 0 then, so that a test can name each instant."""
        ...

    def now(self) -> datetime:
        """Return the wall time as an aware datetime in UTC; it may step in either direction."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an unknown start that never go back; only differences mean something."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or so many seconds have passed, and return whether it is set.

        This is how a handler waits. Zero or fewer seconds do not wait.
        """
        ...


class SystemClock:
    """The clock of the machine."""

    __slots__ = ()

    #: Time passes by itself.
    deterministic = False

    def now(self) -> datetime:
        """Return the wall time as an aware datetime in UTC."""
        return datetime.now(UTC)

    #: Seconds of the system's monotonic clock. The function itself: it is read several times for each job.
    monotonic = staticmethod(time.monotonic)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait in real time until the event is set or the seconds have passed, and return whether it is set."""
        # Longer timeouts than TIMEOUT_MAX (centuries on Linux, 49 days on Windows) raise OverflowError.
        return event.wait(max(0.0, min(seconds, threading.TIMEOUT_MAX)))
