"""What an enqueue puts into the database."""

from datetime import datetime
from typing import NamedTuple

from jobq.model.job import Actor


class Draft(NamedTuple):
    """One job to be inserted. ``delay`` (seconds) counts from the insert; ``run_at`` wins.

    Queue, priority, attempts and deferrals that are None are as the kind's last registration says, by default
    "default", 50, five and no limit.
    """

    kind: str
    queue: str | None
    payload: str
    priority: int | None
    max_attempts: int | None
    max_deferrals: int | None = None
    delay: float = 0.0
    run_at: datetime | None = None
    dedupe_key: str | None = None
    parent_id: int | None = None
    actor: str = Actor.SYSTEM.value
    tenant_id: str | None = None
    subject: str | None = None
    meta: str | None = None
    schedule: str | None = None
    slot: datetime | None = None
    catch_up: bool = False
    #: Whether the queue is only that of the kind's handler, so that the subject's label may name another.
    queue_of_kind: bool = False

    @property
    def routable(self) -> bool:
        """Whether the label of its subject says where it goes, because its enqueue named no queue."""
        return self.subject is not None and (self.queue is None or self.queue_of_kind)

    def limits(self, priority: int, max_attempts: int, max_deferrals: int | None) -> tuple[int, int, int | None]:
        """Return priority, attempts and deferrals of the job: what the draft leaves open is as the kind says."""
        complete = self.queue is not None and self.priority is not None and self.max_attempts is not None
        return (
            priority if self.priority is None else self.priority,
            max_attempts if self.max_attempts is None else self.max_attempts,
            # An enqueue that knows its handler names all four, and no bound of deferrals is one of its answers. A
            # schedule leaves that to the kind always.
            self.max_deferrals
            if self.max_deferrals is not None or (complete and self.schedule is None)
            else max_deferrals,
        )

    def filled(self, queue: str, priority: int, max_attempts: int, max_deferrals: int | None) -> "Draft":
        """Return it with what it leaves open as the kind says."""
        priority, max_attempts, max_deferrals = self.limits(priority, max_attempts, max_deferrals)
        return self._replace(
            queue=queue if self.queue is None else self.queue,
            priority=priority,
            max_attempts=max_attempts,
            max_deferrals=max_deferrals,
        )
