"""The worker threads of one queue: who is idle, who looks for work, who gets what a claim brought."""

import threading
import time
from collections.abc import Callable, Sequence

from jobq.runtime.hand import Ended, Hand
from jobq.threads import Bell
from jobq.trouble import FIRST_PAUSE

#: Seconds: a thread whose jobs are over waits so long, from the claim on, for the others that got theirs with it. Where
#: jobs are short one transaction then settles and claims for all; where they are not, it costs no more than this.
TOGETHER = 0.0005


class Seat:
    """One worker thread's place in its pool; the pool's lock guards it."""

    def __init__(self, name: str) -> None:
        #: The name under which its jobs are claimed.
        self.name = name
        #: Rung when the thread should look whether it is to go on.
        self.called = Bell()
        #: What its thread has run and nobody has settled yet. It is the thread's own while that is at work, and another
        #: one's while that claims for it.
        self.owed: list[Ended] = []
        #: What another thread of the pool claimed for it.
        self.given: Hand | None = None
        #: Another thread is claiming for it at this moment.
        self.reserved = False
        #: It has come back from its jobs, and no claim was made for it since.
        self.due = True
        #: The number of the claim that brought what it is running; 0 while it runs nothing.
        self.deal = 0


class Pool:
    """Keeps the idle threads of a queue, and wakes one when there may be work.

    One thread at a time settles and claims, for itself and for all that are idle, so that a burst costs one
    transaction; what it does not need itself it gives to the others.
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
        self._claiming = False
        # The last claim: its number, how many of the threads that it brought something still run that, and until when
        # they are waited for.
        self._deal = 0
        self._out = 0
        self._together_until = 0.0

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
        """Begin a claim if it is this thread's turn: return the seats to settle and claim for, the own one first.

        What is said from now on counts for the next claim, and :meth:`share` or :meth:`fail` ends this one. Empty where
        it is not its turn: :meth:`rest` until it may be.
        """
        with self._lock:
            if seat.deal:
                self._out -= seat.deal == self._deal
                seat.deal, seat.due = 0, True
            if self._closed or self._until_turn(seat) != 0:
                return ()
            self._maybe = False
            self._claiming = True
            others = [other for other in self._idle if not other.reserved]
            for other in others:
                other.reserved = True
            return (seat, *others)

    def share(self, seats: Sequence[Seat], hands: Sequence[Hand | None]) -> None:
        """End a claim: give each of the others its hand, if there is one for it."""
        with self._lock:
            self._claiming = False
            self._deal += 1
            self._out = 0
            for seat, hand in zip(seats, hands, strict=True):
                seat.due = False
                if hand is not None:
                    seat.deal = self._deal
                    self._out += 1
            if self._out > 1:
                self._together_until = time.monotonic() + TOGETHER
            # Those that it claimed for are among the idle.
            left_over = bool(self._idle) and self._let_go(seats[1:], hands[1:])
        if left_over:
            self._on_idle()

    def fail(self, seats: Sequence[Seat]) -> None:
        """End a claim that could not be made; its thread tries again, and others may."""
        with self._lock:
            self._claiming = False
            seats[0].due = True
            self._let_go(seats[1:], (None,) * len(seats[1:]))

    def rest(self, seat: Seat) -> Hand | None:
        """Wait until it may be this thread's turn, or the pool is closed; return what another one claimed for it."""
        with self._lock:
            left = self._until_turn(seat)
            if self._closed or left == 0:
                return None
            self._idle.append(seat)
        if not seat.due:
            self._on_idle()
        while True:
            seat.called.wait(left)
            with self._lock:
                if seat.given is not None:
                    given, seat.given = seat.given, None
                    return given
                left = None if seat.reserved else self._until_turn(seat)
                if not seat.reserved and (self._closed or left == 0):
                    self._idle.remove(seat)
                    return None

    def nap(self, seat: Seat, seconds: float) -> None:
        """Wait so long in real time without being available for work; ends early when the pool is being closed.

        In a closed pool it is short, for a stop waits, but it is a pause: what is to be settled fails.
        """
        closed = self._closed
        until = time.monotonic() + (min(seconds, FIRST_PAUSE) if closed else seconds)
        while self._closed is closed and (left := until - time.monotonic()) > 0:
            seat.called.wait(left)

    def _until_turn(self, seat: Seat) -> float | None:
        """Return the seconds until a thread may claim: 0 for now, None for not before it is called."""
        if self._claiming or not (seat.due or self._maybe):
            return None
        if self._maybe or not self._out:
            return 0
        return max(0, self._together_until - time.monotonic())

    def _let_go(self, seats: Sequence[Seat], hands: Sequence[Hand | None]) -> bool:
        """Give the idle threads what a claim brought; return whether there was nothing for one of them."""
        for seat, hand in zip(seats, hands, strict=True):
            seat.reserved = False
            if hand is not None:
                seat.given = hand
                self._idle.remove(seat)
            if hand is not None or self._closed:
                seat.called.ring()
        self._call_one()
        return None in hands

    def _call_one(self) -> None:
        for seat in self._idle:
            if (self._maybe or seat.due) and not seat.reserved:
                seat.called.ring()
                return
