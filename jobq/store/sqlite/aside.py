"""What is done to the whole file beside the writer: checkpoints, while other threads and processes go on."""

from collections.abc import Callable
from typing import TypeVar

import apsw

from jobq.errors import StoreBusy
from jobq.store.sqlite import foreign, upkeep
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import reraise
from jobq.store.sqlite.readers import Readers
from jobq.store.sqlite.writer import Writer

T = TypeVar("T")


class Aside:
    """Works on connections of the readers, which hold nobody up; takes the writer's turn where nothing else helps."""

    def __init__(self, file: DatabaseFile, *, readers: Readers, writer: Writer) -> None:
        self._file = file
        self._readers = readers
        self._writer = writer

    def run(self, operation: Callable[[apsw.Connection], T], *, busy_timeout: float = 0) -> T:
        """Carry out something on a connection without a transaction; raises a store error where SQLite fails."""
        with self._readers.bare(busy_timeout=busy_timeout) as connection:
            try:
                return operation(connection)
            except apsw.Error as exc:
                reraise(exc, self._file.path, errno=connection.system_errno)

    def checkpoint(self) -> None:
        """Move the WAL into the database; cut it back when it has grown large.

        Raises StoreCorrupt where the WAL is one that nobody else can see any more.
        """
        foreign.check_beside(self._file.path)
        self.run(upkeep.checkpoint)
        if upkeep.is_overgrown(self._file.path):
            self._reset_wal()

    def _reset_wal(self) -> None:
        try:
            ticket = self._writer.hold(busy_timeout=upkeep.RESET_WITHIN)
        except StoreBusy:
            return
        try:
            connection = self._writer.connection(0)
            self._file.check()
            upkeep.reset(connection)
        except apsw.Error as exc:
            reraise(exc, self._file.path, errno=connection.system_errno)
        finally:
            try:
                self._writer.let_go(ticket)
            except BaseException:
                self._writer.let_go(ticket)  # an interrupt as the call began
                raise
