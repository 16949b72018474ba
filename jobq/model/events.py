"""What the bus tells: one frozen class per fact, with ids, states and numbers and never a payload or an error text."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import attrs

from jobq.model.job import JSON, JobState

#: The metadata of a field that never reaches the event log: ``attrs.field(metadata=jobq.PRIVATE)``.
PRIVATE: Final[Mapping[str, bool]] = MappingProxyType({"jobq_private": True})


class Change(NamedTuple):
    """One committed change of a job's state, as the store hands it to its feed.

    A plain tuple, because a busy queue makes three for each job and most of them are never looked at;
    :meth:`event` builds the public value when somebody does.
    """

    job_id: int
    kind: str
    queue: str
    previous: JobState | None
    state: JobState
    attempt: int
    #: When the job may run next: the wake-up of waiting workers needs it. None for terminal and running jobs.
    run_at: datetime | None
    at: datetime

    def event(self) -> "JobStateChanged":
        """Return the public event of this change."""
        return JobStateChanged(
            job_id=self.job_id,
            kind=self.kind,
            queue=self.queue,
            previous=self.previous,
            state=self.state,
            attempt=self.attempt,
            at=self.at,
        )


@attrs.frozen(kw_only=True)
class Event:
    """The root of everything that can be published on the bus; hosts derive their own frozen attrs classes."""

    #: A private event reaches listeners, and streams that ask for private ones; it never reaches the event log.
    private: ClassVar[bool] = False


def is_event_class(found: type[Event]) -> bool:
    """Whether instances of this subclass are values: it is an attrs class itself, and frozen like the root."""
    return "__attrs_attrs__" in vars(found) and found.__setattr__ is Event.__setattr__


def is_private(field: "attrs.Attribute[object]") -> bool:
    """Whether a field is marked with :data:`PRIVATE`."""
    return bool(field.metadata.get("jobq_private"))


@attrs.frozen(kw_only=True)
class Gap(Event):
    """What a stream begins with when it cannot go on where its client left off; then comes all that is still kept."""

    #: The id that the client named.
    since: str
    #: How many events of any type were missed; None where the id is another bus's, after a restart say.
    missed: int | None


@attrs.frozen(kw_only=True)
class JobStateChanged(Event):
    """A job was enqueued (``previous`` is None) or went from one state to another."""

    job_id: int
    kind: str
    queue: str
    previous: JobState | None
    state: JobState
    attempt: int
    at: datetime


@attrs.frozen(kw_only=True)
class JobProgressed(Event):
    """A handler said how far it is; told when it was written to the job's row, so not for every call."""

    job_id: int
    kind: str
    queue: str
    attempt: int
    done: float
    total: float | None
    #: What the handler wrote for people, redacted, at most 500 characters.
    note: str | None = attrs.field(metadata=PRIVATE)
    at: datetime


@attrs.frozen(kw_only=True)
class LogLine(Event):
    """A line of the log that was written inside the run of a job; told when it was kept."""

    private: ClassVar[bool] = True

    job_id: int
    attempt: int
    at: datetime
    level: str
    event: str
    #: The other fields of the line, as JSON values.
    fields: Mapping[str, JSON]


@attrs.frozen(kw_only=True)
class TraceEntry(Event):
    """A handler told or heard something that it traced; only where the trace is on."""

    private: ClassVar[bool] = True

    job_id: int
    kind: str
    queue: str
    attempt: int
    direction: str
    #: In full, with whatever secrets it holds.
    text: str
    #: How many characters of it were too many.
    cut: int
    at: datetime


@attrs.frozen(kw_only=True)
class JobStuck(Event):
    """A handler went on for five seconds after its run budget was over; a thread cannot be killed."""

    job_id: int
    kind: str
    queue: str
    worker: str
    #: Seconds since the run began.
    ran: float


@attrs.frozen(kw_only=True)
class QueueStateChanged(Event):
    """A queue was paused or resumed."""

    queue: str
    paused: bool
    at: datetime


@attrs.frozen(kw_only=True)
class KindStateChanged(Event):
    """A kind was paused or resumed."""

    kind: str
    paused: bool
    at: datetime


@attrs.frozen(kw_only=True)
class ScheduleStateChanged(Event):
    """A schedule was paused or resumed."""

    schedule: str
    paused: bool
    at: datetime


@attrs.frozen(kw_only=True)
class ScheduleFired(Event):
    """A schedule enqueued one of its entries; ``slot`` is None where it was run by hand.

    ``created`` is False where a queued or running job held the entry's own dedupe key: ``job_id`` is that job.
    """

    schedule: str
    slot: datetime | None
    entry: str
    job_id: int
    created: bool
    #: Whether the slot was missed, or stands for others that were.
    catch_up: bool
    at: datetime


@attrs.frozen(kw_only=True)
class HealthChanged(Event):
    """A part of a runner stopped working, or works again; told once per change."""

    component: str
    healthy: bool
    #: The class of the error and SQLite's word for it, or "".
    detail: str
