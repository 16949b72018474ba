"""The facts of one run: the columns of its claim, by the names that handlers know."""

from collections.abc import Mapping
from datetime import datetime

from jobq.model.job import JSON, Actor
from jobq.model.lease import Claim
from jobq.model.payload import decode

_NO_META: Mapping[str, JSON] = {}


class Facts:
    """What the claim said; it does not follow later changes of the row."""

    __slots__ = ("_meta", "claim")

    def __init__(self, claim: Claim) -> None:
        #: The raw columns of the claim.
        self.claim = claim
        self._meta: Mapping[str, JSON] | None = None

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


def bindings(claim: Claim) -> dict[str, object]:
    """Return what every log line about a run carries."""
    return {
        "job_id": claim.id,
        "kind": claim.kind,
        "queue": claim.queue,
        "attempt": claim.attempts,
        "worker": claim.worker,
    }
