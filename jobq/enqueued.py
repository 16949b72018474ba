"""The answer to an enqueue."""

from collections.abc import Callable
from typing import Any

from jobq.model.duration import Duration
from jobq.model.job import Job


class Enqueued:
    """A job that waits now, or that held the dedupe key already.

    Two answers are equal when they name the same job in the same way. The whole value of the job is built when somebody
    looks at it. An enqueue with ``join=False`` inside a transaction is carried out after it; there all three are None.
    """

    __slots__ = ("_job", "_load", "_wait", "created", "id")

    def __init__(
        self,
        job_id: int,
        created: bool,
        *,
        load: Callable[[], Job],
        wait: Callable[[int, Duration | None], Job],
    ) -> None:
        #: The id of the job.
        self.id = job_id
        #: False when a queued or running job held the dedupe key; ``id`` is that job then.
        self.created = created
        self._load = load
        self._wait = wait
        self._job: Job | None = None

    @classmethod
    def later(cls, wait: Callable[[int, Duration | None], Job]) -> "Enqueued":
        """Return the answer of an enqueue that is still to be carried out: id, created and job are None."""
        nothing: Any = None
        return cls(nothing, nothing, load=lambda: nothing, wait=wait)

    @property
    def job(self) -> Job:
        """The job as it was when it was enqueued, or found to hold the key; ``jobs.get`` returns it as it is now."""
        if self._job is None:
            self._job = self._load()
        return self._job

    def wait(self, timeout: Duration | None = None) -> Job:
        """Block in real time until the job ends, and return it.

        Raises:
            WaitTimeout: it has not ended within ``timeout``; the job goes on.
        """
        return self._wait(self.id, timeout)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Enqueued):
            return NotImplemented
        return (self.id, self.created) == (other.id, other.created)

    def __hash__(self) -> int:
        return hash((self.id, self.created))

    def __repr__(self) -> str:
        return f"Enqueued(id={self.id}, created={self.created})"
