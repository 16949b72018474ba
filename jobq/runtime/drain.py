"""A drain: the worker's steps on the calling thread, one job at a time, until nothing is left to do."""

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import attrs

from jobq.clock import Clock
from jobq.errors import ArgumentError, JobqError
from jobq.identity import worker_name
from jobq.model.duration import Duration, to_seconds
from jobq.model.effects import Verdict
from jobq.model.instant import require_aware, shift
from jobq.model.lease import Claim, Settled
from jobq.model.outcome import Failed, Released
from jobq.runtime.exchange import Exchange
from jobq.runtime.hand import Ended, Hand
from jobq.runtime.held import Held, Key
from jobq.runtime.runs import Runs


@attrs.frozen(kw_only=True)
class Counts:
    """How many runs of a drain ended as what; a run whose lease was lost meanwhile is only ``claimed``."""

    claimed: int = 0
    succeeded: int = 0
    retried: int = 0
    deferred: int = 0
    failed: int = 0
    cancelled: int = 0
    #: Given back because their handler stopped at a request that was no cancel.
    released: int = 0


class Drain:
    """One drain. It goes through the same store, caps, gates and order as worker threads do.

    ``owed`` are ended runs that an earlier drain could not settle; what this one cannot settle is left there.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        held: Held,
        exchange: Exchange,
        runs: Runs,
        owed: list[Ended],
        limit: int | None,
        raise_errors: bool,
    ) -> None:
        self._clock = clock
        self._held = held
        self._exchange = exchange
        self._runs = runs
        self._owed = owed
        self._left = sys.maxsize if limit is None else limit
        self._raise_errors = raise_errors
        self._worker = worker_name()
        self._verdicts = dict.fromkeys(Verdict, 0)
        self._claimed = 0
        # What the last trade brought, in a hand as soon as there is one.
        self._claims: list[Claim] = []
        self._hand: Hand | None = None

    @property
    def counts(self) -> Counts:
        """What the drain has come to so far."""
        names = (field.name for field in attrs.fields(Counts) if field.name != "claimed")
        return Counts(claimed=self._claimed, **{name: self._verdicts[Verdict(name)] for name in names})

    def work(self) -> None:
        """Run what is due, jobs enqueued meanwhile included, until nothing is or the limit is reached."""
        try:
            while self._left > 0 and (hand := self._trade()) is not None:
                self._left -= 1
                self._claimed += 1
                self._run(hand)
            self._settle()
        except BaseException:
            # Ctrl-C, or a failing test: the job goes back uncounted and the exception to whoever called.
            self._let_go()
            raise

    def _trade(self) -> Hand | None:
        claimed_at, ended = self._clock.monotonic(), tuple(self._owed)
        # What the last hand brought is owed by now.
        self._hand, self._claims = None, []
        settled = self._exchange.settle_and_claim(
            ended, self._claims, workers=(self._worker,), queues=None, hand=1
        )
        self._count(settled)
        self._hand = hand = Hand(self._claims, claimed_at=claimed_at)
        self._held.add(hand)
        self._exchange.note(ended, settled)
        return hand if hand.claims else None

    def _run(self, hand: Hand) -> None:
        job = hand.start_next(self._runs.begin)
        if job is None:
            # Its job was cancelled between the claim and here.
            self._owed += self._exchange.take_back(hand)
            return
        ended = self._runs.carry_out(job)
        hand.finish(job, ended)
        self._owed += hand.steal()
        if self._raise_errors and isinstance(ended.outcome, Failed) and job.error is not None:
            self._settle()
            raise job.error

    def _let_go(self) -> None:
        """Settle what is over and release what is not, wherever the interrupt has struck."""
        if self._hand is not None:
            # The run under way may have settled itself.
            self._owed += (*self._exchange.take_back(self._hand), *self._hand.abandon(Released()))
        owed = self._owed_keys()
        for claim in self._claims:
            self._exchange.permits.release(claim)
            if (claim.id, claim.token) not in owed:
                self._owed.append(Ended(claim, Released(), 0.0))
        # What cannot be written now stays owed; the interrupt is the news.
        with contextlib.suppress(JobqError):
            self._settle()
        # What was settled, but not yet let go of.
        for key in set(self._held.keys()) - self._owed_keys():
            self._held.drop(key)

    def _owed_keys(self) -> set[Key]:
        return {(one.claim.id, one.claim.token) for one in self._owed}

    def _settle(self) -> None:
        ended = tuple(self._owed)
        self._count(self._exchange.settle(ended))
        self._hand, self._claims = None, []
        self._exchange.deliver()

    def _count(self, settled: Sequence[Settled]) -> None:
        self._owed.clear()
        for one in settled:
            self._verdicts[Verdict(one.verdict)] += 1


def end_of(until: datetime | Duration, clock: Clock) -> datetime:
    """Return the instant that a drain goes on to, which takes a clock that it can move."""
    if not clock.deterministic:
        raise ArgumentError("until", "the clock moves by itself", fix="Open the job queue with a FakeClock.")
    if isinstance(until, datetime):
        return require_aware(until, argument="until")
    return shift(clock.now(), to_seconds(until, argument="until"), argument="until")


def run_until(
    until: datetime,
    *,
    clock: Clock,
    steps: Sequence[Callable[[], object]],
    next_due: Callable[[], datetime | None],
) -> None:
    """Alternate between ``steps`` and moving the clock to the next due time, and end exactly at ``until``.

    Waiting is what moves a deterministic clock.
    """
    for step in steps:
        step()
    while (now := clock.now()) < until:
        due = next_due()
        target = until if due is None else min(max(due, now), until)
        clock.wait(threading.Event(), (target - now).total_seconds() or 0.001)
        for step in steps:
            step()
