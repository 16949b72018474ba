"""The scheduler: enqueues the slots of schedules as they fall due."""

from datetime import datetime

from jobq.errors import JobqError
from jobq.jobqueue import JobQueue
from jobq.log import get_logger
from jobq.model.scheduled import Dispatched
from jobq.runtime.leader import Leader
from jobq.service import Service
from jobq.trouble import Trouble

logger = get_logger(__name__)

#: The longest pause between two ticks, in seconds: clocks are set, and other processes add schedules.
EVERY = 1.0
#: The shortest, so that a slot a moment away is waited for.
_LEAST = 0.001


class Scheduler(Service):
    """Ticks at the next deadline, and at least every second.

    A tick looks on a reader first: while nothing is due it takes no write lock and does not ask the leader.
    """

    name = "scheduler"

    def __init__(self, jobs: JobQueue, *, leader: Leader, trouble: Trouble) -> None:
        super().__init__(clock=jobs.clock, trouble=trouble)
        self._jobs = jobs
        self._leader = leader
        self._next_due: datetime | None = None

    def tick(self) -> list[Dispatched]:
        """Enqueue every slot that is due and return what was dispatched; nothing due is an empty list."""
        schedules = self._jobs.schedules
        outlook = schedules.look()
        dispatched: list[Dispatched] = []
        if outlook.names and self._leader.leads():
            dispatched = schedules.tick()
            outlook = schedules.look()
        self._next_due = outlook.next_due
        return dispatched

    def next_due(self) -> datetime | None:
        """Return when the next slot is due; None where there is none."""
        return self._jobs.schedules.look().next_due

    def pause(self) -> float:
        """Return the seconds until the next slot, at most one."""
        if self._next_due is None:
            return EVERY
        return min(max((self._next_due - self.clock.now()).total_seconds(), _LEAST), EVERY)

    def stop(self) -> None:
        """End the loop and let somebody else lead."""
        super().stop()
        try:
            self._leader.resign()
        except JobqError as error:
            logger.warning("jobq.leader.left", error=type(error).__name__)
