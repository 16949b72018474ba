"""The runner: threads that run jobs, or the calling thread in their place.

The order of a stop is in :mod:`jobq.runtime.shutdown`.
"""

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any

from jobq import fork
from jobq.arguments import check_int
from jobq.errors import ArgumentError, RunnerBusy
from jobq.identity import new_runner_id
from jobq.jobqueue import JobQueue
from jobq.model.duration import Duration, to_seconds
from jobq.model.runner import RunnerRow
from jobq.outbox.outbox import Outbox
from jobq.runtime.around import Around
from jobq.runtime.crew import Crew
from jobq.runtime.drain import Counts, Drain, end_of, run_until
from jobq.runtime.execute import ONLY_ERRORS, inside_handler
from jobq.runtime.hand import Ended
from jobq.runtime.health import Bootstrap, Health
from jobq.runtime.leader import Leader
from jobq.runtime.parts import Parts
from jobq.runtime.staffing import check_outboxes, check_workers, threads_of
from jobq.threads import Alone


class Runner:
    """Runs the jobs of a job queue: with threads between ``start()`` and ``stop()``, or with ``drain()``.

    It serves every queue of the configuration and of the handlers, or only those that ``workers`` names with their
    number of threads. ``delegates`` is handed to the handlers; ``around()``, or ``around(job)`` where it takes the
    running job, is entered around each run; ``leader`` may leave the schedules to other processes, by default every
    runner ticks them; the relays of ``outboxes`` run with it. As a context manager it starts and stops itself. It may
    be started again after a stop, and in a forked child, which inherits no threads. Worker threads never keep the
    interpreter from exiting.
    """

    def __init__(
        self,
        jobs: JobQueue,
        *,
        workers: Mapping[str, int] | None = None,
        delegates: Any = None,
        around: Around | None = None,
        grace: Duration | None = None,
        leader: Leader | None = None,
        outboxes: Iterable[Outbox] = (),
    ) -> None:
        if not isinstance(jobs, JobQueue):
            problem = f"a JobQueue is needed, not a {type(jobs).__name__}"
            raise ArgumentError("jobs", problem, fix="Open one with jobq.open(path) and give that to the runner.")
        self._jobs = jobs
        self._workers = None if workers is None else check_workers(workers)
        self._grace = jobs.config.grace if grace is None else _check_grace(grace)
        self._parts = Parts(
            jobs,
            delegates=delegates,
            around=around,
            describe=self._describe,
            on_fatal=self._on_fatal,
            leader=leader,
            outboxes=check_outboxes(outboxes, jobs),
        )
        self._lock = threading.RLock()
        self._draining = Alone()
        self._owed: list[Ended] = []
        self._crew: Crew | None = None
        self._forked = False
        self._id = new_runner_id()
        self._started_at = jobs.clock.now()
        #: Renews the leases; ``heartbeat.tick()`` does it here and now.
        self.heartbeat = self._parts.heartbeat
        #: Takes back expired leases and watches the clocks, in the same way.
        self.maintenance = self._parts.maintenance
        #: Enqueues the slots of schedules; its ``tick()`` returns what it dispatched.
        self.scheduler = self._parts.scheduler
        self._parts.watch.pools = lambda: () if self._crew is None else self._crew.pools
        fork.register(self)

    def start(self) -> None:
        """Clean up, then start the threads; does nothing while they run.

        Raises:
            StoreError, ForkedHandle, ForeignHandle, SchemaTooNew: the database cannot be used; no thread was started.
            RunnerBusy: it is being drained.
        """
        with self._lock:
            if self._crew is not None and self._crew.running:
                return
            if self._draining.busy:
                raise RunnerBusy("a thread drains it")
            self._parts.reset()
            owed, self._owed = self._owed, []
            self._parts.overseer.owe(owed)
            self._forked = False
            self._id = new_runner_id()
            self._started_at = self._jobs.clock.now()
            self.bootstrap()
            self.heartbeat.begin()
            crew = Crew(
                self._jobs,
                runner_id=self._id,
                threads=threads_of(self._jobs) if self._workers is None else self._workers,
                bench=self._parts.bench,
                heartbeat=self.heartbeat,
                overseer=self._parts.overseer,
                watch=self._parts.watch,
                maintenance=self.maintenance,
                herald=self._parts.herald,
                scheduler=self.scheduler,
                relays=self._parts.relays,
            )
            self._crew = crew
            crew.start()

    def stop(self, grace: Duration | None = None) -> None:
        """Stop claiming, let handlers end within ``grace``, ask the others to stop, void what still runs after 5 s.

        Idempotent; does nothing before start. From a handler or a listener on one of the runner's own threads it only
        begins the stop and returns; from elsewhere it returns when everything has stopped. It starts no thread.
        """
        crew = self._crew
        if crew is not None and crew.running:
            crew.stop(self._grace if grace is None else _check_grace(grace))

    def wait(self, timeout: Duration | None = None) -> bool:
        """Block in real time until the runner has stopped, and return whether it has; at once before start."""
        crew = self._crew
        seconds = None if timeout is None else max(0.0, to_seconds(timeout, argument="timeout"))
        return crew is None or not crew.running or crew.shutdown.wait_until_over(seconds)

    def bootstrap(self) -> Bootstrap:
        """Store the declared schedules, cancel the queued jobs of retired kinds, take back expired leases: each start.

        After a sleep of the machine expired leases are granted one more length first.
        """
        return self._parts.bootstrap()

    def run_once(self) -> bool:
        """Run the best job that is due on the calling thread; return False when there is none.

        Raises:
            RunnerBusy: as for :meth:`drain`.
        """
        return self.drain(limit=1).claimed > 0

    def drain(
        self, limit: int | None = None, until: datetime | Duration | None = None, raise_errors: bool = False
    ) -> Counts:
        """Run what is due on the calling thread, jobs enqueued meanwhile included, and say how the runs ended.

        Jobs come from every queue, at most ``limit`` of them. With ``until``, an instant or a duration from now,
        schedules and relays tick, and the clock is moved to each next due time, slot or lease end and at last to
        ``until``; that takes a deterministic clock, such as ``jobq.testing.FakeClock``. With ``raise_errors`` the first
        failed run's exception is raised, once that is written down. An exception that is no ``Exception`` always goes
        through, and its job is released.

        Raises:
            RunnerBusy: the runner's threads run, another thread drains it, or this is inside a handler.
            InsideTransaction: it is inside a transaction, or inside ``joined`` of an outbox.
            ArgumentError: ``until`` with a clock that moves by itself.
        """
        most = None if limit is None else check_int(limit, argument="limit", least=0)
        end = None if until is None else end_of(until, self._jobs.clock)
        self._jobs.blocks.refuse_handlers("drain")
        if inside_handler():
            raise RunnerBusy("it was asked from within a handler")
        drain = Drain(
            clock=self._jobs.clock,
            held=self._parts.held,
            exchange=self._parts.exchange,
            runs=self._parts.runs(ONLY_ERRORS),
            owed=self._owed,
            limit=most,
            raise_errors=raise_errors,
        )
        if not self._draining.run(lambda: self._work(drain, end)):
            raise RunnerBusy("another thread drains it")
        return drain.counts

    def health(self) -> Health:
        """Return how the runner is, from what this process knows; no database is asked."""
        crew = self._crew
        running = crew is not None and crew.running
        alive = sum(worker.thread.is_alive() for worker in crew.workers) if crew is not None and running else 0
        return self._parts.health(running=running, forked=self._forked, workers=alive)

    def __enter__(self) -> "Runner":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def before_fork(self) -> None:
        """Do nothing: the database closes its handles by itself."""

    def after_fork_in_parent(self) -> None:
        """Do nothing."""

    def after_fork_in_child(self) -> None:
        """Forget the threads, which are the parent's."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.unsubscribe()
        self._forked = crew is not None and not crew.shutdown.over
        self._lock = threading.RLock()
        self._draining.after_fork()
        self._owed = []
        self._parts.after_fork()

    def _work(self, drain: Drain, end: datetime | None) -> None:
        # A start on another thread is waited for; from here on it finds this busy.
        with self._lock:
            if self._crew is not None and self._crew.running:
                raise RunnerBusy("its threads run")
        with self._parts.companions(self._id):
            if end is None:
                drain.work()
            else:
                relays = (relay.catch_up for relay in self._parts.relays)
                steps = (self.scheduler.tick, *relays, drain.work)
                run_until(end, clock=self._jobs.clock, steps=steps, next_due=self._next_due)

    def _next_due(self) -> datetime | None:
        retries = (relay.next_due() for relay in self._parts.relays)
        due = self._jobs.store.look(self._parts.exchange.request(None)).next_due, self.scheduler.next_due(), *retries
        return min((when for when in due if when is not None), default=None)

    def _describe(self) -> RunnerRow:
        return self._parts.describe(self._id, self._started_at, {} if self._crew is None else self._crew.threads)

    def _on_fatal(self) -> None:
        crew = self._crew
        if crew is not None:
            crew.shutdown.begin(0.0)


def _check_grace(grace: Duration) -> float:
    return max(0.0, to_seconds(grace, argument="grace"))
