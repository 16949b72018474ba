"""The part of the SQLite store that counts; its contract is :mod:`jobq.store.counting`."""

from jobq.model.job import JobInfo
from jobq.model.stats import LaneTally
from jobq.store.sqlite import lookup, tally
from jobq.store.sqlite.transactions import Transactions


class SqliteCounting(Transactions):
    """Counts, and what failed last."""

    def tally(self) -> list[LaneTally]:
        """Return a tally for each kind in each queue."""
        return self._read(lambda conn: tally.tally(conn, now=self._now()))

    def recent_failures(self, *, limit: int) -> list[JobInfo]:
        """Return the jobs that failed last."""
        return self._read(lambda conn: lookup.failures(conn, limit=limit))
