"""What the two SQLite drivers have in common."""

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from jobq.outbox.host import SqlHost, Values
from jobq.outbox.table import DATABASES, DEFINITIONS, INSERT_MANY, QMARK, Dialect, NewRow


def stage(add: Callable[[str, Values], int], insert: str, rows: Sequence[NewRow]) -> list[int]:
    """Insert rows in one statement and return their numbers, which follow each other under the write lock."""
    if len(rows) == 1:
        return [add(insert, tuple(rows[0]))]
    last = add(INSERT_MANY, (json.dumps(rows, ensure_ascii=False),))
    return list(range(last - len(rows) + 1, last + 1))


class SqliteHost(SqlHost):
    """A connection of an SQLite driver, whose cursors take ``?``."""

    statements = QMARK
    dialect = Dialect.SQLITE

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    def execute(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Carry out one statement as the connection stands, and return every row as a tuple."""

    @abstractmethod
    def add(self, sql: str, values: Values) -> int:
        """Carry out an insert and return the number of its last row; the driver may begin the host's transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit."""

    def problem(self) -> str | None:
        """Ask the driver something harmless: it says whether the connection is closed, or another thread's."""
        try:
            _ = self.connection.in_transaction
        except Exception as error:  # each driver has its own classes
            return f"{type(error).__name__}: it is closed, or belongs to another thread"
        return None

    def files(self) -> list[str]:
        """Return the main file and those attached; a database in memory has none."""
        return [name for _, _, name in self.execute(DATABASES) if name]

    def will_commit_alone(self) -> bool:
        """The same: the driver knows."""
        return self.commits_alone()

    def has_table(self) -> bool:
        """Leave it to the insert, whose failure ends no transaction here."""
        return True

    def stage(self, rows: Sequence[NewRow]) -> list[int]:
        """Insert rows in one statement."""
        return stage(self.add, self.statements.insert, rows)

    def create(self) -> None:
        """Make the table as the connection stands."""
        for statement in DEFINITIONS[Dialect.SQLITE]:
            self.execute(statement)

    def create_and_commit(self) -> None:
        """Make the table."""
        self.write([(statement, [()]) for statement in DEFINITIONS[Dialect.SQLITE]])

    def fetch(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Read; a connection that begins transactions by itself is let go of its read lock."""
        rows = self.execute(sql, values)
        if self.connection.in_transaction:
            self.commit()
        return rows

    def write(self, changes: Sequence[tuple[str, Sequence[Values]]]) -> None:
        """Take the write lock first: a transaction that reads and then writes may not be let to."""
        if not self.connection.in_transaction:
            self.execute("BEGIN IMMEDIATE")
        try:
            for sql, many in changes:
                for values in many:
                    self.execute(sql, values)
            self.commit()
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
