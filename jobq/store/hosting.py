"""What jobq needs of a database for the host's own transactions; a part of :mod:`jobq.store.base`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

#: Values of a statement's parameters, by position or by name.
Bindings: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Reading(Protocol):
    """Carries out SQL that reads."""

    def __call__(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out the statements and return every row; refused are writes and what ends a transaction."""


class HostTransaction(Protocol):
    """An open transaction, for SQL of the host's own."""

    def execute(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out one or several statements, all or none of them, and return every row.

        Raises:
            StatementRefused: it would end the transaction, change the connection, or write to a table of jobq's.
            TransactionEnded: the block has ended, another thread calls, or the database rolled it back by itself.
            StoreError: trouble with the database; what it says of the statement itself is its driver's error.
        """


class HostStore(Protocol):
    """The verbs that open a block. What is common to all verbs is said in :mod:`jobq.store.base`."""

    def transaction(
        self, *, on_commit: Callable[[], None], on_blocked: Callable[[], None]
    ) -> AbstractContextManager[HostTransaction]:
        """Keep a transaction open for the calling thread while the block runs; it is durable.

        Every verb of every store of this database that this thread calls meanwhile joins it: what it writes is a part
        of the transaction, what it reads includes it, and it fails alone. Other threads' verbs wait, StoreBusy when
        that takes too long, and call ``on_blocked`` then; other threads' reads see the state before. A block inside a
        block is a savepoint, and its arguments do not count. When the block ends by an exception, all is rolled back
        and nothing is fed. After the commit, its changes are fed and ``on_commit`` is called, both still under the
        write lock, so it must do no more than keep something. A COMMIT that fails raises a StoreError whose
        ``outcome_unknown`` says whether it may have happened.
        """

    def snapshot(self) -> AbstractContextManager[Reading]:
        """Keep one snapshot of the database open for the calling thread, without the write lock.

        It yields a function like :meth:`HostTransaction.execute` for statements that read. Inside a transaction of the
        thread it sees what that has written.
        """
