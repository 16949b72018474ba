"""Maintenance: what has to happen now and then however busy the workers are."""

from jobq.jobqueue import JobQueue
from jobq.runtime.exchange import Exchange
from jobq.runtime.held import Held
from jobq.runtime.service import Service
from jobq.runtime.sleepguard import SleepGuard
from jobq.runtime.trouble import Trouble

#: Seconds between ticks, and between two checkpoints.
EVERY, CHECKPOINT_EVERY = 1.0, 30.0


class Maintenance(Service):
    """Watches the clocks, takes back expired leases, keeps the files small, writes the progress that waits."""

    name = "maintenance"

    def __init__(self, jobs: JobQueue, *, held: Held, exchange: Exchange, guard: SleepGuard, trouble: Trouble) -> None:
        super().__init__(clock=jobs.clock, trouble=trouble)
        self._jobs = jobs
        self._held = held
        self._exchange = exchange
        self._guard = guard
        self._checkpoint_at = jobs.clock.monotonic() + CHECKPOINT_EVERY

    def tick(self) -> None:
        """Do what is due; looks on a reader first, because the write lock is everybody's."""
        self._exchange.observe()
        if self._jobs.store.look(self._exchange.request(None)).expired:
            self._jobs.store.reclaim(hold_expired=self._guard.holding)
            self._exchange.announce()
        now = self.clock.monotonic()
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + CHECKPOINT_EVERY
            self._jobs.store.checkpoint()
        self._guard.expect(self.pause())
        self._write_progress()

    def _write_progress(self) -> None:
        waiting = [job.reporter for job in self._held.running() if job.reporter is not None and job.reporter.due]
        for reporter in waiting:
            reporter.flush()
        if waiting:
            self._exchange.announce()

    def pause(self) -> float:
        """Return the seconds between two ticks."""
        return EVERY

    def stop(self) -> None:
        """End the loop; nobody is expected to look at the clocks any more."""
        super().stop()
        self._guard.forget()
