"""Short verbs around a store, so that a test shows only what it is about."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from jobq.model.effects import Verdict
from jobq.model.events import Change
from jobq.model.job import Actor, Job, JobState, Requeued
from jobq.model.lease import Claim, ClaimRequest, Settlement
from jobq.model.outcome import Outcome
from jobq.model.retry import RetryPolicy
from jobq.store import open_store
from jobq.store.base import Draft, Durability, KindRow, Placed, QueueRow, Store
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.store import SqliteStore
from jobq.testing import FakeClock

#: The lease length of every claim, in seconds.
LEASE = 60.0
#: No jitter and a delay that is easy to tell.
POLICY = RetryPolicy(base=10, maximum=1000, jitter=0)


class Workbench:
    """One store, and the verbs that most tests need."""

    def __init__(self, store: Store, clock: FakeClock, feed: list[Change]) -> None:
        self.store = store
        self.clock = clock
        #: Every change that this store's database was told to announce, in order.
        self.feed = feed

    @property
    def now(self) -> datetime:
        """The present time of the fake clock."""
        return self.clock.now()

    def after(self, seconds: float) -> datetime:
        """Return the instant so many seconds from now."""
        return self.now + timedelta(seconds=seconds)

    def place(self, kind: str = "a", **options: Any) -> Placed:
        """Enqueue one job."""
        return self.store.enqueue([draft(kind, **options)])[0]

    def enqueue(self, kind: str = "a", **options: Any) -> int:
        """Enqueue one job and return its id."""
        return self.place(kind, **options).id

    def register(self, name: str = "a", *, cap: int | None = None, queue: str = "default") -> None:
        """Register one kind."""
        self.store.register([KindRow(name, queue, 50, 5, None, cap, {})], [QueueRow(queue)], [])

    def claim(self, *workers: str, durable: bool = False, **options: Any) -> list[Claim]:
        """Claim for one worker, or for those named."""
        return self.store.claim(request(*workers, **options), durable=durable)

    def start(self, kind: str = "a", **options: Any) -> Claim:
        """Enqueue one job and claim it."""
        job_id = self.enqueue(kind, **options)
        (claim,) = self.claim(kinds=(kind,), queues=(options.get("queue", "default"),))
        assert claim.id == job_id
        return claim

    def settle(self, claim: Claim, outcome: Outcome, policy: RetryPolicy = POLICY) -> Verdict:
        """Settle one claim."""
        (settled,) = self.store.settle([Settlement(claim.id, claim.token, outcome, policy)], durable=False)
        assert settled.job_id == claim.id
        return Verdict(settled.verdict)

    def get(self, job_id: int) -> Job:
        """Return one job."""
        return self.store.get([job_id])[job_id]

    def state(self, job_id: int) -> JobState:
        """Return the state of one job."""
        return self.store.states([job_id])[job_id]

    def cancel(self, job_id: int) -> Verdict | None:
        """Cancel one job."""
        return self.store.cancel([job_id])[job_id]

    def requeue(self, *ids: int, queue: str | None = None, dry_run: bool = False) -> Requeued:
        """Requeue jobs as a user."""
        return self.store.requeue(ids, queue=queue, actor=Actor.USER, dry_run=dry_run)

    def running(self, kind: str) -> int:
        """Return how many jobs of a kind run."""
        return self.store.kinds([kind])[0].running


def draft(kind: str = "a", **options: Any) -> Draft:
    """Return a draft with everything resolved."""
    fields = {"queue": "default", "payload": "{}", "priority": 50, "max_attempts": 3, **options}
    return Draft(kind=kind, **fields)


def request(*workers: str, **options: Any) -> ClaimRequest:
    """Return a request of one worker, or of those named."""
    return ClaimRequest(workers or ("w",), LEASE, **options)


def ids(claims: Sequence[Claim]) -> list[int]:
    """Return the ids of claims, in order."""
    return [claim.id for claim in claims]


class Stores(ABC):
    """Opens stores of one database. Subclasses know how; the tests do not."""

    def __init__(self, path: str, clock: FakeClock) -> None:
        self.path = path
        self.clock = clock
        self.feed: list[Change] = []
        #: The dice of the retry jitter.
        self.dice: Callable[[], float] = lambda: 0.0
        self._closers: list[Callable[[], None]] = []

    @abstractmethod
    def open(self, *, now: Callable[[], datetime] | None = None, busy_timeout: float = 5.0) -> Store:
        """Open a store that shares what it can with the others of this process."""

    @abstractmethod
    def open_elsewhere(self, feed: Callable[[list[Change]], None]) -> Store:
        """Open a store that shares nothing, as in another process."""

    def bench(self, *, busy_timeout: float = 5.0) -> Workbench:
        """Return a workbench around a store."""
        return Workbench(self.open(busy_timeout=busy_timeout), self.clock, self.feed)

    def bench_elsewhere(self) -> Workbench:
        """Return a workbench around a store that shares nothing with the others."""
        feed: list[Change] = []
        return Workbench(self.open_elsewhere(feed.extend), self.clock, feed)

    def close(self) -> None:
        """Close every store that was opened."""
        while self._closers:
            self._closers.pop()()


class SqliteStores(Stores):
    """Stores of one SQLite file."""

    def open(self, *, now: Callable[[], datetime] | None = None, busy_timeout: float = 5.0) -> Store:
        """Open a store on the engine that this process shares."""
        store = open_store(
            self.path,
            now=now or self.clock.now,
            roll=lambda: self.dice(),
            feed=self.feed.extend,
            busy_timeout=busy_timeout,
        )
        self._closers.append(store.close)
        return store

    def open_elsewhere(self, feed: Callable[[list[Change]], None]) -> Store:
        """Open a store on an engine of its own: another writer with another lock."""
        engine = Engine(self.path, feed=feed)
        store = SqliteStore(
            engine,
            now=self.clock.now,
            roll=lambda: self.dice(),
            durability=Durability.BALANCED,
            busy_timeout=5.0,
            close=engine.close,
        )
        self._closers.append(store.close)
        return store
