"""The worker threads of one queue: who is idle, who looks for work, who gets what a claim brought."""

import threading
import time
from collections.abc import Callable, Sequence

from jobq.runtime.hand import Hand
from jobq.threads import Bell


class Seat:
    """One worker thread's place in its pool; the pool's lock guards it."""

    def __init__(self, name: str) -> None:
        #: The name under which its jobs are claimed.
        self.name = name
        #: Rung when the thread should look whether it is to go on.
        self.called = Bell()
        #: What another thread of the pool claimed for it.
        self.given: Hand | None = None
        #: Another thread is claiming for it at this moment.
        self.reserved = False


class Pool:
    """Keeps the idle threads of a queue, and wakes one when there may be work.

    One thread wakes and claims for all that are idle, so that a burst costs one transaction; what it does not need
    itself it gives to the others.
    """

    def __init__(self, queue: str, *, on_idle: Callable[[], None]) -> None:
        self.queue = queue
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._seats: list[Seat] = []
        self._idle: list[Seat] = []
        # There may be work that no claim has looked for yet; set before the waking, cleared before the claim.
        self._maybe = True
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether a thread waits for work."""
        return bool(self._idle)

    @property
    def closed(self) -> bool:
        """Whether nothing is claimed any more."""
        return self._closed

    def seat(self, name: str) -> Seat:
        """Make the place of one worker thread."""
        seat = Seat(name)
        self._seats.append(seat)
        return seat

    def wake(self) -> None:
        """Say that there may be work: one idle thread looks, or the next one that would go idle."""
        if self._maybe and not self._idle:
            return
        with self._lock:
            self._maybe = True
            self._call_one()

    def close(self) -> None:
        """Let every thread end as soon as it has nothing left to settle."""
        with self._lock:
            self._closed = True
            for seat in self._seats:
                seat.called.ring()

    def reserve(self, seat: Seat) -> tuple[Seat, ...]:
        """Begin a claim: return the seats to claim for, the own one first.

        What is said from now on counts for the next claim.
        """
        with self._lock:
            self._maybe = False
            others = [other for other in self._idle if not other.reserved]
            for other in others:
                other.reserved = True
            return (seat, *others)

    def share(self, hands: Sequence[tuple[Seat, Hand | None]]) -> None:
        """End a claim for the others: give each its hand, if there is one for it."""
        with self._lock:
            for seat, hand in hands:
                seat.reserved = False
                if hand is not None:
                    seat.given = hand
                    self._idle.remove(seat)
                if hand is not None or self._closed:
                    seat.called.ring()
            self._call_one()

    def rest(self, seat: Seat) -> Hand | None:
        """Wait until there may be work or the pool is closed; return what another thread claimed for this one."""
        with self._lock:
            if self._maybe or self._closed:
                return None
            self._idle.append(seat)
        self._on_idle()
        while True:
            with self._lock:
                if seat.given is not None or (not seat.reserved and (self._maybe or self._closed)):
                    given, seat.given = seat.given, None
                    if given is None:
                        self._idle.remove(seat)
                    return given
            seat.called.wait()

    def nap(self, seat: Seat, seconds: float) -> None:
        """Wait so long in real time without being available for work; ends early when the pool is being closed."""
        until = time.monotonic() + seconds
        while not self._closed and (left := until - time.monotonic()) > 0:
            seat.called.wait(left)

    def _call_one(self) -> None:
        if self._maybe:
            for seat in self._idle:
                if not seat.reserved:
                    seat.called.ring()
                    return
