"""A worker thread: settle what ended and claim what is next in one transaction, run it, again."""

import os
import socket
import threading
from collections.abc import Callable, Sequence

from jobq.clock import Clock
from jobq.errors import JobqError, StoreError
from jobq.log import get_logger
from jobq.model.lease import Claim
from jobq.model.outcome import Failed
from jobq.runtime.exchange import Exchange
from jobq.runtime.hand import Hand, next_size
from jobq.runtime.heartbeat import Heartbeat
from jobq.runtime.held import Held
from jobq.runtime.overseer import Overseer
from jobq.runtime.pool import Pool, Seat
from jobq.runtime.runs import Runs
from jobq.trouble import FATAL, FIRST_PAUSE, Trouble

logger = get_logger(__name__)


class Bench:
    """What the worker threads of a runner share."""

    def __init__(
        self,
        *,
        clock: Clock,
        held: Held,
        exchange: Exchange,
        runs: Runs,
        heartbeat: Heartbeat,
        overseer: Overseer,
        trouble: Trouble,
        on_claim: Callable[[], None],
        on_recall: Callable[[], None],
        largest_hand: int,
    ) -> None:
        self.clock = clock
        self.held = held
        self.exchange = exchange
        self.runs = runs
        self.heartbeat = heartbeat
        self.overseer = overseer
        self.trouble = trouble
        #: Called when jobs are held that were not before.
        self.on_claim = on_claim
        #: Called when a hand is asked for its unstarted jobs.
        self.on_recall = on_recall
        #: Under a clock that tests move by hand, hands would only hide what a test wants to see.
        self.largest_hand = 1 if clock.deterministic else largest_hand


