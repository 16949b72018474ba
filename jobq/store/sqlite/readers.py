"""A small pool of connections that only read.

A pool and not a connection per thread: threads that live shortly leave nothing behind. Last in, first out, so that the
warm caches are used. Each read runs in one transaction, so its statements see one snapshot.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import TypeVar

import apsw

from jobq.errors import QueueClosed
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import reraise
from jobq.store.sqlite.patience import wait_at_most

T = TypeVar("T")

#: How many idle connections are kept.
MOST_IDLE = 4


class _Loan:
    """A connection in use by a thread; without one before it was opened and after it was taken back."""

    __slots__ = ("connection", "thread")

    def __init__(self) -> None:
        self.connection: apsw.Connection | None = None
        self.thread = get_ident()


class Readers:
    """Lends connections to reads; a read inside a read gets another one."""

    def __init__(self, file: DatabaseFile, open_connection: Callable[[float], apsw.Connection]) -> None:
        self._file = file
        self._open_connection = open_connection
        # Entered itself and not through the condition, whose methods an interrupt could leave with the lock taken.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._idle: list[apsw.Connection] = []
        self._loans: set[_Loan] = set()
        self._paused = False
        self._closed = False

    @property
    def is_open(self) -> bool:
        """Whether a handle on the file is open."""
        return bool(self._idle) or any(loan.connection is not None for loan in list(self._loans))

    def read(self, operation: Callable[[apsw.Connection], T], *, busy_timeout: float) -> T:
        """Run an operation in a read transaction and return what it returned.

        Raises a store error, or what the operation raised. An operation must not leave a statement open: that would
        pin the WAL, so it is a RuntimeError, and the connection is thrown away.
        """
        loan = _Loan()
        try:
            return self._read(loan, operation, busy_timeout)
        except apsw.Error as exc:
            errno = 0 if loan.connection is None else loan.connection.system_errno
            reraise(exc, self._file.path, errno=errno)
        finally:
            try:
                self._take_back(loan)
            except BaseException:
                # An interrupt between two bytecodes; a loan that stays would spoil every fork from now on.
                self._take_back(loan)
                raise

    @contextmanager
    def snapshot(self, *, busy_timeout: float) -> Iterator[apsw.Connection]:
        """Lend a connection in a read transaction that begins now, for as long as the block runs."""
        with self.bare(busy_timeout=busy_timeout) as connection:
            try:
                connection.execute("BEGIN")
                # The first read takes the snapshot, not BEGIN.
                connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
            except apsw.Error as exc:
                reraise(exc, self._file.path, errno=connection.system_errno)
            yield connection

    @contextmanager
    def bare(self, *, busy_timeout: float) -> Iterator[apsw.Connection]:
        """Lend a connection outside any transaction, for what SQLite refuses inside one."""
        loan = _Loan()
        try:
            try:
                connection = self._lend(loan, busy_timeout)
                self._file.check()
                wait_at_most(connection, busy_timeout)
            except apsw.Error as exc:
                reraise(exc, self._file.path, errno=0 if loan.connection is None else loan.connection.system_errno)
            yield connection
        finally:
            try:
                self._take_back(loan)
            except BaseException:
                self._take_back(loan)
                raise

    def pause(self, *, until: float) -> bool:
        """Wait until nobody reads, close the idle connections and let nobody in; False where that takes too long.

        It holds the inner lock until :meth:`resume` or :meth:`start_over`. ``until`` is a monotonic time. A thread
        that pauses inside its own read is told False at once.
        """
        self._lock.acquire()
        self._paused = True
        while self._loans and not self._is_reading():
            remaining = until - time.monotonic()
            if remaining <= 0 or not self._changed.wait(remaining):
                break
        self._close_idle()
        return not self._loans

    def resume(self) -> None:
        """Let everybody in again."""
        self._paused = False
        self._changed.notify_all()
        self._lock.release()

    def start_over(self) -> list[apsw.Connection]:
        """Forget the threads of the parent process; returns the connections that are still open."""
        kept = [loan.connection for loan in self._loans if loan.connection is not None]
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._loans = set()
        self._paused = False
        return kept

    def close_idle(self) -> None:
        """Close the idle connections; the next reads open others."""
        with self._lock:
            self._close_idle()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reads end. Later reads raise QueueClosed."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            self._close_idle()

    def _read(self, loan: _Loan, operation: Callable[[apsw.Connection], T], busy_timeout: float) -> T:
        connection = self._begin(loan, busy_timeout)
        result = operation(connection)
        self._file.check_process()
        connection.execute("COMMIT")
        if connection.txn_state("main") != apsw.SQLITE_TXN_NONE:
            raise RuntimeError("a read left a statement open")
        return result

    def _begin(self, loan: _Loan, busy_timeout: float) -> apsw.Connection:
        connection = self._lend(loan, busy_timeout)
        self._file.check()
        wait_at_most(connection, busy_timeout)
        connection.execute("BEGIN")
        return connection

    def _lend(self, loan: _Loan, busy_timeout: float) -> apsw.Connection:
        with self._lock:
            while self._paused and not self._is_reading():
                self._changed.wait()
            if self._closed:
                raise QueueClosed
            self._loans.add(loan)
            if self._idle:
                loan.connection = self._idle[-1]
                self._idle.pop()
        if loan.connection is None:
            loan.connection = self._open_connection(busy_timeout)
        return loan.connection

    def _take_back(self, loan: _Loan) -> None:
        if loan not in self._loans:
            return  # never lent, or forked meanwhile: the connection is the parent's
        connection = loan.connection
        healthy = connection is not None and self._is_at_rest(connection)
        with self._lock:
            if healthy and connection is not None and not self._closed and len(self._idle) < MOST_IDLE:
                loan.connection = None
                self._idle.append(connection)
            self._loans.discard(loan)
            if self._paused:
                self._changed.notify_all()
        if loan.connection is not None:
            connections.close(loan.connection)
            loan.connection = None

    def _is_at_rest(self, connection: apsw.Connection) -> bool:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return connection.txn_state("main") == apsw.SQLITE_TXN_NONE
        except apsw.Error:
            return False

    def _is_reading(self) -> bool:
        thread = get_ident()
        return any(loan.thread == thread for loan in self._loans)

    def _close_idle(self) -> None:
        while self._idle:
            connections.close(self._idle.pop())
