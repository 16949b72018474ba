"""What runners and the store tell each other besides jobs: a view without the write lock, and the row of a runner."""

from collections.abc import Iterable, Mapping
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
    #: The queues that it serves, and how many worker threads it has for each.
    queues: Mapping[str, int]
    kinds: tuple[str, ...]
    #: Changes with each boot: a monotonic time means something only within one.
    boot_id: str
    monotonic: float
    started_at: datetime
    beat_at: datetime


def clock_moved(
    rows: Iterable[RunnerRow], *, boot_id: str, wall: datetime, monotonic: float, lease: float
) -> float | None:
    """Return by how many seconds the wall clock has moved against the monotonic one since a runner's last beat.

    None where no runner of this boot has beaten within a lease, or where it moved by less than half a lease (seconds).
    That is how a process that starts right after its machine woke can tell that others had no chance to beat.
    """
    for row in rows:
        passed = monotonic - row.monotonic
        drift = (wall - row.beat_at).total_seconds() - passed
        if row.boot_id == boot_id and 0 <= passed < lease and abs(drift) >= lease / 2:
            return drift
    return None
