"""One run of ``jobq work``: a runner, the limits it stops at, and what is said about each attempt."""

import argparse
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jobq.cli.exits import Exit
from jobq.cli.keeping import kept_lines
from jobq.cli.logs import shown_logs
from jobq.cli.output import note
from jobq.cli.signals import Signals, stop_gracefully
from jobq.cli.telling import Teller
from jobq.jobqueue import JobQueue
from jobq.model.events import JobStateChanged
from jobq.model.job import JobState
from jobq.model.lease import ClaimRequest
from jobq.outbox.outbox import Outbox
from jobq.runtime.runner import Runner
from jobq.runtime.staffing import threads_of

#: Seconds between two looks at the limits; a signal and the last job of a burst are noticed at once.
_LOOK = 0.5
_LOOK_BURST = 0.02


class Once:
    """Leads until it is over: a runner's scheduler then finds nothing to do for itself."""

    def __init__(self) -> None:
        self.over = False

    def leads(self) -> bool:
        """Whether it is not over."""
        return not self.over

    def resign(self) -> None:
        """Do nothing."""


class Shift:
    """Works until something says stop."""

    def __init__(
        self, jobs: JobQueue, signals: Signals, arguments: argparse.Namespace, *, outboxes: Sequence[Outbox]
    ) -> None:
        self._jobs = jobs
        self._signals = signals
        self._arguments = arguments
        self._telling = arguments.json or arguments.verbose or sys.stderr.isatty()
        self._teller = Teller(jobs, json=arguments.json)
        self._lock = threading.Lock()
        self._begun = 0
        self._started: dict[int, JobStateChanged] = {}
        self._ended: Counter[str] = Counter()
        # What became of the jobs of others whose leases expired.
        self._expired: Counter[str] = Counter()
        workers = dict(arguments.workers) if arguments.workers else None
        # A burst ticks once, before its workers start: beside them it would race the look for what is left.
        self._leader = Once() if arguments.burst else None
        self._outboxes = outboxes
        self._runner = Runner(
            jobs, workers=workers, around=self._one_run, leader=self._leader, outboxes=outboxes
        )

    def work(self) -> int:
        """Run jobs and return the exit code."""
        arguments, runner = self._arguments, self._runner
        logs = shown_logs(about_jobs=not self._telling, of_handlers=arguments.verbose)
        with logs, kept_lines(self._jobs), self._jobs.bus.subscribe(JobStateChanged, self._tell):
            self._teller.begin(self._queues() or threads_of(self._jobs), named=bool(arguments.workers))
            self._tick_once()
            runner.start()
            healthy = self._wait()
            if self._signals.count:
                note("stopping: waiting for running handlers; a second signal cancels them")
            grace = self._jobs.config.grace if arguments.grace is None else arguments.grace
            stop_gracefully(self._signals, lambda: runner.stop(grace=grace), lambda: runner.stop(grace=0), note)
        self._say_end()
        failed = not healthy or (arguments.burst and (self._ended + self._expired)[JobState.FAILED])
        return Exit.FAILED if failed else Exit.DONE

    def _tick_once(self) -> None:
        if self._leader is not None:
            # What is declared is stored and a schedule's jobs are made as at any start, but on this thread.
            self._runner.bootstrap()
            self._runner.scheduler.tick()
            self._leader.over = True
            for outbox in self._outboxes:
                outbox.relay.catch_up()

    def _say_end(self) -> None:
        counts = ", ".join(f"{number} {what}" for what, number in sorted(self._ended.items()))
        text = f"stopped after {sum(self._ended.values())} runs" + (f": {counts}" if counts else "")
        expired = ", ".join(f"{number} {what}" for what, number in sorted(self._expired.items()))
        note(text + (f"; expired leases of other workers: {expired}" if expired else ""))

    def _wait(self) -> bool:
        """Return when it is time to stop; False when the runner stopped by itself."""
        arguments, started = self._arguments, time.monotonic()
        look = _LOOK_BURST if arguments.burst else _LOOK
        while not self._signals.count:
            left = look if arguments.max_runtime is None else started + arguments.max_runtime - time.monotonic()
            if left <= 0 or self._enough() or (arguments.burst and self._nothing_left()):
                return True
            if not self._runner.health().running:
                return False
            self._signals.wait(min(look, left))
        return True

    def _enough(self) -> bool:
        return self._arguments.max_jobs is not None and self._begun >= self._arguments.max_jobs

    def _nothing_left(self) -> bool:
        """Whether nothing is due and nothing runs here.

        Looked at twice around the running jobs: what one of them enqueues as it ends is seen by the second look.
        """
        return not self._due() and not self._running_here() and not self._due()

    def _due(self) -> bool:
        jobs = self._jobs
        outlook = jobs.store.look(
            ClaimRequest(
                workers=(),
                lease_length=jobs.config.lease,
                kinds=jobs.handlers.kinds(),
                queues=self._queues(),
                kind_limits=jobs.config.kind_limits,
            )
        )
        return bool(outlook.ready)

    def _running_here(self) -> bool:
        mine = f"{socket.gethostname()}:{os.getpid()}:"
        running = self._jobs.find(state=JobState.RUNNING, limit=None)
        return any((job.worker or "").startswith(mine) for job in running)

    def _queues(self) -> tuple[str, ...] | None:
        return tuple(queue for queue, _ in self._arguments.workers) if self._arguments.workers else None

    @contextmanager
    def _one_run(self) -> Iterator[None]:
        """Stop claiming as soon as the last run that --max-jobs allows has begun."""
        with self._lock:
            self._begun += 1
            enough = self._enough()
        if enough:
            self._signals.wake()
            self._runner.stop()
        yield

    def _count_unbegun(self) -> None:
        """Count a run that ended before its handler was called, because of its payload say."""
        with self._lock:
            self._begun = max(self._begun, sum(self._ended.values()))
        if self._enough():
            self._signals.wake()
            self._runner.stop()

    def _tell(self, event: JobStateChanged) -> None:
        if event.state is JobState.RUNNING:
            self._started[event.job_id] = event
            return
        started = self._started.pop(event.job_id, None)
        if event.previous is not JobState.RUNNING:
            return
        if started is None:
            # Nothing of this process ran it: it took back the lease of a worker that died or hangs.
            self._expired[event.state] += 1
            if self._telling:
                self._teller.expired(event)
            return
        what = self._what(event, started)
        self._ended[what] += 1
        self._count_unbegun()
        if self._telling:
            self._teller.ended(event, started, what)
        if self._arguments.burst:
            self._signals.wake()

    def _what(self, event: JobStateChanged, started: JobStateChanged) -> str:
        if event.state is not JobState.QUEUED:
            return str(event.state)
        # An attempt that was given back does not count any more.
        return "retried" if event.attempt >= started.attempt else "given back"
