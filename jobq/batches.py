"""Work on many jobs in many short transactions, so that nobody waits long for the write lock."""

import time
from collections.abc import Iterator, Sequence

from jobq.core import Core

#: Jobs that one transaction deals with: some milliseconds of the write lock.
BATCH = 50
#: Seconds between two transactions. SQLite's wait for a lock is not fair: another process gets it only if it happens to
#: ask while it is free.
REST = 0.004


def batches(core: Core, ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Divide ids, and rest between two batches; none are one batch, for the checks of a verb."""
    for start in range(0, max(1, len(ids)), BATCH):
        if start:
            rest(core)
        yield ids[start : start + BATCH]


def rest(core: Core) -> None:
    """Let others have the write lock; not where this thread keeps it in a transaction, nor under a fake clock."""
    if not core.clock.deterministic and core.blocks.mine() is None:
        time.sleep(REST)
