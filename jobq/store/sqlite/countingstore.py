"""The part of the SQLite store that counts; its contract is :mod:`jobq.store.counting`."""

from jobq.model.job import JobState
from jobq.model.stats import Stats
from jobq.store.base import Filter
from jobq.store.sqlite import lookup, queues, runners, tally
from jobq.store.sqlite.transactions import Transactions


class SqliteCounting(Transactions):
    """Counts, what runs, and what failed last."""

    def survey(self, *, failures: int) -> Stats:
        """Return what goes on, read in one transaction."""
        return self._read(
            lambda conn: Stats(
                at=(now := self._now()),
                lanes=tuple(tally.tally(conn, now=now)),
                queues=tuple(queues.queues(conn)),
                runners=tuple(runners.runners(conn)),
                running=tuple(lookup.find(conn, Filter(state=JobState.RUNNING), limit=None)),
                failures=tuple(lookup.failures(conn, limit=failures)),
            )
        )