class Worker:
    """One thread that serves one queue until its pool is closed and it has settled what it ran.

    Whatever a handler or a bug raises, the thread goes on; it is a daemon, so it never keeps a process alive.
    """

    def __init__(self, name: str, *, pool: Pool, bench: Bench, on_end: Callable[[], None]) -> None:
        self.pool = pool
        self._bench = bench
        self._on_end = on_end
        self._name = f"{socket.gethostname()}:{os.getpid()}:{name}"
        self._seat: Seat = pool.seat(self._name)
        self._pid = os.getpid()
        self._size = 1
        self._hand: Hand | None = None
        self._given_up = False
        self.thread = threading.Thread(target=self._loop, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def give_up(self) -> None:
        """Let the thread end although it could not settle all it ran: the leases will expire."""
        self._given_up = True

    def _loop(self) -> None:
        while self._survive():
            pass
        if os.getpid() == self._pid:
            self._bench.trouble.forget(self._name)
            self._on_end()

    def _survive(self) -> bool:
        try:
            return self._turn()
        except BaseException as error:  # what the recovery raised; once more, after a pause
            logger.error("jobq.worker.crashed", worker=self._name, error=type(error).__name__)
            self.pool.nap(self._seat, FIRST_PAUSE)
            return not self._given_up

    def _turn(self) -> bool:
        """Do round after round; return whether to go on after one that failed. In a forked child there is none."""
        try:
            while self._round():
                self._bench.trouble.worked(self._name)
        except (StoreError, *FATAL) as error:
            self._pause_after(error)
        except BaseException as error:  # a bug of ours, or of a host's logging, must not cost the thread
            logger.error("jobq.worker.crashed", worker=self._name, error=type(error).__name__)
            self._recover()
            self.pool.nap(self._seat, FIRST_PAUSE)
        else:
            return False
        return not self._given_up

    def _round(self) -> bool:
        if self.pool.closed:
            self._settle()
            return False
        if not self._bench.heartbeat.may_claim:
            self._settle()
            if self._bench.clock.deterministic:
                # Nobody failed: the clock was moved past a beat that real time has yet to bring.
                self._bench.heartbeat.poke()
            self.pool.nap(self._seat, FIRST_PAUSE)
            return True
        seats = self.pool.reserve(self._seat)
        hand = self._trade(seats) if seats else self.pool.rest(self._seat)
        return hand is None or self._play(hand)

    def _trade(self, seats: Sequence[Seat]) -> Hand | None:
        """Settle and claim, for the idle threads of the pool too; return the own hand, if there is one."""
        bench = self._bench
        claims: list[Claim] = []
        try:
            ended = [one for seat in seats for one in seat.owed]
            claimed_at = bench.clock.monotonic()
            settled = bench.exchange.settle_and_claim(
                ended,
                claims,
                workers=tuple(seat.name for seat in seats),
                queues=(self.pool.queue,),
                hand=self._size,
                on_permit=self.pool.wake,
            )
            for seat in seats:
                seat.owed = []
            hands = self._deal(seats, claims, claimed_at)
        except BaseException:
            self.pool.fail(seats)
            raise
        self._hand = hands[0]
        self.pool.share(seats, hands)
        bench.exchange.note(ended, settled)
        return self._hand

    def _deal(self, seats: Sequence[Seat], claims: Sequence[Claim], claimed_at: float) -> list[Hand | None]:
        if not claims:
            return [None] * len(seats)
        dealt: dict[str, list[Claim]] = {}
        for claim in claims:
            dealt.setdefault(claim.worker, []).append(claim)
        hands = [self._hold(dealt.get(seat.name), claimed_at) for seat in seats]
        self._bench.on_claim()
        return hands

    def _hold(self, claims: list[Claim] | None, claimed_at: float) -> Hand | None:
        if claims is None:
            return None
        hand = Hand(claims, claimed_at=claimed_at, on_recall=self._bench.on_recall)
        self._bench.held.add(hand)
        return hand

    def _play(self, hand: Hand) -> bool:
        """Run the jobs of a hand one after the other, until none is left or they are asked back.

        Return whether this is still the process that claimed them.
        """
        bench, runs = self._bench, self._bench.runs
        self._hand = hand
        shared = len(hand) > 1
        if shared:
            bench.overseer.watch(hand)
        ran: list[float] = []
        more = True
        while more and not self.pool.closed and (job := hand.start_next(runs.begin)) is not None:
            ended = runs.carry_out(job)
            if os.getpid() != self._pid:
                # The handler forked and returned on both sides; the run, its lease and its end are the parent's.
                return False
            more = hand.finish(job, ended)
            ran.append(ended.ran or 0.0)
        self._seat.owed += bench.exchange.take_back(hand)
        self._hand = None
        if shared:
            bench.overseer.forget(hand)
        self._size = next_size(self._size, bench.largest_hand, ran)
        return True

    def _settle(self) -> None:
        ended = self._seat.owed
        settled = self._bench.exchange.settle(ended)
        self._seat.owed = ended[len(settled) :]
        self._bench.exchange.deliver()

    def _pause_after(self, error: JobqError) -> None:
        pause = self._bench.trouble.failed(self._name, error)
        if isinstance(error, FATAL):
            self._given_up = True
        else:
            self.pool.nap(self._seat, pause)

    def _recover(self) -> None:
        """After a bug: settle what can be settled, one by one, and leave the rest to the end of its lease."""
        hand, self._hand = self._hand, None
        if hand is not None:
            self._bench.overseer.forget(hand)
            self._seat.owed += self._bench.exchange.take_back(hand)
            self._seat.owed += hand.abandon(Failed(error="the worker thread crashed"))
        owed, self._seat.owed = self._seat.owed, []
        for ended in owed:
            try:
                self._bench.exchange.settle([ended])
            except StoreError:
                self._seat.owed.append(ended)
            except Exception as error:
                self._bench.held.drop((ended.claim.id, ended.claim.token))
                logger.error("jobq.job.abandoned", job_id=ended.claim.id, error=type(error).__name__)
        self._bench.exchange.deliver()
