"""The heartbeat: one statement renews every lease of a runner."""

from collections.abc import Callable

from jobq.cancellation import CancelReason
from jobq.jobqueue import JobQueue
from jobq.log import get_logger
from jobq.model.runner import RunnerRow
from jobq.runtime.held import Held
from jobq.service import Service
from jobq.trouble import Trouble

logger = get_logger(__name__)


class Heartbeat(Service):
    """Renews the leases of all claimed jobs every third of their length, and keeps the runner's row fresh.

    The answer tells which leases were lost and which jobs were asked to cancel. A beat that fails is counted and the
    next one comes; a lease that no beat has reached for its whole length counts as lost, and until a beat is written
    again nothing is claimed.
    """

    name = "heartbeat"

    def __init__(
        self, jobs: JobQueue, *, held: Held, trouble: Trouble, describe: Callable[[], RunnerRow]
    ) -> None:
        super().__init__(clock=jobs.clock, trouble=trouble)
        self._jobs = jobs
        self._held = held
        self._describe = describe
        self._lease = jobs.config.lease
        self._written = jobs.clock.monotonic()

    @property
    def may_claim(self) -> bool:
        """Whether a beat was written less than a lease ago: who cannot beat had better not claim."""
        return self.clock.monotonic() - self._written < self._lease

    def begin(self) -> None:
        """Count the silence from now."""
        self._written = self.clock.monotonic()

    def tick(self) -> None:
        """Renew every lease, tell the handlers what the answer says, and write the runner's row."""
        before = self.clock.monotonic()
        keys = self._held.keys()
        try:
            beats = self._jobs.store.extend(keys, durable=False) if keys else []
            self._jobs.store.beat_runner(self._describe())
        except BaseException:
            self.check()
            raise
        self._written = before
        answered = {(beat.job_id, beat.token) for beat in beats}
        for key in keys:
            if key not in answered:
                self._lose(key)
        for beat in beats:
            if beat.cancel_requested:
                self._held.request((beat.job_id, beat.token), CancelReason.USER)

    def check(self) -> None:
        """Give up the leases that no beat has reached for their whole length."""
        now = self.clock.monotonic()
        if now - self._written < self._lease:
            return
        for hand in self._held.hands():
            if now - hand.claimed_at >= self._lease:
                for claim in hand.claims:
                    self._lose((claim.id, claim.token))

    def pause(self) -> float:
        """Return a third of the lease, in seconds."""
        return self._lease / 3

    def _lose(self, key: tuple[int, str]) -> None:
        if self._held.request(key, CancelReason.LEASE_LOST):
            logger.warning("jobq.lease.lost", job_id=key[0])
