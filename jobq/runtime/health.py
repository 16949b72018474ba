"""What a runner says of itself."""

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Health:
    """How a runner is; a runner that was not started, or lives in a forked child, has no threads and says so."""

    #: Whether its threads run.
    running: bool
    #: Whether it was running in the process that this one was forked from.
    forked: bool
    #: Worker threads alive.
    workers: int
    #: Jobs claimed and not yet settled.
    held: int
    #: Whether a beat was written less than a lease ago.
    beating: bool
    #: Whether the last operation of each loop on the database worked.
    store_healthy: bool
    #: Whether the last operation of each relay on its host's database worked.
    outboxes_healthy: bool
    #: Seconds since the last good tick of each loop; None before its first.
    loops: Mapping[str, float | None]
    #: Ids of jobs whose handlers go on long after their run budget.
    stuck: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Bootstrap:
    """What a starting runner cleaned up."""

    #: Queued jobs of retired kinds, now cancelled.
    cancelled: int
    #: Expired leases, taken back.
    reclaimed: int
