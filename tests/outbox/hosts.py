"""The host's side of the tests: one database for each kind of connection, with orders in it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import psycopg
import sqlalchemy
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from jobq.testing import MemoryDatabase

COLUMNS = "id, uid, kind, draft, staged_at, attempts, retry_at, error, job_id, published_at"
ORDERS = "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)"


class SqlHostDatabase:
    """What the kinds with SQL have in common; ``look`` makes connections for the test's own looks."""

    mark = "?"

    def __init__(self, connect: Callable[[], Any], look: Callable[[], Any]) -> None:
        self.connect = connect
        self._look = look
        self._run(ORDERS)

    def begin(self, connection: Any) -> None:
        """Begin a transaction where the driver does not do it by itself."""

    def order(self, connection: Any, number: int) -> None:
        """Write a row of the host's."""
        connection.execute(f"INSERT INTO orders VALUES ({number})")

    def commit(self, connection: Any) -> None:
        """Commit as the host does."""
        connection.commit()

    def rollback(self, connection: Any) -> None:
        """Roll back as the host does."""
        connection.rollback()

    def orders(self) -> list[int]:
        """Return the host's committed rows."""
        return [number for (number,) in self._run("SELECT id FROM orders ORDER BY id")]

    def rows(self) -> list[dict[str, Any]]:
        """Return the committed rows of the outbox."""
        found = self._run(f"SELECT {COLUMNS} FROM jobq_outbox ORDER BY id")
        return [dict(zip(COLUMNS.split(", "), row, strict=True)) for row in found]

    def spoil(self, number: int, column: str, value: Any) -> None:
        """Change a row of the outbox by hand."""
        self._run(f"UPDATE jobq_outbox SET {column} = {self.mark} WHERE id = {self.mark}", (value, number))

    def drop(self) -> None:
        """Take the outbox table away."""
        self._run("DROP TABLE IF EXISTS jobq_outbox")

    def _run(self, sql: str, values: Any = ()) -> list[Any]:
        connection = self._look()
        try:
            cursor = connection.cursor()
            cursor.execute(sql, values)
            rows = cursor.fetchall() if sql.startswith("SELECT") else []
            connection.commit()
            return list(rows)
        finally:
            connection.close()


class ApswDatabase(SqlHostDatabase):
    """Where transactions are begun and ended by statements."""

    def begin(self, connection: Any) -> None:
        """Begin."""
        connection.execute("BEGIN")

    def commit(self, connection: Any) -> None:
        """Commit."""
        connection.execute("COMMIT")

    def rollback(self, connection: Any) -> None:
        """Roll back."""
        connection.execute("ROLLBACK")


class AlchemyDatabase(SqlHostDatabase):
    """Where statements are objects."""

    def order(self, connection: Any, number: int) -> None:
        """Write a row of the host's."""
        connection.execute(sqlalchemy.text("INSERT INTO orders VALUES (:id)"), {"id": number})


class PostgresDatabase(SqlHostDatabase):
    """With the parameters of psycopg."""

    mark = "%s"


class AlchemyPostgres(AlchemyDatabase, PostgresDatabase):
    """Both."""


class MemoryHostDatabase:
    """Without SQL: the orders of a connection are kept beside it."""

    def __init__(self) -> None:
        self._database = MemoryDatabase()
        self._orders: set[int] = set()
        self._open: dict[int, set[int]] = {}
        self.connect = self._database.connect

    def begin(self, connection: Any) -> None:
        """Do nothing."""

    def order(self, connection: Any, number: int) -> None:
        """Keep a row of the host's until the commit."""
        self._open.setdefault(id(connection), set()).add(number)

    def commit(self, connection: Any) -> None:
        """Commit both."""
        connection.commit()
        self._orders |= self._open.pop(id(connection), set())

    def rollback(self, connection: Any) -> None:
        """Roll back both."""
        connection.rollback()
        self._open.pop(id(connection), None)

    def orders(self) -> list[int]:
        """Return what was committed."""
        return sorted(self._orders)

    def rows(self) -> list[dict[str, Any]]:
        """Return the committed rows of the outbox."""
        columns = COLUMNS.split(", ")
        return [{name: getattr(row, name) for name in columns} for _, row in sorted(self._database.rows.items())]

    def spoil(self, number: int, column: str, value: Any) -> None:
        """Change a row of the outbox by hand."""
        setattr(self._database.rows[number], column, value)

    def drop(self) -> None:
        """Do nothing: the outbox is all there is."""


def sqlite_file(path: Path) -> Callable[[], sqlite3.Connection]:
    """Return a function that opens the host's file, for relays on any thread."""
    return lambda: sqlite3.connect(path / "shop.sqlite")


def patient(connection: apsw.Connection) -> apsw.Connection:
    """Return a connection that waits for locks, as those of other drivers do by themselves."""
    connection.set_busy_timeout(5000)
    return connection


def make(kind: str, path: Path, dsn: Callable[[], str]) -> Any:
    """Return a database of a kind."""
    standard = sqlite_file(path)
    if kind == "memory":
        return MemoryHostDatabase()
    if kind == "sqlite3":
        return SqlHostDatabase(standard, standard)
    if kind == "apsw":
        return ApswDatabase(lambda: patient(apsw.Connection(str(path / "shop.sqlite"))), standard)
    if kind in ("core", "orm", "scoped"):
        engine = sqlalchemy.create_engine(f"sqlite:///{path / 'shop.sqlite'}", poolclass=NullPool)
        connects: dict[str, Callable[[], Any]] = {
            "core": engine.connect,
            "orm": lambda: Session(engine),
            "scoped": lambda: scoped_session(sessionmaker(engine)),
        }
        return AlchemyDatabase(connects[kind], standard)
    uri = dsn()
    if kind == "psycopg":
        return PostgresDatabase(lambda: psycopg.connect(uri), lambda: psycopg.connect(uri))
    server = sqlalchemy.create_engine(uri.replace("postgresql:", "postgresql+psycopg:", 1), poolclass=NullPool)
    connect = server.connect if kind == "core-psycopg" else lambda: Session(server)
    return AlchemyPostgres(connect, lambda: psycopg.connect(uri))


KINDS = ("memory", "sqlite3", "apsw", "core", "orm", "scoped", "psycopg", "core-psycopg", "orm-psycopg")
SQL_KINDS = KINDS[1:]
