"""What jobq needs of a database to keep it small and sound; a part of :class:`jobq.store.base.Store`."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from jobq.model.finding import Finding
from jobq.model.job import JobState
from jobq.model.pruning import Place, Prunable


class UpkeepStore(Protocol):
    """Pruning in steps, the size of the files, and a look at their health."""

    def prunable(self, state: JobState, *, ended_before: datetime, after: Place | None) -> Prunable:
        """Return the next page of jobs that ended in a state, at that time or before it, oldest first.

        A job is kept while one of its children has not ended, or while more than 500 children are there: what is
        removed with one job is bounded. Nothing is written.
        """

    def count_prunable(self, state: JobState, *, ended_before: datetime) -> tuple[int, int]:
        """Count the jobs that a walk over all pages would remove, and those that it would keep."""

    def prune(self, ids: Sequence[int], *, state: JobState, ended_before: datetime) -> int:
        """Remove these jobs with their texts and run histories, and return how many it were.

        Each is looked at again under the lock: one that was requeued, or has got a child that has not ended, stays, and
        so does one that a table of the host's refers to.
        Children stay and forget their parent; guards of slots, published rows and the change log stay. Ids are never
        given out again.
        """

    def prune_changes(self, *, before: datetime) -> int:
        """Remove the oldest lines of the change log, a bounded number, and return how many it were."""

    def shrink(self) -> bool:
        """Give a bounded number of free pages back to the file system; False where only a small share is free."""

    def checkpoint(self) -> None:
        """Keep the files of the database small; cheap when there is nothing to do."""

    def backup(self, path: str, *, progress: Callable[[int, int], object]) -> None:
        """Copy the whole database, as of one instant, into the empty file at ``path``; nobody waits for it.

        ``progress`` is called with what is copied and with all, in pieces of the store's own size.
        """

    def examine(self, *, deep: bool) -> Iterable[Finding]:
        """Look for what is wrong with the file, the library and this process's use of them; one finding a check.

        ``deep`` reads all of it and checks that it is sound, which takes time. Nothing is changed.
        """
