"""Connections of the standard library's ``sqlite3`` module."""

from typing import Any

from jobq.outbox.host import Values
from jobq.outbox.sqlites import SqliteHost


class StandardHost(SqliteHost):
    """A ``sqlite3.Connection``, in whatever mode the host uses it."""

    def commits_alone(self) -> bool:
        """Whether no transaction is open and an INSERT opens none.

        With an ``isolation_level``, the default, an INSERT does; with None it does not. From Python 3.12 ``autocommit``
        says it instead, where it is a bool.
        """
        if self.connection.in_transaction:
            return False
        autocommit = getattr(self.connection, "autocommit", None)
        if isinstance(autocommit, bool):
            return autocommit
        return self.connection.isolation_level is None

    def execute(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Carry out one statement, past what the host makes of rows and texts."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        factory = self.connection.text_factory
        self.connection.text_factory = str
        try:
            rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
        finally:
            self.connection.text_factory = factory
        return rows

    def add(self, sql: str, values: Values) -> int:
        """Carry out an insert; the driver begins the host's transaction where the host asked it to."""
        number: int = self.connection.cursor().execute(sql, values).lastrowid
        return number

    def commit(self) -> None:
        """Commit; in the mode of Python 3.12 in which ``commit()`` does nothing, by a statement."""
        if getattr(self.connection, "autocommit", None) is True:
            self.connection.execute("COMMIT")
        else:
            self.connection.commit()
