"""Connections of psycopg 3."""

from collections.abc import Sequence
from typing import Any

from jobq.outbox.host import SqlHost, Values
from jobq.outbox.table import CREATION_LOCK, DEFINITIONS, FORMAT, IS_THERE, RETURNING_ID, Dialect, NewRow

_INSERT = FORMAT.insert + RETURNING_ID
#: ``psycopg.pq.TransactionStatus.IDLE``.
_IDLE = 0


class PsycopgHost(SqlHost):
    """A ``psycopg.Connection``."""

    statements = FORMAT
    dialect = Dialect.POSTGRESQL

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def problem(self) -> str | None:
        """Whether it is closed."""
        return "it is closed" if self.connection.closed else None

    def files(self) -> list[str]:
        """None: the database is a server's."""
        return []

    def will_commit_alone(self) -> bool:
        """The same: the driver knows."""
        return self.commits_alone()

    def commits_alone(self) -> bool:
        """Whether it is in autocommit, outside of a transaction."""
        return bool(self.connection.autocommit) and self.connection.info.transaction_status == _IDLE

    def has_table(self) -> bool:
        """Ask: an INSERT that fails would end the host's transaction."""
        with self._cursor() as cursor:
            return bool(cursor.execute(IS_THERE).fetchone()[0])

    def stage(self, rows: Sequence[NewRow]) -> list[int]:
        """Insert rows; many go to the server at once."""
        with self._cursor() as cursor:
            if len(rows) == 1:
                return [cursor.execute(_INSERT, rows[0]).fetchone()[0]]
            cursor.executemany(_INSERT, rows, returning=True)
            numbers = [cursor.fetchone()[0]]
            while cursor.nextset():
                numbers.append(cursor.fetchone()[0])
            return numbers

    def create(self) -> None:
        """Make the table; others who do wait until the transaction ends."""
        with self._cursor() as cursor:
            for statement in (CREATION_LOCK, *DEFINITIONS[Dialect.POSTGRESQL]):
                cursor.execute(statement)

    def create_and_commit(self) -> None:
        """Make the table."""
        with self.connection.transaction():
            self.create()

    def fetch(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Read."""
        with self.connection.transaction(), self._cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
            return rows

    def write(self, changes: Sequence[tuple[str, Sequence[Values]]]) -> None:
        """Write."""
        with self.connection.transaction(), self._cursor() as cursor:
            for sql, many in changes:
                if many:
                    cursor.executemany(sql, many)

    def _cursor(self) -> Any:
        """Return a plain cursor, whatever classes of cursors and rows the host has chosen."""
        import psycopg

        return psycopg.Cursor(self.connection, row_factory=psycopg.rows.tuple_row)
