"""The answer to an enqueue."""

from collections.abc import Callable
from typing import Any

from jobq.errors import NotPublished
from jobq.model.duration import Duration
from jobq.model.job import Job
from jobq.store.base import Placed


class Enqueued:
    """A job that waits now, or that held the dedupe key already.

    Two answers are equal when they name the same job in the same way. The whole value of the job is built when somebody
    looks at it. An enqueue with ``join=False`` inside a transaction is carried out after it; there all three are None.
    So they are where the job is staged in an outbox, whose row is ``outbox_id``.
    """

    __slots__ = ("_job", "_placed", "_wait", "created", "id", "outbox_id")

    def __init__(self, placed: Placed, wait: Callable[[int, Duration | None], Job]) -> None:
        #: The id of the job.
        self.id = placed.id
        #: False when a queued or running job held the dedupe key; ``id`` is that job then.
        self.created = placed.created
        #: The number of the row in the host's outbox; None where the job was not staged.
        self.outbox_id: int | None = None
        self._placed = placed
        self._wait = wait
        self._job: Job | None = None

    @classmethod
    def later(cls, wait: Callable[[int, Duration | None], Job]) -> "Enqueued":
        """Return the answer of an enqueue that is still to be carried out: id, created and job are None."""
        nothing: Any = None
        return cls(Placed(nothing, nothing, nothing, lambda _, known: known, nothing), wait)

    @classmethod
    def staged(cls, outbox_id: int) -> "Enqueued":
        """Return the answer of an enqueue that was staged in an outbox."""

        def wait(job_id: int, timeout: Duration | None) -> Job:
            raise NotPublished(outbox_id)

        answer = cls.later(wait)
        answer.outbox_id = outbox_id
        return answer

    @property
    def job(self) -> Job:
        """The job as it was when it was enqueued, or found to hold the key; ``jobs.get`` returns it as it is now."""
        if self._job is None:
            self._job = self._placed.load()
        return self._job

    def wait(self, timeout: Duration | None = None) -> Job:
        """Block in real time until the job ends, and return it.

        Raises:
            WaitTimeout: it has not ended within ``timeout``; the job goes on.
            NotPublished: it is staged in an outbox and has no id.
        """
        return self._wait(self.id, timeout)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Enqueued):
            return NotImplemented
        return (self.id, self.created, self.outbox_id) == (other.id, other.created, other.outbox_id)

    def __hash__(self) -> int:
        return hash((self.id, self.created, self.outbox_id))

    def __repr__(self) -> str:
        staged = "" if self.outbox_id is None else f", outbox_id={self.outbox_id}"
        return f"Enqueued(id={self.id}, created={self.created}{staged})"
