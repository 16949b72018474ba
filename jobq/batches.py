"""Work on many jobs in many short transactions, so that nobody waits long for the write lock."""

import time
from collections.abc import Callable, Iterator, Sequence

from jobq.core import Core

#: Jobs that one transaction deals with: some milliseconds of the write lock.
BATCH = 50
#: Seconds between two transactions. SQLite's wait for a lock is not fair: another process gets it only if it happens to
#: ask while it is free.
REST = 0.004


def batches(
    core: Core, ids: Sequence[int], progress: Callable[[int], object] | None = None
) -> Iterator[Sequence[int]]:
    """Divide ids, and rest between two batches; none are one batch, for the checks of a verb.

    ``progress`` is called after each batch with how many were dealt with so far.
    """
    for start in range(0, max(1, len(ids)), BATCH):
        if start:
            rest(core)
        batch = ids[start : start + BATCH]
        yield batch
        if progress is not None:
            progress(start + len(batch))


def rest(core: Core) -> None:
    """Let others have the write lock; not where this thread keeps it in a transaction, nor under a fake clock."""
    if not core.clock.deterministic and core.blocks.mine() is None:
        time.sleep(REST)
