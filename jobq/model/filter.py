"""What is looked for among the jobs."""

from datetime import datetime
from typing import NamedTuple

from jobq.model.job import JobState


class Filter(NamedTuple):
    """What a listing looks for; a field that is None does not narrow it."""

    state: JobState | None = None
    kind: str | None = None
    queue: str | None = None
    parent_id: int | None = None
    tenant_id: str | None = None
    subject: str | None = None
    dedupe_key: str | None = None
    failure_reason: str | None = None
    older_than: datetime | None = None  #: Ended, or made where it has not ended, then or earlier.
    newer_than: datetime | None = None  #: Ended, or made where it has not ended, later than then.
    before: int | None = None  #: Only ids below this one: the next page.
