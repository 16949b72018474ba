"""The one writing connection of the process, and the turn of the threads at it.

The thread that holds the turn leads a group: it begins a transaction, carries out its own operation, then those of the
threads that wait behind it, and commits once for all. A transaction is the price of a small write, so sharing it
multiplies the throughput of a busy process; a synced commit even waits a moment for those who are likely to join.
Whether a commit is synced is chosen before BEGIN, because SQLite cannot change it inside a transaction; a rider that
needs a sync never shares a commit without one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import apsw

from jobq.errors import StoreBusy
from jobq.model.events import Change
from jobq.store.sqlite import company
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.group import MOST_RIDERS, Group
from jobq.store.sqlite.handle import Handle
from jobq.store.sqlite.turn import Operation, Overdue, Ticket, Turn


class Writer:
    """Runs operations in IMMEDIATE transactions, in the order in which their threads came.

    :meth:`write` does it in one call; :meth:`keep` leaves the transaction open for the calling thread meanwhile.
    """

    def __init__(
        self,
        file: DatabaseFile,
        open_connection: Callable[[float], apsw.Connection],
        feed: Callable[[list[Change]], None],
        close_others: Callable[[], None],
        *,
        pause: Callable[[], object] = company.pause,
    ) -> None:
        self._file = file
        self._open_connection = open_connection
        self._feed = feed
        self._close_others = close_others
        #: Whether the last connection could only read.
        self._read_only = False
        self._turn = Turn()
        self._handle: Handle | None = None
        self._company = company.Company(pause)
        #: Told when a thread waited in vain; set by the thread that keeps a transaction open.
        self._on_blocked: Callable[[], None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a handle on the file is open."""
        return self._handle is not None

    @property
    def waiting(self) -> int:
        """How many threads wait for their turn."""
        return self._turn.waiting

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread holds the turn."""
        return self._turn.holder == get_ident()

    def write(self, operation: Operation, *, sync: bool, busy_timeout: float) -> Any:
        """Carry out an operation in a transaction of its own or of a group, and return what it returned.

        Raises what the operation raised, or a store error; then nothing of it was written. The wait for the turn and
        SQLite's wait for the lock share the one ``busy_timeout`` (seconds).
        """
        ticket = Ticket(operation, sync=sync, patience=busy_timeout)
        turn = self._turn
        try:
            if self._enter(turn, ticket):
                self._lead(turn, ticket, operation)
        finally:
            # Twice, here and below: an interrupt may strike as the call begins. Both are idempotent, and a turn that
            # is never left, or a transaction that is never ended, would stop every thread.
            try:
                turn.leave(ticket)
            except BaseException:
                turn.leave(ticket)
                raise
        if ticket.error is not None:
            try:
                raise ticket.error
            finally:
                # The error's traceback leads to this frame: without this they keep each other alive.
                del ticket
        return ticket.result

    @contextmanager
    def keep(
        self, *, sync: bool, busy_timeout: float, on_commit: Callable[[], None], on_blocked: Callable[[], None]
    ) -> Iterator[Group]:
        """Keep a transaction open for the calling thread while the block runs; nobody rides in it, others wait.

        It is committed at the end of the block, and rolled back when the block raises, which goes through as it is.
        ``on_commit`` is called after the commit, still under the lock; ``on_blocked`` by a thread that waited in vain.
        """
        turn, ticket = self._turn, Ticket(None, sync=sync, patience=busy_timeout)
        try:
            self._enter(turn, ticket)
            group = Group(self._ready(ticket.patience), self._file, ticket, synced=sync)
            group.on_commit = on_commit
            try:
                self._step(group, lambda: group.handle.begin(synced=sync))
                self._on_blocked = on_blocked
                yield group
                self._step(group, group.commit)
            finally:
                self._on_blocked = None
                try:
                    self._settle(turn, group)
                except BaseException:
                    self._settle(turn, group)
                    raise
        finally:
            try:
                turn.leave(ticket)
            except BaseException:
                turn.leave(ticket)
                raise

    def hold(self, *, busy_timeout: float) -> Ticket:
        """Take the turn without a transaction and without riders; StoreBusy when it is not free in time."""
        ticket = Ticket(None, sync=False, patience=busy_timeout)
        try:
            self._enter(self._turn, ticket)
        except BaseException:
            self._turn.leave(ticket)
            raise
        return ticket

    def let_go(self, ticket: Ticket) -> None:
        """Give back what :meth:`hold` took. Idempotent."""
        self._turn.leave(ticket)

    def connection(self, busy_timeout: float) -> apsw.Connection:
        """Return the writing connection, opened where it was not; only for the holder of the turn."""
        handle = self._ready(busy_timeout)
        # Whoever has the connection may make it wait otherwise.
        handle.busy_timeout = None
        return handle.connection

    def close(self) -> None:
        """Close the connection; only for the holder of the turn."""
        handle, self._handle = self._handle, None
        if handle is not None:
            connections.close(handle.connection)

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
        self._on_blocked = None
        handle, self._handle = self._handle, None
        return [] if handle is None else [handle.connection]

    def _ready(self, busy_timeout: float) -> Handle:
        handle = self._handle
        if handle is None:
            if self._read_only:
                self._close_others()
            handle = self._handle = Handle(self._open_connection(busy_timeout))
        if busy_timeout != handle.busy_timeout:
            handle.wait(busy_timeout)
        return handle

    def _enter(self, turn: Turn, ticket: Ticket) -> bool:
        if turn.holder == ticket.thread:
            raise RuntimeError("a write was started inside another write of the same thread")
        try:
            return turn.enter(ticket)
        except Overdue:
            if (on_blocked := self._on_blocked) is not None:
                on_blocked()
            detail = "another thread of this process held the writer"
            raise StoreBusy(self._file.path, detail, code=apsw.SQLITE_BUSY) from None

    def _lead(self, turn: Turn, leader: Ticket, operation: Operation) -> None:
        handle = self._ready(leader.patience)
        synced = leader.sync or bool(turn.line and turn.needs_sync(MOST_RIDERS))
        group = Group(handle, self._file, leader, synced=synced)
        try:
            handle.begin(synced=synced)
            leader.result = operation(handle.connection, leader.changes)
            if turn.line:
                group.carry_riders(turn)
            if synced:
                self._company.gather(group, turn)
            group.commit()
        except Exception as exc:
            fault = group.fail(exc)
            if fault is exc:
                raise
            raise fault from exc
        finally:
            try:
                self._settle(turn, group)
            except BaseException:
                self._settle(turn, group)
                raise

    def _step(self, group: Group, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as exc:
            fault = group.fail(exc)
            if fault is exc:
                raise
            raise fault from exc

    def _settle(self, turn: Turn, group: Group) -> None:
        """End the transaction, feed what was committed, wake the riders. Idempotent, in case of an interrupt."""
        if group.handle is not self._handle:
            return  # Forked meanwhile, or closed below: the transaction and the riders are not ours to touch.
        if not group.committed:
            group.end()
        try:
            if group.committed and not group.fed:
                if changes := group.changes() if group.riders else group.leader.changes:
                    self._feed(changes)
                group.fed = True
            if group.committed and group.on_commit is not None:
                group.on_commit()
                group.on_commit = None
        finally:
            if group.riders:
                group.answer(turn)
        if group.spoiled:
            self._read_only = group.read_only
            self.close()
