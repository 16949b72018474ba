"""The threads of one running runner, from start to stop."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from jobq.errors import JobqError
from jobq.jobqueue import JobQueue
from jobq.log import get_logger
from jobq.model.events import KindStateChanged, QueueStateChanged
from jobq.outbox.relay import Relay
from jobq.runtime.heartbeat import Heartbeat
from jobq.runtime.herald import Herald
from jobq.runtime.maintenance import Maintenance
from jobq.runtime.overseer import Overseer
from jobq.runtime.pool import Pool
from jobq.runtime.scheduler import Scheduler
from jobq.runtime.shutdown import Shutdown
from jobq.runtime.watch import Watch
from jobq.runtime.worker import Bench, Worker
from jobq.service import Service

logger = get_logger(__name__)


class Crew:
    """Worker threads by queue, and the services that look after them. It is started once and stopped once."""

    def __init__(
        self,
        jobs: JobQueue,
        *,
        runner_id: str,
        threads: Mapping[str, int],
        bench: Bench,
        heartbeat: Heartbeat,
        overseer: Overseer,
        watch: Watch,
        maintenance: Maintenance,
        herald: Herald,
        scheduler: Scheduler,
        relays: Sequence[Relay] = (),
    ) -> None:
        self._jobs = jobs
        #: How many worker threads each queue has.
        self.threads = threads
        self._runner_id = runner_id
        self._bench = bench
        self._overseer = overseer
        self._watch = watch
        # In the order in which they start; leases are renewed before anything is claimed. They stop in the other order,
        # the heartbeat last but for the herald, who tells what the others did.
        self._services: tuple[Service, ...] = (herald, heartbeat, overseer, maintenance, watch, scheduler, *relays)
        self._starting = threading.RLock()
        self._unsubscribe: list[Callable[[], None]] = []
        self.pid = os.getpid()
        self.pools = tuple(Pool(queue, on_idle=watch.on_idle) for queue in threads)
        self.workers = tuple(
            Worker(f"jobq-{pool.queue}-{number}", pool=pool, bench=bench, on_end=self._worker_ended)
            for pool in self.pools
            for number in range(1, threads[pool.queue] + 1)
        )
        self.shutdown = Shutdown(
            pools=self.pools,
            workers=self.workers,
            held=bench.held,
            exchange=bench.exchange,
            recall=self._recall,
            finish=self._finish,
        )

    @property
    def running(self) -> bool:
        """Whether its threads belong to this process and have not all stopped."""
        return self.pid == os.getpid() and not self.shutdown.over

    def start(self) -> None:
        """Listen, then start the services, then the workers; where a thread cannot be started, stop the others.

        A stop that is asked for meanwhile, from whatever thread, finds or leaves none of them running.
        """
        try:
            with self._starting:
                self._start()
        except BaseException:
            self.stop(0.0)
            raise
        logger.info("jobq.runner.started", queues=[pool.queue for pool in self.pools], workers=len(self.workers))

    def stop(self, grace: float) -> None:
        """Stop in the order of :mod:`jobq.runtime.shutdown`, and wait for it unless this is one of its threads."""
        self.shutdown.begin(grace)
        if not self._is_inside():
            self.shutdown.wait()

    def unsubscribe(self) -> None:
        """Hear nothing any more."""
        unsubscribe, self._unsubscribe = self._unsubscribe, []
        for end in unsubscribe:
            end()

    def _start(self) -> None:
        bus, gates = self._jobs.bus, self._bench.exchange.permits.gates()
        self._unsubscribe = [
            bus.watch(self._watch.on_change, wants=self._watch.concerns),
            bus.subscribe(QueueStateChanged, self._on_queue).close,
            bus.subscribe(KindStateChanged, self._on_kind).close,
            *(gate.on_release(self._wake_all) for gate in gates),
        ]
        for service in self._services:
            service.start()
        for worker in self.workers:
            worker.start()
        if self.shutdown.over:
            # Stopped on this thread, by a signal handler of the host, while others were still to be started.
            self._finish()

    def _is_inside(self) -> bool:
        threads: Sequence[threading.Thread | None] = [
            *(worker.thread for worker in self.workers),
            *(service.thread for service in self._services),
        ]
        return threading.current_thread() in threads

    def _recall(self) -> None:
        self._overseer.stopping = self.shutdown
        self._overseer.recall()

    def _finish(self) -> None:
        """Stop the services; every step is taken although another one failed, and may be taken again."""
        # After a start on another thread, so that everything that it starts is stopped.
        with self._starting, ExitStack() as steps:
            herald, heartbeat, overseer, *others = self._services
            # Last in, first out. Leases are renewed to the last: a job that still runs must not be taken over while
            # others are waited for.
            for step in (self._forget, herald.stop, self._remove_row, heartbeat.stop, self._settle, overseer.stop):
                steps.callback(step)
            for step in (*(service.stop for service in others), self.unsubscribe):
                steps.callback(step)

    def _settle(self) -> None:
        try:
            self._overseer.settle()
        except JobqError as error:
            logger.error("jobq.runner.void_failed", error=type(error).__name__)

    def _remove_row(self) -> None:
        try:
            self._jobs.store.remove_runner(self._runner_id)
        except JobqError as error:
            logger.warning("jobq.runner.row_left", error=type(error).__name__)

    def _forget(self) -> None:
        # What could not be given up has to expire; a later start must not renew it.
        keys = self._bench.held.keys()
        for key in keys:
            self._bench.held.drop(key)

    def _worker_ended(self) -> None:
        self.shutdown.worker_ended()
        self._overseer.poke()

    def _on_queue(self, event: QueueStateChanged) -> None:
        if event.paused:
            self._overseer.recall(queue=event.queue)
        else:
            self._wake_all()

    def _on_kind(self, event: KindStateChanged) -> None:
        if event.paused:
            self._overseer.recall(kind=event.kind)
        else:
            self._wake_all()

    def _wake_all(self) -> None:
        for pool in self.pools:
            pool.wake()
