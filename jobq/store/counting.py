"""What jobq asks a database for to say what goes on; a part of :class:`jobq.store.base.Store`."""

from collections.abc import Sequence
from typing import Protocol

from jobq.model.job import JobInfo
from jobq.model.stats import LaneTally


class CountingStore(Protocol):
    """Counts for people and for metrics, and what failed last."""

    def tally(self) -> list[LaneTally]:
        """Return a tally for each kind in each queue that has jobs, all of one state of the database.

        Counts are read from indexes and take time with the jobs they count; the oldest runnable job is found with the
        claim's own statement, in time that does not grow with the backlog. Nothing is locked or written.
        """

    def recent_failures(self, *, limit: int) -> Sequence[JobInfo]:
        """Return the jobs that failed last, newest first, without payloads and results."""
