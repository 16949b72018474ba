"""What a run ended as: the values that a worker hands to the settle."""

from datetime import datetime
from typing import TypeAlias

import attrs

from jobq.model.job import FailureClass


@attrs.frozen
class Succeeded:
    """The handler returned; ``result`` is JSON text, None for no result."""

    result: str | None = None


@attrs.frozen(kw_only=True)
class Failed:
    """The run counts and did not succeed; a retryable one is tried again while attempts are left."""

    error: str
    reason: str | None = None
    failure_class: FailureClass | None = None
    retryable: bool = True
    #: Where it was raised, innermost frame first; for the log, not for the row.
    where: str | None = None


@attrs.frozen(kw_only=True)
class Postponed:
    """The handler deferred itself: come back at ``until``, the attempt is not counted."""

    until: datetime
    reason: str | None = None


@attrs.frozen
class Cancelled:
    """The handler stopped because a cancel was asked; without one on the row it is a failed attempt."""


@attrs.frozen
class Released:
    """Given back unfinished (a shutdown, or never started in a hand); the attempt is not counted."""


@attrs.frozen
class Voided:
    """Its thread would not stop: the token ends now, the job waits until its lease would have ended."""


@attrs.frozen
class Expired:
    """Nobody renewed the lease; the run counts, because a job may be what killed its process."""


Outcome: TypeAlias = Succeeded | Failed | Postponed | Cancelled | Released | Voided | Expired
