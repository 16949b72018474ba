"""A drain: the worker's steps on the calling thread, one job at a time, until nothing is left to do."""

import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import attrs

from jobq.clock import Clock
from jobq.model.effects import Verdict
from jobq.model.lease import Settled
from jobq.model.outcome import Failed, Released
from jobq.runtime.exchange import Exchange
from jobq.runtime.hand import Ended, Hand
from jobq.runtime.held import Held
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
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{threading.current_thread().name}"
        self._verdicts = dict.fromkeys(Verdict, 0)
        self._claimed = 0

    @property
    def counts(self) -> Counts:
        """What the drain has come to so far."""
        names = (field.name for field in attrs.fields(Counts) if field.name != "claimed")
        return Counts(claimed=self._claimed, **{name: self._verdicts[Verdict(name)] for name in names})

    def work(self) -> None:
        """Run what is due, jobs enqueued meanwhile included, until nothing is or the limit is reached."""
        while self._left > 0:
            hand = self._trade()
            if hand is None:
                return
            self._left -= 1
            self._claimed += 1
            self._run(hand)
        self._settle()

    def _trade(self) -> Hand | None:
        claimed_at, ended = self._clock.monotonic(), tuple(self._owed)
        settled, claims = self._exchange.settle_and_claim(ended, workers=(self._worker,), queues=None, hand=1)
        hand = Hand(claims, claimed_at=claimed_at)
        self._held.add(hand)
        self._exchange.note(ended, settled)
        self._count(settled)
        return hand if claims else None

    def _run(self, hand: Hand) -> None:
        try:
            job = hand.start_next(self._runs.begin)
            assert job is not None, "a fresh hand starts its job"
            ended = self._runs.carry_out(job)
            hand.finish(job, ended)
        except BaseException:
            # Ctrl-C, or a failing test: the job goes back uncounted and the exception to whoever called.
            self._owed += (*hand.abandon(Released()), *self._exchange.take_back(hand))
            self._settle()
            raise
        self._owed += hand.steal()
        if self._raise_errors and isinstance(ended.outcome, Failed) and job.error is not None:
            self._settle()
            raise job.error

    def _settle(self) -> None:
        self._count(self._exchange.settle(tuple(self._owed)))

    def _count(self, settled: Sequence[Settled]) -> None:
        self._owed.clear()
        for one in settled:
            self._verdicts[Verdict(one.verdict)] += 1


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
