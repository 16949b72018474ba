"""Notices that this machine slept, this process was stopped, or somebody set the clock.

Leases lapse meanwhile although their owners are well, so for one lease length nothing that expired is taken back.
The token is the fence in any case; the guard only spares work from being done twice.
"""

import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from jobq.clock import Clock
from jobq.log import get_logger
from jobq.model.runner import RunnerRow, clock_moved

logger = get_logger(__name__)

#: Clocks are slewed by fractions of a second all the time; only a step back of more than this moves due times.
SMALLEST_STEP = 1.0
#: Two readings of the monotonic clock further apart than this do not bracket one moment.
_ONE_MOMENT = 0.02


class StepBack(NamedTuple):
    """The wall clock was set back: what it would have said without that, and by how many seconds."""

    since: datetime
    seconds: float


class SleepGuard:
    """Compares wall and monotonic time from one observation to the next; safe to use from any thread."""

    def __init__(self, clock: Clock, *, lease: float, real: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lease = lease
        self._real = real
        self._lock = threading.Lock()
        self._wall, self._monotonic = self._read()
        self._hold_until: float | None = None
        self._expected: float | None = None
        self._steps: list[StepBack] = []

    @property
    def holding(self) -> bool:
        """Whether expired leases are to be granted one more length instead of being taken back."""
        return self._hold_until is not None and self._clock.monotonic() < self._hold_until

    def observe(self) -> None:
        """Look at both clocks, and hold back if they moved against each other by half a lease or more."""
        with self._lock:
            wall, monotonic = self._clock.now(), self._clock.monotonic()
            drift = (wall - self._wall).total_seconds() - (monotonic - self._monotonic)
            if self._expected is None and abs(drift) < _ONE_MOMENT:
                # Nearly always. This look costs each claim something, so only what it suspects is looked at closely.
                self._wall, self._monotonic = wall, monotonic
                return
            wall, monotonic = self._read()
            passed = monotonic - self._monotonic
            drift = (wall - self._wall).total_seconds() - passed
            if drift < -SMALLEST_STEP:
                self._steps.append(StepBack(self._wall + timedelta(seconds=passed), -drift))
            self._wall, self._monotonic = wall, monotonic
            overslept = 0.0 if self._expected is None else self._real() - self._expected
            self._expected = None
            if max(abs(drift), overslept) >= self._lease / 2:
                self._hold(max(drift, overslept, key=abs))

    def expect(self, seconds: float) -> None:
        """Say that the next observation is due within so many seconds of real time; one that is late overslept."""
        self._expected = self._real() + seconds

    def forget(self) -> None:
        """Expect no observation any more: the one who would make it has stopped."""
        self._expected = None

    def compare(self, rows: Iterable[RunnerRow], boot_id: str) -> None:
        """Hold back if another process of this boot beat less than a lease ago by a clock that has moved since.

        That is how a process that starts right after a wake can tell.
        """
        wall, monotonic = self._read()
        drift = clock_moved(rows, boot_id=boot_id, wall=wall, monotonic=monotonic, lease=self._lease)
        if drift is not None:
            self._hold(drift)

    def take_step(self) -> StepBack | None:
        """Return a step back of the clock that was not dealt with yet; each is returned once."""
        if not self._steps:
            return None
        with self._lock:
            return self._steps.pop(0) if self._steps else None

    def put_back(self, step: StepBack) -> None:
        """Keep a step for later: dealing with it failed."""
        with self._lock:
            self._steps.insert(0, step)

    def after_fork(self) -> None:
        """Make the guard usable in a forked child."""
        self._lock = threading.Lock()
        self._expected = None

    def _hold(self, seconds: float) -> None:
        self._hold_until = self._clock.monotonic() + self._lease
        logger.warning("jobq.clock.jumped", seconds=round(seconds, 3))

    def _read(self) -> tuple[datetime, float]:
        # A process that is stopped between the two readings would take the pause for a step of the clock.
        while True:
            before = self._clock.monotonic()
            wall = self._clock.now()
            after = self._clock.monotonic()
            if after - before < _ONE_MOMENT:
                return wall, after
