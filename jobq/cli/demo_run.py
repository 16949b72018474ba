"""One run of ``jobq demo``: lists, enqueues and works at the same time, and shows how far it is."""

import time

from jobq.cli.logs import shown_logs
from jobq.cli.output import note
from jobq.cli.progress import Bar, make_bar
from jobq.cli.signals import Signals, stop_gracefully
from jobq.examples.hashing import QUEUE
from jobq.examples.ledger import Ledger
from jobq.examples.walk import entries
from jobq.jobqueue import JobQueue
from jobq.model.events import JobStateChanged
from jobq.model.job import Job
from jobq.runtime.runner import Runner

#: How often the bar moves, in seconds.
_STEP = 0.05
#: How often it is looked for what other processes did, in seconds, and at how many jobs: the oldest, which end first.
_LOOK = 1.0
_LOOKED_AT = 1_000
#: How often the total is tried again when the directory changed meanwhile.
_TRIES = 3


class DemoRun:
    """Hashes one directory; the numbers are there when :meth:`run` has returned True."""

    def __init__(self, jobs: JobQueue, signals: Signals, directory: str, *, workers: int) -> None:
        self._jobs = jobs
        self._signals = signals
        self._workers = workers
        self._ended: set[int] = set()
        self.directory = directory
        #: How long listing and hashing took.
        self.seconds = 0.0
        #: Directories that could not be listed and names that could not be kept, each with the reason.
        self.troubles: list[tuple[str, str]] = []
        self.ledger = Ledger(jobs, directory)
        self.parent: Job | None = None

    @property
    def hashed(self) -> int:
        """How many jobs of this directory ended during this run."""
        return len(self.ledger.open & self._ended)

    def run(self, *, json: bool) -> bool:
        """Work until the parent job has ended; return False when a signal stopped it before."""
        started = time.monotonic()
        self._warn_when_paused()
        runner = Runner(self._jobs, workers={QUEUE: self._workers}, delegates=self._jobs)
        bar = make_bar(json=json, unit="files")
        with shown_logs(about_jobs=False), self._jobs.bus.subscribe(JobStateChanged, self._count):
            runner.start()
            try:
                done = self._list(bar) and self._hash(bar)
                self.seconds = time.monotonic() - started
                done = done and self._add_up(bar)
            finally:
                bar.close()
                stop_gracefully(self._signals, runner.stop, lambda: runner.stop(grace=0), note)
        return done

    def _list(self, bar: Bar) -> bool:
        found = entries(self.directory, database=self._jobs.path, troubles=self.troubles)
        for _ in self.ledger.enqueue(found, self.troubles):
            self._show(bar, "listing and hashing")
            if self._signals.count:
                return False
        return True

    def _hash(self, bar: Bar) -> bool:
        """Wait until every job of a file has ended, here or in another process."""
        looked = time.monotonic()
        while missing := self.ledger.open - self._ended:
            self._show(bar, "hashing")
            self._signals.wait(_STEP)
            if self._signals.count:
                return False
            if time.monotonic() - looked >= _LOOK:
                looked = time.monotonic()
                states = self._jobs.store.states(sorted(missing)[:_LOOKED_AT])
                self._ended.update(job_id for job_id, state in states.items() if state.terminal)
        return True

    def _add_up(self, bar: Bar) -> bool:
        for _ in range(_TRIES):
            parent_id = self.ledger.finish()
            if not self._wait(parent_id, bar):
                return False
            self.parent = self._jobs.get(parent_id)
            if self.ledger.covers(parent_id):
                break
            self.ledger.forget_parent()
        return True

    def _wait(self, parent_id: int, bar: Bar) -> bool:
        while not self._jobs.get(parent_id).state.terminal:
            self._show(bar, "adding up")
            self._signals.wait(_STEP)
            if self._signals.count:
                return False
        return True

    def _show(self, bar: Bar, stage: str) -> None:
        settled = self.ledger.settled
        bar.update(settled + self.hashed, settled + len(self.ledger.open), stage)

    def _count(self, event: JobStateChanged) -> None:
        if event.state.terminal:
            self._ended.add(event.job_id)

    def _warn_when_paused(self) -> None:
        if any(queue.name == QUEUE and queue.paused for queue in self._jobs.queues(hidden=True)):
            note(f"the queue {QUEUE} is paused, nothing will be hashed until it is resumed")
