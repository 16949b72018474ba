"""Maintenance: what has to happen now and then however busy the workers are."""

from collections.abc import Iterator

from jobq.batches import REST
from jobq.jobqueue import JobQueue
from jobq.log import get_logger
from jobq.runtime.exchange import Exchange
from jobq.runtime.held import Held
from jobq.runtime.linekeeper import LineKeeper
from jobq.runtime.sleepguard import SleepGuard
from jobq.service import Service
from jobq.sweep import Sweep
from jobq.trouble import Trouble

logger = get_logger(__name__)

#: Seconds between ticks, between two checkpoints, and between two looks for what the retention lets go.
EVERY, CHECKPOINT_EVERY, SWEEP_EVERY = 1.0, 30.0, 60.0
#: Seconds between two looks for what may heal.
HEAL_EVERY = 60.0


class Maintenance(Service):
    """Watches the clocks, takes back expired leases, heals and removes jobs, keeps the files small.

    And it writes what runs have told of themselves, and reports a transaction that somebody has left open.
    """

    name = "maintenance"

    def __init__(
        self,
        jobs: JobQueue,
        *,
        held: Held,
        exchange: Exchange,
        guard: SleepGuard,
        lines: LineKeeper,
        trouble: Trouble,
    ) -> None:
        super().__init__(clock=jobs.clock, trouble=trouble)
        self._jobs = jobs
        self._held = held
        self._exchange = exchange
        self._guard = guard
        self._lines = lines
        self._checkpoint_at = jobs.clock.monotonic() + CHECKPOINT_EVERY
        self._heal_at = jobs.clock.monotonic()
        self._healing: Iterator[tuple[int, ...]] | None = None
        self._sweep_at = jobs.clock.monotonic()
        self._sweep: Sweep | None = None

    def tick(self) -> None:
        """Do what is due; looks on a reader first, because the write lock is everybody's."""
        # First: whatever writes would wait for that transaction.
        self._jobs.blocks.report()
        self._exchange.observe()
        if self._jobs.store.look(self._exchange.request(None)).expired:
            self._jobs.store.reclaim(hold_expired=self._guard.holding)
            self._exchange.announce()
        self._write_progress()
        now = self.clock.monotonic()
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + CHECKPOINT_EVERY
            self._jobs.store.checkpoint()
        # A clock that has just jumped says nothing of ages.
        if self._jobs.config.self_heal and now >= self._heal_at and not self._guard.holding:
            self._heal_at = now + HEAL_EVERY
            self._healing = self._jobs.healing()
        if self._healing is not None and next(self._healing, None) is None:
            self._healing = None
        if self._sweep is None and now >= self._sweep_at and not self._guard.holding:
            self._sweep_at = now + SWEEP_EVERY
            self._sweep = self._jobs.sweep()
        if self._sweep is not None:
            self._step(self._sweep)
        self._guard.expect(self.pause())
        # Last: a table of lines that cannot be written must not keep anything else from being done.
        if self._lines.keep():
            self._exchange.announce()
        if not self._guard.holding:
            self._lines.prune()

    def pause(self) -> float:
        """Return the seconds between two ticks."""
        return EVERY if self._sweep is None and self._healing is None else REST

    def stop(self) -> None:
        """End the loop; nobody is expected to look at the clocks any more."""
        super().stop()
        self._guard.forget()

    def end(self) -> None:
        """Write the last lines; the handlers have ended by now."""
        self._lines.finish()

    def _step(self, sweep: Sweep) -> None:
        # Forgotten first: one that raises is over, and the next look finds what it left.
        self._sweep = None
        if sweep.step():
            self._sweep = sweep
        elif sweep.total:
            logger.info("jobq.job.pruned", count=sweep.total, kept=sweep.kept)

    def _write_progress(self) -> None:
        waiting = [job.reporter for job in self._held.running() if job.reporter is not None and job.reporter.due]
        for reporter in waiting:
            reporter.flush()
        if waiting:
            self._exchange.announce()
