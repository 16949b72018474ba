"""Connections made with ``apsw``."""

from typing import Any

from jobq.outbox.host import Values
from jobq.outbox.sqlites import SqliteHost


class ApswHost(SqliteHost):
    """An ``apsw.Connection``, which is in a transaction only after the host has begun one."""

    def commits_alone(self) -> bool:
        """Whether no transaction is open."""
        return not self.connection.in_transaction

    def execute(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Carry out one statement, past the host's row tracer."""
        cursor = self.connection.cursor()
        cursor.row_trace = None
        rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
        return rows

    def add(self, sql: str, values: Values) -> int:
        """Carry out an insert."""
        self.execute(sql, values)
        number: int = self.connection.last_insert_rowid()
        return number

    def commit(self) -> None:
        """Commit."""
        self.execute("COMMIT")
