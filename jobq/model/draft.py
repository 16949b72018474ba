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
