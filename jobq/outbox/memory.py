"""A database of Python objects that holds nothing but an outbox: for tests of code that is given a connection."""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from jobq.outbox.host import Host
from jobq.outbox.table import Dialect, Mark, NewRow, Refusal, Row


@attrs.define(kw_only=True)
class StagedRow:
    """One row of the outbox, with the columns that the table has elsewhere."""

    id: int
    uid: str
    kind: str
    draft: str
    staged_at: int
    attempts: int = 0
    retry_at: int = 0
    error: str | None = None
    job_id: int | None = None
    published_at: int | None = None


class MemoryDatabase:
    """Rows in memory, with connections that commit and roll back; safe to use from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: The committed rows, by number.
        self.rows: dict[int, StagedRow] = {}
        self._numbers = itertools.count(1)

    def connect(self) -> "MemoryConnection":
        """Return a new connection."""
        return MemoryConnection(self)

    def next_id(self) -> int:
        """Return a number that no row has had."""
        with self.lock:
            return next(self._numbers)


class MemoryConnection:
    """One connection: what is staged through it is there after ``commit()``, and gone after ``rollback()``."""

    def __init__(self, database: MemoryDatabase) -> None:
        self.database = database
        #: What was staged and not committed yet.
        self.staged: list[StagedRow] = []
        self.closed = False

    def commit(self) -> None:
        """Let everybody see what was staged."""
        with self.database.lock:
            self.database.rows.update({row.id: row for row in self.staged})
        self.staged = []

    def rollback(self) -> None:
        """Forget what was staged."""
        self.staged = []

    def close(self) -> None:
        """Roll back, and refuse to be used."""
        self.rollback()
        self.closed = True


class MemoryHost(Host):
    """A connection to a :class:`MemoryDatabase`."""

    dialect = Dialect.SQLITE

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection
        self._database = connection.database

    def problem(self) -> str | None:
        """Whether it is closed."""
        return "it is closed" if self._connection.closed else None

    def files(self) -> list[str]:
        """None."""
        return []

    def will_commit_alone(self) -> bool:
        """Never: a row is there after ``commit()``."""
        return False

    def commits_alone(self) -> bool:
        """Never."""
        return False

    def has_table(self) -> bool:
        """Always."""
        return True

    def stage(self, rows: Sequence[NewRow]) -> list[int]:
        """Keep rows until the commit."""
        made = [StagedRow(id=self._database.next_id(), **row._asdict()) for row in rows]
        self._connection.staged += made
        return [row.id for row in made]

    def create(self) -> None:
        """Do nothing."""

    def create_and_commit(self) -> None:
        """Do nothing."""

    def fresh(self, limit: int) -> list[Row]:
        """Return what was never tried."""
        return self._waiting(lambda row: row.retry_at == 0, limit)

    def again(self, now: int, limit: int) -> list[Row]:
        """Return what is to be tried again."""
        return self._waiting(lambda row: 0 < row.retry_at <= now, limit)

    def ahead(self, then: int, limit: int) -> list[Row]:
        """Return what is to be tried after an instant."""
        return self._waiting(lambda row: row.retry_at > then, limit)

    def note(self, marks: Sequence[Mark], refusals: Sequence[Refusal]) -> None:
        """Write down what became of rows."""
        by_uid = {row.uid: row for row in self._rows(lambda row: row.published_at is None)}
        for uid, job_id, at in marks:
            if uid in by_uid:
                row = by_uid[uid]
                row.job_id, row.published_at, row.error = job_id, at, None
        for uid, error, retry_at in refusals:
            if uid in by_uid:
                row = by_uid[uid]
                row.attempts, row.error, row.retry_at = row.attempts + 1, error, retry_at

    def done(self, until: int, limit: int) -> list[tuple[str, int]]:
        """Return published rows."""
        found = self._rows(lambda row: row.published_at is not None and row.published_at <= until)
        return [(row.uid, row.published_at or 0) for row in found[:limit]]

    def delete(self, uids: Sequence[str]) -> None:
        """Delete rows."""
        gone = frozenset(uids)
        for row in self._rows(lambda row: row.uid in gone):
            del self._database.rows[row.id]

    def pending(self) -> tuple[int, int, int | None]:
        """Count what waits."""
        found = self._rows(lambda row: row.published_at is None)
        failing = sum(row.error is not None for row in found)
        return len(found), failing, min((row.staged_at for row in found), default=None)

    def next_retry(self) -> int | None:
        """Return when the first pause is over."""
        found = self._rows(lambda row: row.published_at is None and row.retry_at > 0)
        return min((row.retry_at for row in found), default=None)

    def failing(self, limit: int) -> list[tuple[Any, ...]]:
        """Return what could not be published."""
        found = self._rows(lambda row: row.published_at is None and row.retry_at > 0)
        columns = [(row.id, row.kind, row.attempts, row.error, row.staged_at, row.retry_at) for row in found]
        return sorted(columns, key=lambda row: row[-1])[:limit]

    def _waiting(self, wanted: Callable[[StagedRow], bool], limit: int) -> list[Row]:
        found = self._rows(lambda row: row.published_at is None and wanted(row))
        found.sort(key=lambda row: (row.retry_at, row.id))
        return [Row(row.id, row.uid, row.kind, row.draft, row.attempts, row.error) for row in found[:limit]]

    def _rows(self, wanted: Callable[[StagedRow], bool]) -> list[StagedRow]:
        with self._database.lock:
            return [row for _, row in sorted(self._database.rows.items()) if wanted(row)]
