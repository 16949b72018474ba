"""A transaction that one thread keeps open over several calls, and a snapshot that it reads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, TypeVar

import apsw

from jobq.errors import TransactionEnded
from jobq.model.events import Change
from jobq.store.hosting import Bindings
from jobq.store.sqlite import statements
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import reraise
from jobq.store.sqlite.group import Group

T = TypeVar("T")


class Owned:
    """What belongs to the thread that opened it, for as long as its block runs."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._thread = get_ident()
        #: Set when nothing more may be done; without a call, which an interrupt could keep from happening.
        self.over = False

    def check(self) -> None:
        """Raise TransactionEnded where nothing can be done in it; ForkedHandle in a forked child."""
        self._file.check_process()
        if self.over:
            raise TransactionEnded("the block has ended")
        if get_ident() != self._thread:
            raise TransactionEnded("it belongs to another thread")


class Snapshot(Owned):
    """What a reader sees, as of one instant."""

    def __init__(self, connection: apsw.Connection, file: DatabaseFile) -> None:
        super().__init__(file)
        self._connection = connection

    def execute(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out statements that read, and return every row."""
        self.check()
        try:
            return statements.run(self._connection, sql, bindings, read_only=True)
        except apsw.Error as exc:
            reraise(exc, self._file.path, errno=self._connection.system_errno)


class Hosted(Owned):
    """The open transaction. What is done in it is a savepoint, so that it succeeds or fails alone."""

    def __init__(self, group: Group, file: DatabaseFile) -> None:
        super().__init__(file)
        self._group = group
        self._connection = group.connection
        self._changes = group.leader.changes
        #: Whether an interrupt struck where it cannot be told any more what has been done.
        self._unsure = False

    def execute(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out the host's statements, all of them or none, and return every row."""
        return self.join(lambda connection, _: statements.run(connection, sql, bindings, read_only=False))

    def look(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """The same for statements that read."""
        return self.read(lambda connection: statements.run(connection, sql, bindings, read_only=True))

    def join(self, operation: Callable[[apsw.Connection, list[Change]], T]) -> T:
        """Carry out a verb's operation as a part of the transaction."""
        changes: list[Change] = []
        mark = len(self._changes)
        try:
            with self._translated(), self._savepoint():
                result = operation(self._connection, changes)
                self._changes += changes
            return result
        except BaseException as error:
            # After an interrupt nobody can tell whether the operation stands.
            self._unsure = self._unsure or not isinstance(error, Exception)
            del self._changes[mark:]
            raise

    def read(self, operation: Callable[[apsw.Connection], T]) -> T:
        """Carry out an operation that only reads; it sees what the transaction has written."""
        with self._translated():
            return operation(self._connection)

    @contextmanager
    def nested(self) -> Iterator["Hosted"]:
        """Run a block inside the block, whose end by an exception undoes only what was done in it."""
        self.check()
        mark = len(self._changes)
        try:
            with self._savepoint():
                yield self
                self.check()
        except BaseException:
            del self._changes[mark:]
            raise

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        execute = self._connection.execute
        # Whatever strikes between here and the next assignment leaves it open whether the savepoint is there. To roll
        # back to one of that name then might undo what is around it.
        self._unsure = True
        execute("SAVEPOINT jobq_part")
        try:
            self._unsure = False
            yield
        except BaseException:
            self._unsure = True
            # FULL, I/O errors and ON CONFLICT ROLLBACK have ended the whole transaction already; nor may a forked
            # child touch it.
            if not self._file.forked and self._connection.in_transaction:
                execute("ROLLBACK TO jobq_part")
                execute("RELEASE jobq_part")
            self._unsure = False
            raise
        self._unsure = True
        execute("RELEASE jobq_part")
        self._unsure = False

    @contextmanager
    def _translated(self) -> Iterator[None]:
        self.check()
        try:
            yield
        except apsw.Error as exc:
            self._group.note(exc)
            reraise(exc, self._file.path, errno=self._connection.system_errno)

    def check(self) -> None:
        """The same, also after SQLite has rolled it back by itself."""
        super().check()
        if self._unsure:
            raise TransactionEnded("a verb was interrupted in it")
        if not self._connection.in_transaction:
            raise TransactionEnded("SQLite rolled it back after an error")
