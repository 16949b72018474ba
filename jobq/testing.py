"""What tests of programs on jobq use: a clock that stands still until it is told to move."""

import threading
from datetime import UTC, datetime, timedelta

from jobq.errors import ArgumentError
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import require_aware, shift

_MICROSECOND = timedelta(microseconds=1)
#: Not zero, so that code which takes zero for "never" shows its fault.
_FIRST_MONOTONIC = timedelta(seconds=1_000)


class FakeClock:
    """A clock that moves only when told to, or when a handler waits on it.

    Times are exact to the microsecond. It is safe to use from several threads.
    """

    #: Jitter is 0 under this clock.
    deterministic = True

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        self._lock = threading.Lock()
        self._now = require_aware(start, argument="start")
        self._monotonic = _FIRST_MONOTONIC

    def now(self) -> datetime:
        """Return the wall time as an aware datetime in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return self._monotonic.total_seconds()

    def advance(self, duration: Duration) -> None:
        """Move wall and monotonic time forward together, as when time passes; never back."""
        seconds = to_seconds(duration, argument="duration")
        if seconds < 0:
            raise ArgumentError("duration", "time does not pass backwards", fix="Use jump() to set the wall clock.")
        self._pass(timedelta(seconds=seconds))

    def jump(self, duration: Duration) -> None:
        """Move the wall clock alone, forward or back, as when somebody sets it."""
        with self._lock:
            self._now = shift(self._now, to_seconds(duration, argument="duration"), argument="duration")

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Let the seconds pass at once, unless the event is set; return whether it is set."""
        if not event.is_set() and seconds > 0:
            # At least one microsecond: a loop that waits for a rest lost in rounding would never end.
            self._pass(max(timedelta(seconds=to_seconds(seconds, argument="seconds")), _MICROSECOND))
        return event.is_set()

    def _pass(self, span: timedelta) -> None:
        with self._lock:
            self._now = shift(self._now, span.total_seconds(), argument="duration")
            self._monotonic += span
