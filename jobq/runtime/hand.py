"""A hand: the jobs that one worker thread has claimed, from the claim to the settle.

The thread takes one job after the other; other threads may take the rest away at any moment (the handler takes too
long, the queue or a kind is paused, the runner stops). The hand's lock decides who gets what, so that each job is
settled once.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobq.cancellation import CancelReason
from jobq.model.draft import Draft
from jobq.model.lease import Claim, Settled
from jobq.model.outcome import Outcome, Released
from jobq.runtime.context import RunningJob


class Ended(NamedTuple):
    """A run that is over and has to be settled."""

    claim: Claim
    outcome: Outcome
    #: Seconds on the monotonic clock; None for a job that was never started.
    ran: float | None = None
    #: To be inserted with the success.
    follow_ups: tuple[Draft, ...] = ()
    #: What the run has been settled as already, by itself.
    settled: Settled | None = None


#: In seconds: handlers this short on average let a hand grow, a single one this long ends hands for a while, and no
#: hand is made that is expected to take longer than the last.
SHORT, LONG, TARGET = 0.002, 0.005, 0.005


def next_size(size: int, most: int, ran: Sequence[float]) -> int:
    """Return how many jobs to claim next, given how long those of the last hand of ``size`` ran, in seconds."""
    if not ran:
        return size
    average = sum(ran) / len(ran)
    if max(ran) > LONG:
        return 1
    grown = 2 * size if average < SHORT else size
    return max(1, min(grown, most, int(TARGET / average) if average > 0 else most))


class Hand:
    """The jobs of one claim for one thread; safe to use from any thread."""

    __slots__ = ("_ended", "_lock", "_next", "_on_recall", "claimed_at", "claims", "current", "recalled")

    def __init__(
        self, claims: Sequence[Claim], *, claimed_at: float, on_recall: Callable[[], None] = lambda: None
    ) -> None:
        self.claims = claims
        #: On the monotonic clock, before the claim.
        self.claimed_at = claimed_at
        #: The run under way.
        self.current: RunningJob | None = None
        #: Whether somebody asked to have the unstarted jobs back: none is started any more.
        self.recalled = False
        self._on_recall = on_recall
        self._ended: list[Ended] = []
        self._next = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.claims)

    @property
    def queue(self) -> str:
        """The queue that the jobs were claimed from."""
        return self.claims[0].queue

    def holds(self, kind: str) -> bool:
        """Whether one of its jobs is of this kind."""
        return any(claim.kind == kind for claim in self.claims)

    @property
    def unstarted(self) -> int:
        """How many of its jobs wait for their turn."""
        return len(self.claims) - self._next

    @property
    def divisible(self) -> bool:
        """Whether somebody else could settle or give back a part of it."""
        return self._next < len(self.claims) or bool(self._ended)

    def start_next(self, begin: Callable[[Claim], RunningJob]) -> RunningJob | None:
        """Start the next job, or return None when there is none left to start."""
        with self._lock:
            if self.recalled or self._next >= len(self.claims):
                return None
            job = self.current = begin(self.claims[self._next])
            self._next += 1
            return job

    def is_running(self, job: RunningJob) -> bool:
        """Return whether this run is under way; one that is just being started counts."""
        with self._lock:
            return self.current is job

    def finish(self, job: RunningJob, ended: Ended) -> bool:
        """Keep how the current run ended, unless the hand was abandoned; return whether jobs wait for their turn."""
        with self._lock:
            if self.current is job:
                self.current = None
                self._ended.append(ended)
            return self._next < len(self.claims)

    def steal(self) -> list[Ended]:
        """Take everything but the current run: what is over, and the unstarted jobs as released."""
        with self._lock:
            ended, self._ended = self._ended, []
            if self._next < len(self.claims):
                ended += [Ended(claim, _RELEASED) for claim in self.claims[self._next :]]
                self._next = len(self.claims)
            return ended

    def abandon(self, outcome: Outcome) -> list[Ended]:
        """Take the current run, if any, with ``outcome``: its thread may go on, and settles nothing any more."""
        with self._lock:
            job, self.current = self.current, None
        return [] if job is None else [Ended(job.claim, outcome, 0.0, settled=job.settled)]

    def request(self, reason: CancelReason) -> bool:
        """Ask for the unstarted jobs back, for one of them is to stop before it began."""
        self.recalled = True
        self._on_recall()
        return True


_RELEASED = Released()
