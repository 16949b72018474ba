"""What runners and the store tell each other besides jobs: a view without the write lock, and the row of a runner."""

from datetime import datetime
from typing import NamedTuple


class Outlook(NamedTuple):
    """What a watcher sees without the write lock."""

    #: The queues in which a claim would find a job now, or an expired lease to take back.
    ready: frozenset[str]
    #: Whether a lease has expired.
    expired: bool
    #: The next time at which a queued job falls due or a lease ends; None when there is none.
    next_due: datetime | None


class RunnerRow(NamedTuple):
    """What a runner says of itself with each beat."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    #: Changes with each boot: a monotonic time means something only within one.
    boot_id: str
    monotonic: float
    started_at: datetime
    beat_at: datetime
