"""The host's own rows and jobq's jobs in one transaction."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jobq.blocks import Block
from jobq.core import Core
from jobq.store.hosting import Bindings, HostTransaction, Reading


class Snapshot:
    """What a block of :meth:`jobq.JobQueue.read` sees: the file as of one instant."""

    def __init__(self, read: Reading) -> None:
        self._read = read

    def execute(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out SQL that reads, and return every row.

        ``bindings`` are the values for ``?`` in order, or a mapping for ``:name``.

        Raises:
            StatementRefused: it would write, or change the connection.
            TransactionEnded: the block has ended, or it is another thread's.
            StoreError: trouble with the database. What SQLite says of the statement itself is an ``apsw.Error``.
        """
        return self._read(sql, bindings)


class Transaction:
    """An open transaction on jobq's file, for the host's own tables in it."""

    def __init__(self, database: HostTransaction) -> None:
        self._database = database

    def execute(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out SQL, one or several statements, all or none of them; return every row.

        ``bindings`` are the values for ``?`` in order, or a mapping for ``:name``. Refused are statements that begin,
        end or divide transactions, ATTACH, DETACH, PRAGMA, VACUUM, temporary tables, and writes to tables whose names
        begin with ``jobq_``, which jobq's verbs write. Reading those is fine.

        Raises:
            StatementRefused: it is one of these; nothing of the text was done.
            TransactionEnded: the block has ended, it is another thread's, or SQLite has rolled it back by itself.
            StoreError: trouble with the database. What SQLite says of the statement itself is an ``apsw.Error``.
        """
        return self._database.execute(sql, bindings)


class Transacting(Core):
    """The verbs that open a block."""

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open one transaction for the host's rows and for jobs: both are committed when the block ends, or neither.

        Every verb that this thread calls on a job queue of this file joins it, wherever it is called from: its ids are
        known at once, reads see them, and an error of one verb undoes that verb only. A verb on another thread waits
        until the block has ended, so keep it short; one that is open for over a second is reported: while it is open
        by a runner of this process or a verb that waited for it in vain, else at its end. ``drain``, ``run_once``,
        ``wait``, leases, ``close``, ``job.transaction`` and ``relay.tick`` are refused inside. A block inside a block
        is a savepoint. Events, cancels of running handlers, and log lines follow the commit; when an exception ends the
        block nothing was written and nothing is told.

        Raises:
            StoreBusy: another transaction held the lock for longer than ``busy_timeout``, so the block did not begin.
            StoreError: the commit failed; ``outcome_unknown`` says whether it may have happened all the same.
        """
        block = self.blocks.mine()
        if block is None:
            yield from self._outermost()
            return
        mark = block.mark()
        try:
            with self._open(block) as database, self.blocks.places.enter(None):
                yield Transaction(database)
        except BaseException:
            block.undo(mark)
            raise

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Read the host's tables, and jobq's, as of one instant, without the write lock.

        Verbs do not join it: they see the database as it is when they are called. Inside a transaction of this thread
        it sees what that has written.
        """
        with self.store.snapshot() as read:
            yield Snapshot(read)

    def _outermost(self) -> Iterator[Transaction]:
        self.register()
        block = Block(self.clock)
        failed: BaseException | None = None
        try:
            with self._open(block) as database:
                try:
                    self.blocks.enter(block)
                    with self.blocks.places.enter(None):
                        yield Transaction(database)
                finally:
                    block.over = True
        except BaseException as error:
            failed = error
            raise
        finally:
            self._finish(block, failed)
            # The error's traceback leads to this frame: without this they keep each other alive.
            del failed

    def _open(self, block: Block) -> AbstractContextManager[HostTransaction]:
        def keep() -> None:
            block.committed = True
            # Taken out one by one: after an interrupt it is called once more.
            while block.events:
                self.bus.post(block.events.pop(0))

        return self.store.transaction(on_commit=keep, on_blocked=block.report)

    def _finish(self, block: Block, failed: BaseException | None) -> None:
        if not block.is_ours:
            return  # a forked child: the parent does it
        block.report()
        try:
            block.finish(failed)
        finally:
            self.deliver()
