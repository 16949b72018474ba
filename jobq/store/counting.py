"""What jobq asks a database for to say what goes on; a part of :class:`jobq.store.base.Store`."""

from typing import Protocol

from jobq.model.stats import Stats


class CountingStore(Protocol):
    """Counts for people and for metrics, and what failed last."""

    def survey(self, *, failures: int) -> Stats:
        """Return what goes on, all of one state of the database, with so many of the last failures.

        The runners of dead processes are among the runners. Counts are read from indexes and take time with the jobs
        they count; the oldest runnable job is found with the claim's own statement, in time that does not grow with the
        backlog. Nothing is locked or written.
        """
