"""The one writing connection of the process, and the transactions that threads share.

The thread that holds the turn leads a group: it begins a transaction, carries out its own operation, then those of the
threads that wait behind it, each in a savepoint, and commits once for all. A transaction is the price of a small
write, so sharing it multiplies the throughput of a busy process; alone, a leader pays for no savepoint.
"""

import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

import apsw

from jobq.errors import StoreBusy
from jobq.model.events import Change
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import again, translate
from jobq.store.sqlite.turn import Operation, Overdue, State, Ticket, Turn

#: A group ends after this many riders, or when this many seconds have passed: transactions stay short for others.
MOST_RIDERS = 63
LONGEST_GROUP = 0.005

_DONE = State.DONE


class _Group:
    """A transaction and who shares it."""

    __slots__ = ("committed", "committing", "connection", "failure", "fed", "riders", "synced")

    def __init__(self, connection: apsw.Connection, *, synced: bool) -> None:
        self.connection = connection
        self.synced = synced
        self.riders: list[Ticket] = []
        self.committing = False
        self.committed = False
        self.fed = False
        self.failure: Exception | None = None


class Writer:
    """Runs operations in IMMEDIATE transactions, in the order in which their threads came.

    The steps (take the turn, begin, carry out, commit, give back) are separate methods, so that a transaction that one
    thread keeps open over several calls can be built from them.
    """

    def __init__(
        self,
        file: DatabaseFile,
        open_connection: Callable[[float], apsw.Connection],
        feed: Callable[[list[Change]], None],
    ) -> None:
        self._file = file
        self._open_connection = open_connection
        self._feed = feed
        self._turn = Turn()
        self._connection: apsw.Connection | None = None
        self._synced: bool | None = None
        self._leader = 0

    @property
    def is_open(self) -> bool:
        """Whether a handle on the file is open."""
        return self._connection is not None

    def write(self, operation: Operation, *, sync: bool, busy_timeout: float) -> Any:
        """Carry out an operation in a transaction of its own or of a group, and return what it returned.

        Raises what the operation raised, or a store error; then nothing of it was written. The in-process wait for
        the turn and SQLite's wait for the lock share the one ``busy_timeout`` (seconds).
        """
        ticket = Ticket(operation, sync=sync, deadline=time.monotonic() + busy_timeout)
        turn = self._turn
        try:
            if self._enter(turn, ticket):
                self._lead(turn, ticket)
        finally:
            self._leave(turn, ticket)
        if ticket.error is not None:
            try:
                raise ticket.error
            finally:
                # The traceback leads back to this frame.
                del ticket
        return ticket.result

    def hold(self, *, busy_timeout: float) -> Ticket:
        """Take the turn without a transaction and without riders; StoreBusy when it is not free in time."""
        ticket = Ticket(None, sync=False, deadline=time.monotonic() + busy_timeout)
        try:
            self._enter(self._turn, ticket)
            self._leader = get_ident()
        except BaseException:
            self._leave(self._turn, ticket)
            raise
        return ticket

    def let_go(self, ticket: Ticket) -> None:
        """Give back what :meth:`hold` took."""
        self._leave(self._turn, ticket)

    def connection(self, busy_timeout: float) -> apsw.Connection:
        """Return the writing connection, opened where it was not; only for the holder of the turn."""
        if self._connection is None:
            self._connection = self._open_connection(busy_timeout)
            self._synced = None
        self._connection.set_busy_timeout(connections.milliseconds(busy_timeout))
        return self._connection

    def close(self) -> None:
        """Close the connection; only for the holder of the turn."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connections.close(connection, self._file)

    def is_mine(self) -> bool:
        """Tell whether the calling thread holds the turn."""
        return self._leader == get_ident()

    def freeze(self) -> None:
        """Keep every thread out of the lock itself, over a fork."""
        self._turn.freeze()

    def thaw(self) -> None:
        """Undo :meth:`freeze`."""
        self._turn.thaw()

    def start_over(self) -> list[apsw.Connection]:
        """Forget the threads of the parent process; returns the connection if it is still open."""
        self._turn.thaw()
        self._turn = Turn()
        self._leader = 0
        connection, self._connection = self._connection, None
        return [] if connection is None else [connection]

    def _enter(self, turn: Turn, ticket: Ticket) -> bool:
        if self._leader == get_ident():
            raise RuntimeError("a write was started inside another write of the same thread")
        try:
            return turn.enter(ticket)
        except Overdue:
            raise StoreBusy(
                self._file.path, "another thread of this process held the writer", code=apsw.SQLITE_BUSY
            ) from None

    def _leave(self, turn: Turn, ticket: Ticket) -> None:
        if ticket.state is State.LEADING:
            self._leader = 0
        try:
            turn.leave(ticket)
        except BaseException:
            # An interrupt between two bytecodes; leaving is idempotent, and a lock kept would stop every thread.
            turn.leave(ticket)
            raise

    def _lead(self, turn: Turn, leader: Ticket) -> None:
        self._leader = get_ident()
        connection = self.connection(leader.deadline - time.monotonic())
        group = _Group(connection, synced=leader.sync or turn.needs_sync(MOST_RIDERS))
        try:
            self._begin(group)
            leader.result = leader.operation(group.connection, leader.changes)  # type: ignore[misc]
            self._carry_riders(turn, group)
            self._commit(group)
        except Exception as exc:
            group.failure = self._fault(group, exc)
            if group.failure is exc:
                raise
            raise group.failure from exc
        finally:
            try:
                self._settle(turn, leader, group)
            except BaseException:
                self._settle(turn, leader, group)
                raise

    def _begin(self, group: _Group) -> None:
        if group.synced is not self._synced:
            # Unknown until it is done: a commit must never be taken for synced when it is not.
            self._synced = None
            connections.set_synced(group.connection, synced=group.synced)
            self._synced = group.synced
        group.connection.execute("BEGIN IMMEDIATE")

    def _carry_riders(self, turn: Turn, group: _Group) -> None:
        rider = turn.board(group.riders, synced=group.synced)
        until = time.monotonic() + LONGEST_GROUP if rider is not None else 0.0
        while rider is not None:
            if not self._carry(group, rider):
                return
            if len(group.riders) >= MOST_RIDERS or time.monotonic() >= until:
                return
            rider = turn.board(group.riders, synced=group.synced)

    def _carry(self, group: _Group, rider: Ticket) -> bool:
        """Carry out one rider's operation; False when the group can take no more."""
        execute = group.connection.execute
        try:
            execute("SAVEPOINT jobq_rider")
        except apsw.BusyError:
            # An operation before it left a statement unfinished. COMMIT will say so; this rider is not to blame.
            return False
        rider.ran = True
        try:
            rider.result = rider.operation(group.connection, rider.changes)  # type: ignore[misc]
            execute("RELEASE jobq_rider")
        except Exception as exc:
            if not group.connection.in_transaction:
                # SQLite rolled back everybody's work, so everybody gets this error.
                raise
            rider.error = self._fault(group, exc)
            rider.changes.clear()
            execute("ROLLBACK TO jobq_rider")
            execute("RELEASE jobq_rider")
        return True

    def _commit(self, group: _Group) -> None:
        self._file.check()
        if not group.connection.in_transaction:
            raise RuntimeError("an operation ended the transaction it was called in")
        group.committing = True
        group.connection.execute("COMMIT")
        group.committed = True

    def _fault(self, group: _Group, error: Exception) -> Exception:
        if not isinstance(error, apsw.Error):
            return error
        errno = group.connection.system_errno
        return translate(error, self._file.path, errno=errno, outcome_unknown=group.committing)

    def _settle(self, turn: Turn, leader: Ticket, group: _Group) -> None:
        """End the transaction where it still is open, feed what was committed, and wake the riders. Idempotent."""
        if group.connection is not self._connection:
            return  # forked meanwhile: the transaction and the riders belong to the parent
        if group.committing and group.failure is None and not group.connection.in_transaction:
            group.committed = True  # an interrupt came after COMMIT was done
        if not group.committed:
            self._roll_back(group.connection)
        elif not group.fed:
            self._tell(leader, group)
            group.fed = True
        self._answer(turn, group)

    def _roll_back(self, connection: apsw.Connection) -> None:
        # FULL and I/O errors have rolled back by themselves; a ROLLBACK then would raise and hide the cause.
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except apsw.Error:
            self.close()

    def _tell(self, leader: Ticket, group: _Group) -> None:
        changes = leader.changes
        for rider in group.riders:
            if rider.ran:
                changes = changes + rider.changes
        if changes:
            self._feed(changes)

    def _answer(self, turn: Turn, group: _Group) -> None:
        unserved = []
        for rider in group.riders:
            if rider.state is _DONE:
                continue
            if group.failure is not None and rider.ran:
                rider.error = again(group.failure)
            elif not (group.committed and rider.ran):
                unserved.append(rider)
                continue
            turn.answer(rider)
        if unserved:
            turn.put_back(unserved)
