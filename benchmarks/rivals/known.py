"""Whom jobq is compared with: where each comes from, how it is set up here, and what it promises.

The peers themselves are imported by their own files alone, in processes of their own.
"""

from importlib.metadata import PackageNotFoundError, version

import attrs


@attrs.frozen(kw_only=True)
class Known:
    """A job queue that can be measured; ``name`` is that of its file here."""

    name: str
    distribution: str
    #: How it is set up; unsynced commits only have to survive a killed process.
    setting: str
    promise: str

    @property
    def version(self) -> str | None:
        """The version that is installed; None where none is."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None


JOBQ = Known(
    name="jobq",
    distribution="jobq",
    setting="synced: durability full; unsynced: relaxed (synchronous NORMAL); batches: hands; one at a time: hand=1",
    promise="at least once; leases that are renewed; settles fenced by a token; retries; failed jobs are kept",
)
PEERS = (
    Known(
        name="huey",
        distribution="huey",
        setting="synced: fsync=True; unsynced: fsync=False (synchronous OFF); its consumer; four workers, or one",
        promise="at most once: a job is deleted when it is taken, a killed worker loses it; retries",
    ),
    Known(
        name="litequeue",
        distribution="litequeue",
        setting="unsynced alone (synchronous NORMAL is built in); pop, then done",
        promise="a taken job stays locked until somebody frees it by hand; no lease, fence or count of attempts",
    ),
    Known(
        name="localqueue",
        distribution="localqueue",
        setting="synced: DURABLE; unsynced: RELAXED (synchronous NORMAL); its Worker; it hands out no batches",
        promise="at least once; leases; settles fenced by a receipt; retries; failed jobs are kept",
    ),
    Known(
        name="persistqueue",
        distribution="persist-queue",
        setting="synced alone (SQLite's default); SQLiteAckQueue, or SQLiteQueue with task_done() after a hundred",
        promise="one consuming process; what it took comes back when it starts again; no lease, fence or count",
    ),
    Known(
        name="simplebroker",
        distribution="simplebroker",
        setting="synced: SYNC_MODE FULL; unsynced: NORMAL; persistent queues; batches: read_generator, at_least_once",
        promise="one at a time: moved to another queue, then deleted, no lease, fence or retry; "
        "batches: at least once, the write lock is held while handlers run",
    ),
)
