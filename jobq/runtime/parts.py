"""What a runner is made of, wired once and used with threads or without."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from jobq.batches import rest
from jobq.errors import JobqError
from jobq.identity import boot_id
from jobq.jobqueue import JobQueue
from jobq.log import get_logger
from jobq.model.runner import RunnerRow
from jobq.outbox.outbox import Outbox
from jobq.outbox.relay import Relay
from jobq.runtime.around import Around
from jobq.runtime.exchange import Exchange
from jobq.runtime.execute import EVERYTHING, Executor
from jobq.runtime.health import Bootstrap, Health
from jobq.runtime.heartbeat import Heartbeat
from jobq.runtime.held import Held
from jobq.runtime.herald import Herald
from jobq.runtime.leader import Leader, SoleLeader
from jobq.runtime.linekeeper import LineKeeper
from jobq.runtime.maintenance import Maintenance
from jobq.runtime.overseer import Overseer
from jobq.runtime.runs import Runs
from jobq.runtime.scheduler import Scheduler
from jobq.runtime.sleepguard import SleepGuard
from jobq.runtime.watch import Watch
from jobq.runtime.worker import Bench
from jobq.service import IN_USE, Service
from jobq.trouble import Trouble

logger = get_logger(__name__)

#: The row of a runner that has not beaten for so long is removed by the next one that starts.
FORGOTTEN_AFTER = timedelta(days=1)


class Parts:
    """The objects of one runner."""

    def __init__(
        self,
        jobs: JobQueue,
        *,
        delegates: Any,
        around: Around | None,
        describe: Callable[[], RunnerRow],
        on_fatal: Callable[[], None],
        leader: Leader | None = None,
        outboxes: Sequence[Outbox] = (),
    ) -> None:
        self._jobs = jobs
        self._delegates = delegates
        self._around = around
        self.held = held = Held(jobs.live)
        self.guard = guard = SleepGuard(jobs.clock, lease=jobs.config.lease)
        self.trouble = trouble = Trouble(lambda event: self.herald.tell(event), on_fatal=on_fatal)
        self.herald = herald = Herald(jobs.bus, clock=jobs.clock, trouble=trouble)
        self.exchange = exchange = Exchange(jobs, held=held, guard=guard, announce=herald.call)
        self.heartbeat = Heartbeat(jobs, held=held, trouble=trouble, describe=describe)
        self.overseer = Overseer(
            clock=jobs.clock,
            held=held,
            exchange=exchange,
            heartbeat=self.heartbeat,
            trouble=trouble,
            tell=herald.tell,
        )
        self.lines = LineKeeper(jobs)
        self.maintenance = Maintenance(
            jobs, held=held, exchange=exchange, guard=guard, trouble=trouble, lines=self.lines
        )
        self.watch = Watch(jobs, held=held, exchange=exchange, trouble=trouble)
        self.scheduler = Scheduler(jobs, leader=leader or SoleLeader(), trouble=trouble)
        self.relays = tuple(self._adopt(number, outbox) for number, outbox in enumerate(outboxes, 1))
        self.bench = Bench(
            clock=jobs.clock,
            held=held,
            exchange=exchange,
            runs=self.runs(EVERYTHING),
            heartbeat=self.heartbeat,
            overseer=self.overseer,
            trouble=trouble,
            on_claim=self._on_claim,
            on_recall=self._on_recall,
            largest_hand=jobs.config.hand,
        )

    def runs(self, caught: tuple[type[BaseException], ...]) -> Runs:
        """Return what carries out runs, where only ``caught`` exceptions of a handler count as its outcome."""
        executor = Executor(
            clock=self._jobs.clock,
            lines=self._jobs.lines,
            redactor=self._jobs.redactor,
            result_limit=self._jobs.config.result_max_bytes,
            around=self._around,
            caught=caught,
        )
        return Runs(
            self._jobs,
            executor=executor,
            permits=self.exchange.permits,
            delegates=self._delegates,
            on_budget=self.overseer.watch_budget,
        )

    def describe(self, runner_id: str, started_at: datetime, threads: Mapping[str, int]) -> RunnerRow:
        """Return the runner's row as of now."""
        clock = self._jobs.clock
        return RunnerRow(
            id=runner_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=threads,
            kinds=self.exchange.kinds,
            boot_id=boot_id(),
            monotonic=clock.monotonic(),
            started_at=started_at,
            beat_at=clock.now(),
        )

    @contextmanager
    def companions(self, runner_id: str) -> Iterator[None]:
        """Keep leases, budgets and cancels working beside a drain, which has no thread to spare for them.

        Under a deterministic clock no thread is started: there a test moves the time, and ticks.
        """
        threads: tuple[tuple[Service, float], ...] = (
            (self.herald, 0.0),
            (self.overseer, IN_USE),
            (self.watch, IN_USE),
            (self.heartbeat, self.heartbeat.pause()),
        )
        if self._jobs.clock.deterministic:
            threads = ()
        self.heartbeat.begin()
        self.heartbeat.last_good = None
        try:
            with contextlib.suppress(RuntimeError):  # from Python 3.12 none can be started while the interpreter exits
                for service, delay in threads:
                    service.start(after=delay)
            yield
        finally:
            # Twice, for Ctrl-C may strike as the call begins, or in it.
            try:
                self._dismiss(threads, runner_id)
            except BaseException:
                self._dismiss(threads, runner_id)
                raise

    @property
    def services(self) -> tuple[Service, ...]:
        """What has a thread of its own while the runner runs, besides the workers."""
        return (
            self.heartbeat, self.overseer, self.maintenance, self.watch, self.scheduler, *self.relays, self.herald
        )  # fmt: skip

    def bootstrap(self) -> Bootstrap:
        """Store what the code declares and clean up, as each start does; see :meth:`jobq.Runner.bootstrap`."""
        jobs = self._jobs
        self.lines.begin()
        if jobs.tracing is not None:
            jobs.tracing.file.require("trace_file")
        jobs.register()
        jobs.schedules.declare()
        rows = jobs.store.runners()
        self.guard.compare(rows, boot_id())
        for row in rows:
            if jobs.clock.now() - row.beat_at > FORGOTTEN_AFTER:
                jobs.store.remove_runner(row.id)
        self.exchange.observe()
        cancelled = self._retire()
        reclaimed = jobs.store.reclaim(hold_expired=self.guard.holding)
        jobs.deliver()
        return Bootstrap(cancelled=cancelled, reclaimed=reclaimed)

    def _retire(self) -> int:
        """Cancel what waits of retired kinds, and return how many jobs it was."""
        kinds, cancelled = self._jobs.handlers.retired(), 0
        while kinds and (some := self._jobs.store.retire(kinds)):
            cancelled += some
            rest(self._jobs)
        return cancelled

    def health(self, *, running: bool, forked: bool, workers: int) -> Health:
        """Return how the runner is; see :meth:`jobq.Runner.health`."""
        return Health(
            running=running,
            forked=forked,
            workers=workers,
            held=len(self.held),
            beating=running and self.heartbeat.may_claim,
            store_healthy=self.trouble.healthy,
            outboxes_healthy=all(relay.host_healthy for relay in self.relays),
            loops={service.name: service.age for service in self.services},
            stuck=self.overseer.stuck,
        )

    def reset(self) -> None:
        """Forget what an earlier start has left behind."""
        self.trouble.reset()
        self.overseer.reset()

    def after_fork(self) -> None:
        """Forget everything that only the parent's threads did."""
        self.held.clear()
        self.guard.after_fork()
        self.trouble.reset()
        self.exchange.permits.after_fork()
        for service in self.services:
            service.after_fork()

    def _adopt(self, number: int, outbox: Outbox) -> Relay:
        """Let a relay speak for the store together with the other loops, under a name of its own."""
        relay = outbox.relay
        relay.trouble = self.trouble
        relay.name = "relay" if number == 1 else f"relay-{number}"
        return relay

    def _on_claim(self) -> None:
        self.watch.on_claim()
        self.overseer.on_claim()

    def _on_recall(self) -> None:
        self.overseer.poke()
        self.watch.look_for_cancels()

    def _dismiss(self, threads: Sequence[tuple[Service, float]], runner_id: str) -> None:
        for service, _ in reversed(threads):
            service.stop()
        self.lines.finish()
        self._jobs.deliver()
        self.overseer.prune()
        if not threads or self.heartbeat.last_good is None:
            return
        try:
            self._jobs.store.remove_runner(runner_id)
        except JobqError as error:
            logger.warning("jobq.runner.row_left", error=type(error).__name__)
