"""The verbs about log lines."""

from collections.abc import Sequence
from datetime import datetime

from jobq.model.events import LogLine
from jobq.store.sqlite import lines
from jobq.store.sqlite.transactions import Transactions


class SqliteLines(Transactions):
    """Implements :class:`jobq.store.lines.LineStore`."""

    def keep_lines(self, lines_: Sequence[LogLine]) -> None:
        """Keep lines of jobs that are there."""
        self._write(lambda conn, _: lines.keep(conn, lines_), durable=False)

    def lines(self, job_id: int, *, limit: int | None) -> list[LogLine]:
        """Return a job's newest lines."""
        return self._read(lambda conn: lines.lines(conn, job_id, limit=limit))

    def prune_lines(self, *, before: datetime, limit: int) -> int:
        """Remove old lines."""
        return self._write(lambda conn, _: lines.prune(conn, before=before, limit=limit), durable=False)
