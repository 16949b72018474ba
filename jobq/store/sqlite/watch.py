"""A connection that only tells whether somebody committed."""

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import apsw

from jobq.errors import QueueClosed
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import reraise
from jobq.store.sqlite.patience import wait_at_most

#: SQLite's counter has 32 bits; the number of the connection stands above it.
_COUNTER_BITS = 32
#: How long, in seconds, opening waits for another process that recovers the WAL, or makes its last checkpoint.
_OPEN_WITHIN = 5.0


class Watch:
    """Reads ``PRAGMA data_version``, which changes with each commit of any other connection in any process."""

    def __init__(self, file: DatabaseFile, open_connection: Callable[[float], apsw.Connection]) -> None:
        self._file = file
        self._open_connection = open_connection
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._number = 0
        self._connection: apsw.Connection | None = None
        self._closed = False
        self._paused = False

    @property
    def is_open(self) -> bool:
        """Whether a handle on the file is open."""
        return self._connection is not None

    def version(self) -> int:
        """Return a number that differs from the last one if anybody committed since, or the connection is new."""
        with self._lock:
            if self._closed:
                raise QueueClosed
            if self._connection is None:
                self._number = next(self._numbers)
                self._connection = self._open_connection(_OPEN_WITHIN)
                wait_at_most(self._connection, 0)
            connection = self._connection
            self._file.check()
            try:
                rows: list[Any] = connection.execute("PRAGMA data_version").fetchall()
            except apsw.Error as exc:
                reraise(exc, self._file.path, errno=connection.system_errno)
            return self._number << _COUNTER_BITS | int(rows[0][0])

    def close_idle(self) -> None:
        """Close the connection; the next look opens another."""
        with self._lock:
            self._close_connection()

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._closed = True
            self._close_connection()

    def pause(self, *, until: float) -> bool:
        """Close the connection and let nobody in until :meth:`resume`; False where that takes too long."""
        self._paused = self._lock.acquire(timeout=max(0.0, until - time.monotonic()))
        if self._paused:
            self._close_connection()
        return self._paused

    def resume(self) -> None:
        """Undo :meth:`pause`."""
        if self._paused:
            self._lock.release()

    def start_over(self) -> list[apsw.Connection]:
        """Forget the threads of the parent process; returns the connection if it is still open."""
        self._lock = threading.Lock()
        connection, self._connection = self._connection, None
        return [] if connection is None else [connection]

    def _close_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connections.close(connection)
