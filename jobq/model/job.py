"""The words for a job: its states, priorities and actors, and the values that the lookups return."""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, TypeAlias

import attrs

#: A JSON value: None, bool, int, float, str, or lists and string-keyed dicts of them.
JSON: TypeAlias = Any

#: The queue of a kind that names none; it always exists.
DEFAULT_QUEUE = "default"
#: The attempts of a job where nobody names a number.
DEFAULT_ATTEMPTS = 5
#: The bounds of a priority.
LOWEST, HIGHEST = -1000, 1000


class JobState(StrEnum):
    """Where a job is; the last three are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether a job in this state has ended."""
        return self in _TERMINAL


_TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


class Actor(StrEnum):
    """Who asked for a job."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


class FailureClass(StrEnum):
    """Whether trying a failed job again can help."""

    TRANSIENT = "transient"
    UNRECOVERABLE = "unrecoverable"


class Priority(IntEnum):
    """Named priorities; any integer from -1000 to 1000 is one, and a higher one runs first."""

    USER = 100
    INGEST = 50
    BACKFILL = 10


@attrs.frozen(kw_only=True)
class JobInfo:
    """A job without its payload and result: what listings carry.

    Times are aware and in UTC. ``attempts`` counts the runs since the job was last queued from the start; the run
    under way is included.
    """

    id: int
    kind: str
    queue: str
    state: JobState
    priority: int
    parent_id: int | None
    actor: Actor
    tenant_id: str | None
    subject: str | None
    dedupe_key: str | None
    schedule: str | None
    slot: datetime | None
    #: Whether the slot was missed when the job was made, or stands for others that were.
    catch_up: bool
    meta: Mapping[str, JSON]
    attempts: int
    max_attempts: int
    deferrals: int
    max_deferrals: int | None
    run_at: datetime
    #: "Type: text" of the last failure, or the reason of a deferral; redacted, at most 500 characters.
    last_error: str | None
    #: A code: the one a handler gave, or one of jobq's own such as "timeout" or "lease_expired".
    failure_reason: str | None
    failure_class: FailureClass | None
    progress: JSON
    worker: str | None
    token: str | None
    lease_until: datetime | None
    #: Seconds.
    lease_length: float | None
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@attrs.frozen(kw_only=True)
class Job(JobInfo):
    """A whole job. ``payload`` and ``result`` are the stored JSON values; handlers get typed ones."""

    payload: JSON
    result: JSON


@attrs.frozen(kw_only=True)
class Run:
    """One line of a job's run history: a counted run that did not succeed.

    ``number`` counts all such runs of the job and is never reset; ``attempt`` starts again after a requeue.
    """

    job_id: int
    number: int
    attempt: int
    worker: str | None
    started_at: datetime | None
    ended_at: datetime
    error: str | None
    reason: str | None
    failure_class: FailureClass | None


@attrs.frozen(kw_only=True)
class LoggedChange:
    """One line of the change log: what somebody, or self-heal, did to a job, or to a subject as a whole."""

    id: int
    at: datetime
    actor: Actor
    what: str
    job_id: int | None
    subject: str | None
    before: Mapping[str, JSON]
    after: Mapping[str, JSON]


#: Why an id is refused that no job has.
NOT_FOUND = "not found"


@attrs.frozen
class Requeued:
    """The answer to requeueing several jobs: those that run again, and those refused with the reason."""

    ids: tuple[int, ...]
    refused: tuple[tuple[int, str], ...] = ()


@attrs.frozen(kw_only=True)
class QueueInfo:
    """A queue: whether it is paused, by whom and why, what is configured, and how many of its jobs wait and run."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    paused_why: str | None
    #: Whether listings leave it out unless they are asked for all.
    hidden: bool
    #: The kinds that it accepts; None accepts all.
    kinds: tuple[str, ...] | None
    queued: int
    running: int

    @property
    def paused(self) -> bool:
        """Whether nothing is claimed from this queue."""
        return self.paused_at is not None


@attrs.frozen(kw_only=True)
class KindInfo:
    """A kind that was registered or enqueued: its defaults, its cap, its pause, and how many of its jobs wait and run.

    A field is None where no registration named it.
    """

    name: str
    queue: str | None
    priority: int | None
    max_attempts: int | None
    max_deferrals: int | None
    cap: int | None
    retry: Mapping[str, JSON] | None
    retired: bool
    paused_at: datetime | None
    paused_by: str | None
    paused_why: str | None
    #: Whether a retriage runs its jobs again.
    intake: bool
    queued: int
    running: int

    @property
    def paused(self) -> bool:
        """Whether no job of this kind is claimed."""
        return self.paused_at is not None
