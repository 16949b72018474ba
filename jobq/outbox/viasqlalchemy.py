"""Connections and sessions of SQLAlchemy 2, through the DB-API connection that they hold.

Statements go through SQLAlchemy, as text for the driver: it begins its transaction with the first of them, and would
otherwise not know that there is something to commit.
"""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from jobq.outbox.host import SqlHost, Values
from jobq.outbox.sqlites import stage
from jobq.outbox.standard import StandardHost
from jobq.outbox.table import CREATION_LOCK, DEFINITIONS, FORMAT, IS_THERE, QMARK, RETURNING_ID, Dialect, NewRow
from jobq.outbox.viapsycopg import PsycopgHost

_STATEMENTS = {"qmark": QMARK, "format": FORMAT, "pyformat": FORMAT}
#: The drivers that can be asked whether they commit by themselves.
_DRIVERS: dict[str, type[StandardHost] | type[PsycopgHost]] = {"pysqlite": StandardHost, "psycopg": PsycopgHost}


class SqlAlchemyHost(SqlHost):
    """What a connection and a session have in common; ``engine`` is what SQLAlchemy knows of the database."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.statements = _STATEMENTS[engine.dialect.paramstyle]

    @staticmethod
    def knows(engine: Any) -> bool:
        """Whether an outbox can live in this engine's database, and knows how its driver takes values."""
        return engine.dialect.name in set(Dialect) and engine.dialect.paramstyle in _STATEMENTS

    @property
    def dialect(self) -> Dialect:
        """The kind of database behind it."""
        return Dialect(self._engine.dialect.name)

    @abstractmethod
    def open(self) -> Any:
        """Return the connection of the host's transaction, which is begun where none is open."""

    @abstractmethod
    def held(self) -> Any:
        """Return the connection as far as there is one already; begins nothing."""

    @abstractmethod
    def own(self) -> AbstractContextManager[Any]:
        """Return a block in which a connection has a transaction of its own."""

    def files(self) -> list[str]:
        """Ask the driver's connection, or before there is one the engine."""
        held = self.held()
        driver = None if held is None else self._driver(held)
        if driver is not None:
            return driver.files()
        name = self._engine.url.database if self.dialect is Dialect.SQLITE else None
        return [] if name in (None, "", ":memory:") else [name]

    def will_commit_alone(self) -> bool:
        """Whether SQLAlchemy was told so, or psycopg says so; of SQLite hosts may begin transactions themselves."""
        held = self.held()
        if held is None or held.in_transaction():
            return False
        if held.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
            return True
        driver = self._driver(held)
        return isinstance(driver, PsycopgHost) and driver.commits_alone()

    def commits_alone(self) -> bool:
        """Let SQLAlchemy begin, then ask the driver."""
        connection = self.open()
        driver = self._driver(connection)
        if driver is None or not driver.commits_alone():
            return False
        # Hosts that keep the driver from beginning do it themselves when SQLAlchemy begins.
        connection.exec_driver_sql("SELECT 1").close()
        return driver.commits_alone()

    def has_table(self) -> bool:
        """Ask PostgreSQL: an INSERT that fails would end the host's transaction."""
        if self.dialect is Dialect.SQLITE:
            return True
        return bool(self.open().exec_driver_sql(IS_THERE).scalar())

    def stage(self, rows: Sequence[NewRow]) -> list[int]:
        """Insert rows; on PostgreSQL one by one."""
        connection = self.open()
        if self.dialect is Dialect.SQLITE:
            return stage(lambda sql, row: connection.exec_driver_sql(sql, row).lastrowid, self.statements.insert, rows)
        insert = self.statements.insert + RETURNING_ID
        return [connection.exec_driver_sql(insert, tuple(row)).scalar_one() for row in rows]

    def create(self) -> None:
        """Make the table in the host's transaction."""
        self._create(self.open())

    def create_and_commit(self) -> None:
        """Make the table."""
        with self.own() as connection:
            self._create(connection)

    def fetch(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Read."""
        with self.own() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql, tuple(values))]

    def write(self, changes: Sequence[tuple[str, Sequence[Values]]]) -> None:
        """Write."""
        with self.own() as connection:
            for sql, many in changes:
                if many:
                    connection.exec_driver_sql(sql, [tuple(values) for values in many])

    def _create(self, connection: Any) -> None:
        lock = (CREATION_LOCK,) if self.dialect is Dialect.POSTGRESQL else ()
        for statement in (*lock, *DEFINITIONS[self.dialect]):
            connection.exec_driver_sql(statement)

    def _driver(self, connection: Any) -> StandardHost | PsycopgHost | None:
        kind = _DRIVERS.get(self._engine.dialect.driver)
        return None if kind is None else kind(connection.connection.driver_connection)


class CoreHost(SqlAlchemyHost):
    """An ``sqlalchemy.Connection``."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection.engine)
        self._connection = connection

    def problem(self) -> str | None:
        """Whether it is closed, or was lost."""
        if self._connection.closed:
            return "it is closed"
        return "its database connection was lost" if self._connection.invalidated else None

    def open(self) -> Any:
        """Return it: its first statement begins."""
        return self._connection

    def held(self) -> Any:
        """Return it."""
        return self._connection

    def own(self) -> AbstractContextManager[Any]:
        """Begin and commit."""
        return _Own(self._connection.begin(), lambda: self._connection)


class SessionHost(SqlAlchemyHost):
    """An ``sqlalchemy.orm.Session``."""

    def __init__(self, session: Any) -> None:
        super().__init__(session.get_bind().engine)
        self._session = session

    def problem(self) -> str | None:
        """None: a session that was closed begins anew when it is used."""
        return None

    def open(self) -> Any:
        """Return the connection of the session's transaction, which may begin here."""
        return self._session.connection()

    def held(self) -> Any:
        """Return that connection if the session has begun."""
        return self._session.connection() if self._session.in_transaction() else None

    def own(self) -> AbstractContextManager[Any]:
        """Begin and commit."""
        return _Own(self._session.begin(), self._session.connection)


class _Own:
    """A block of SQLAlchemy's that begins and commits, as one that yields the connection."""

    def __init__(self, block: Any, connection: Any) -> None:
        self._block = block
        self._connection = connection

    def __enter__(self) -> Any:
        self._block.__enter__()
        return self._connection()

    def __exit__(self, *error: Any) -> Any:
        return self._block.__exit__(*error)
