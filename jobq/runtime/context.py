"""What a handler sees of the run it is in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobq.cancellation import CancelToken
from jobq.enqueued import Enqueued
from jobq.handler import Producer
from jobq.log import Logger, get_logger
from jobq.model.duration import Duration
from jobq.model.job import JSON, Actor
from jobq.model.lease import Claim
from jobq.model.payload import decode

_NO_META: Mapping[str, JSON] = {}


class RunningJob:
    """One run of a job, as its handler gets it.

    The facts are those of the claim; they do not follow later changes of the row. Making one costs a microsecond:
    everything else is built when somebody looks at it.
    """

    __slots__ = ("_jobs", "_log", "_meta", "cancel_token", "claim", "delegates", "error")

    def __init__(self, claim: Claim, *, jobs: Producer, cancel_token: CancelToken, delegates: Any = None) -> None:
        #: The raw columns of the claim.
        self.claim = claim
        #: Asks the handler to stop.
        self.cancel_token = cancel_token
        #: What the host gave the runner.
        self.delegates = delegates
        #: What the handler raised; known once the run is over.
        self.error: BaseException | None = None
        self._jobs = jobs
        self._meta: Mapping[str, JSON] | None = None
        self._log: Logger | None = None

    @property
    def id(self) -> int:
        """The id of the job."""
        return self.claim.id

    @property
    def kind(self) -> str:
        """The kind of the job."""
        return self.claim.kind

    @property
    def queue(self) -> str:
        """The queue it was claimed from."""
        return self.claim.queue

    @property
    def attempt(self) -> int:
        """The number of this run, from 1."""
        return self.claim.attempts

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has in all."""
        return self.claim.max_attempts

    @property
    def deferrals(self) -> int:
        """How often the job was deferred before."""
        return self.claim.deferrals

    @property
    def priority(self) -> int:
        """The priority of the job."""
        return self.claim.priority

    @property
    def parent_id(self) -> int | None:
        """The id of the job that enqueued this one."""
        return self.claim.parent_id

    @property
    def actor(self) -> Actor:
        """Who asked for the job."""
        return Actor(self.claim.actor)

    @property
    def tenant_id(self) -> str | None:
        """The tenant the job belongs to."""
        return self.claim.tenant_id

    @property
    def subject(self) -> str | None:
        """What the job is about."""
        return self.claim.subject

    @property
    def meta(self) -> Mapping[str, JSON]:
        """What the enqueuer sent along beside the payload; empty where it sent nothing."""
        if self._meta is None:
            self._meta = decode(self.claim.meta) if self.claim.meta else _NO_META
        return self._meta

    @property
    def slot(self) -> datetime | None:
        """The due instant of the schedule that made this job; None where none did."""
        return self.claim.slot

    @property
    def catch_up(self) -> bool:
        """Whether that instant was missed when the job was made, or stands for others that were."""
        return self.claim.catch_up

    @property
    def last_error(self) -> str | None:
        """How the run before this one ended, redacted."""
        return self.claim.last_error

    @property
    def log(self) -> Logger:
        """A logger bound to job id, kind, queue, attempt and worker."""
        if self._log is None:
            self._log = get_logger("jobq.handler").bind(**bindings(self.claim))
        return self._log

    def enqueue(
        self,
        kind_or_payload: Any,
        payload: Any = None,
        *,
        queue: str | None = None,
        priority: int | str | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        dedupe_key: str | None = None,
        max_attempts: int | None = None,
        actor: Actor | str | None = None,
        tenant_id: str | None = None,
        subject: str | None = None,
        meta: Mapping[str, JSON] | None = None,
    ) -> Enqueued:
        """Enqueue a child of this job; it is committed at once, whatever becomes of this run.

        It names this job as its parent and inherits actor, tenant and priority unless told otherwise. The rest, and
        what is raised, is as in :meth:`jobq.JobQueue.enqueue`.
        """
        return self._jobs.enqueue(
            kind_or_payload,
            payload,
            queue=queue,
            priority=self.claim.priority if priority is None else priority,
            delay=delay,
            run_at=run_at,
            dedupe_key=dedupe_key,
            max_attempts=max_attempts,
            parent_id=self.claim.id,
            actor=self.claim.actor if actor is None else actor,
            tenant_id=self.claim.tenant_id if tenant_id is None else tenant_id,
            subject=subject,
            meta=meta,
        )


def bindings(claim: Claim) -> dict[str, object]:
    """Return what every log line about a run carries."""
    return {
        "job_id": claim.id,
        "kind": claim.kind,
        "queue": claim.queue,
        "attempt": claim.attempts,
        "worker": claim.worker,
    }
