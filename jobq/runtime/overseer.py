"""The overseer: looks after what goes on too long, a hand, a run budget, a stop."""

from collections.abc import Callable, Iterable
from typing import Protocol

from jobq.cancellation import CancelReason
from jobq.clock import Clock
from jobq.log import get_logger
from jobq.model.events import Event, JobStuck
from jobq.runtime.context import RunningJob
from jobq.runtime.exchange import Exchange
from jobq.runtime.hand import Ended, Hand
from jobq.runtime.heartbeat import Heartbeat
from jobq.runtime.held import Held, Key
from jobq.service import IN_USE, Service
from jobq.trouble import Trouble

logger = get_logger(__name__)

#: Seconds of the monotonic clock: a hand this old is divided, looked at this often, so that within twice of it what is
#: over is settled and what has not begun is free for others.
OLD = 0.010
#: Seconds between a run budget's end and the report that the handler is stuck.
STUCK_AFTER = 5.0
#: The pause, in seconds, while nothing is claimed.
IDLE = 60.0


class Advancing(Protocol):
    """A stop that goes forward whenever somebody looks."""

    def advance(self) -> None:
        """Do what is due."""
        ...

    def pause(self) -> float:
        """Return how many seconds may pass before the next step is due."""
        ...


class Overseer(Service):
    """Divides hands that take too long, ends run budgets, drives a stop that was asked from within.

    It sleeps while there is nothing to look after; a busy worker wakes it only then, so that a hand costs no switch of
    threads.
    """

    name = "overseer"

    def __init__(
        self,
        *,
        clock: Clock,
        held: Held,
        exchange: Exchange,
        heartbeat: Heartbeat,
        trouble: Trouble,
        tell: Callable[[Event], None],
    ) -> None:
        super().__init__(clock=clock, trouble=trouble)
        self._tell = tell
        self._held = held
        self._exchange = exchange
        self._heartbeat = heartbeat
        self._hands: dict[int, tuple[Hand, float]] = {}
        self._budgets: dict[Key, tuple[RunningJob, float]] = {}
        self._told: set[Key] = set()
        self._owed: list[Ended] = []
        #: The stop under way.
        self.stopping: Advancing | None = None

    @property
    def stuck(self) -> tuple[int, ...]:
        """The ids of the jobs that were reported as stuck and still run."""
        return tuple(sorted(job_id for job_id, _ in list(self._told)))

    def watch(self, hand: Hand) -> None:
        """Look after a hand of several jobs, until :meth:`forget`."""
        # Its age counts from here and not from its claim, which may have waited long for the write lock.
        self._hands[id(hand)] = (hand, self.clock.monotonic())
        self.stir(OLD)

    def forget(self, hand: Hand) -> None:
        """Look after a hand no more."""
        self._hands.pop(id(hand), None)

    def watch_budget(self, job: RunningJob, deadline: float) -> None:
        """Ask a run to stop when its budget is over, at ``deadline`` of the monotonic clock."""
        self._budgets[job.claim.id, job.claim.token] = (job, deadline)
        self.stir(max(0.0, deadline - self.clock.monotonic()))

    def recall(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Have the unstarted jobs of all hands released, or of those of one queue or with jobs of one kind."""
        for hand, _ in list(self._hands.values()):
            if queue in (None, hand.queue) and (kind is None or hand.holds(kind)):
                hand.recalled = True
        self.poke()

    def tick(self) -> None:
        """Do all that is due."""
        now = self.clock.monotonic()
        for hand, opened in list(self._hands.values()):
            if hand.divisible and (hand.recalled or now - opened >= OLD):
                self._owed += self._exchange.take_back(hand)
        self._check_budgets(now)
        self._heartbeat.check()
        if self.stopping is not None:
            self.stopping.advance()
        self.settle()

    def pause(self) -> float:
        """Return how long nothing can fall due, in seconds of real time."""
        if self._hands:
            return OLD
        seconds = IN_USE if self.take_used() or len(self._held) else IDLE
        if self._owed:
            seconds = OLD
        if self._budgets:
            seconds = min(seconds, self._next_deadline() - self.clock.monotonic())
        if self.stopping is not None:
            seconds = min(seconds, self.stopping.pause())
        return max(seconds, 0.001)

    def after_fork(self) -> None:
        """Forget what only the parent's threads do."""
        super().after_fork()
        self.reset()

    def reset(self) -> None:
        """Look after nothing."""
        self._hands.clear()
        self._budgets.clear()
        self._told.clear()
        self._owed.clear()
        self.stopping = None

    def owe(self, ended: Iterable[Ended]) -> None:
        """Take over ended runs that somebody else could not settle."""
        self._owed += ended

    def settle(self) -> None:
        """Write down what was taken out of hands; what cannot be written now is tried again with the next tick."""
        owed = self._owed
        if owed:
            self._exchange.settle(owed)
            self._owed = []
            self._exchange.announce()

    def prune(self) -> None:
        """Forget the budgets of runs that are over."""
        for key, (job, _) in list(self._budgets.items()):
            hand = self._held.find(key)
            if hand is None or not hand.is_running(job):
                self._budgets.pop(key, None)
                self._told.discard(key)

    def _check_budgets(self, now: float) -> None:
        self.prune()
        for key, (job, deadline) in list(self._budgets.items()):
            if now >= deadline + STUCK_AFTER and key not in self._told:
                self._report_stuck(key, job, now)
            elif now >= deadline:
                job.cancel_token.request(CancelReason.TIMEOUT)

    def _report_stuck(self, key: Key, job: RunningJob, now: float) -> None:
        self._told.add(key)
        ran = now - job.cancel_token.started
        logger.warning("jobq.job.stuck", job_id=job.id, kind=job.kind, worker=job.claim.worker, ran=round(ran, 3))
        self._tell(
            JobStuck(job_id=job.id, kind=job.kind, queue=job.queue, worker=job.claim.worker, ran=ran)
        )

    def _next_deadline(self) -> float:
        now = self.clock.monotonic()
        waits = [deadline if now < deadline else deadline + STUCK_AFTER for _, deadline in self._budgets.values()]
        return min((at for at in waits if at > now), default=now + IN_USE)
