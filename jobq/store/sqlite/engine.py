"""The engine: operations on the one file, on one guarded writer and a few readers.

Verbs are functions over a connection; the engine gives them a transaction. It holds no handle before the first verb
and none over a fork.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw
import attrs

from jobq import fork
from jobq.errors import ForkedHandle, QueueClosed, StoreBusy
from jobq.model.events import Change
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite import foreign, inherited, migrate
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import translate
from jobq.store.sqlite.migrate import Migration
from jobq.store.sqlite.readers import Readers
from jobq.store.sqlite.turn import Ticket
from jobq.store.sqlite.watch import Watch
from jobq.store.sqlite.writer import Writer

T = TypeVar("T")

#: How long a fork, and close(), wait for what other threads are doing.
QUIET_WITHIN = 5.0
#: How long a checkpoint that resets the WAL may wait for others.
_RESET_WITHIN = 0.02


def _now() -> int:
    return time.time_ns() // 1_000_000


@attrs.frozen(kw_only=True)
class Status:
    """What the file and the library look like, for people."""

    library: str
    journal_mode: str
    schema_version: int
    auto_vacuum: int
    page_size: int
    pages: int
    free_pages: int
    file_bytes: int
    wal_bytes: int


class Engine:
    """Runs operations in transactions on one database file.

    Opening checks the library, the file and its version, makes or migrates the file, and closes it again: the handles
    are opened by the first verb, so that a preloading server may fork after opening. Raises ArgumentError,
    ConfigError, ForeignHandle, ForkedHandle, SchemaTooNew or a StoreError.

    ``feed`` gets the changes of each commit, in the order of the commits and still under the lock, so it must do no
    more than keep them.
    """

    def __init__(
        self,
        path: str,
        *,
        feed: Callable[[list[Change]], None],
        busy_timeout: float = 5.0,
        migrations: Sequence[Migration] | None = None,
        now: Callable[[], int] = _now,
        vfs: str | None = None,
    ) -> None:
        connections.check_library(apsw.sqlite_lib_version())
        self.path = connections.check_path(path)
        self._vfs = vfs
        self._closed = False
        self._migrations = migrate.packaged() if migrations is None else list(migrations)
        self._version = self._migrations[-1].number if self._migrations else 0
        self._file = DatabaseFile(self.path)
        self._writer = Writer(self._file, self._open, feed)
        self._readers = Readers(self._file, self._open_reader)
        self._watch = Watch(self._file, self._open_reader)
        self._fork_ticket: Ticket | None = None
        self._prepare(busy_timeout, now)
        fork.register(self)

    def write(
        self, operation: Callable[[apsw.Connection, list[Change]], T], *, sync: bool, busy_timeout: float
    ) -> T:
        """Carry out an operation in an IMMEDIATE transaction, which other threads' operations may share.

        It appends its changes to the list that it is given; they are fed after the commit. ``sync`` asks that the
        commit survives power loss. If the operation raises, it alone is rolled back and its error comes back. A store
        error means that nothing of it was written, but for ``outcome_unknown``.
        """
        self._check_open()
        result: T = self._writer.write(operation, sync=sync, busy_timeout=busy_timeout)
        return result

    def read(self, operation: Callable[[apsw.Connection], T], *, busy_timeout: float) -> T:
        """Carry out an operation that only reads, on one snapshot."""
        self._check_open()
        return self._readers.read(operation, busy_timeout=busy_timeout)

    def data_version(self) -> int:
        """Return a number that changes whenever anybody committed, in this process or another."""
        self._check_open()
        return self._watch.version()

    def checkpoint(self) -> None:
        """Move the WAL into the database as far as nobody is disturbed; cut it back when it has grown large.

        Does nothing where others are at work just then; the next call finds the same.
        """
        self._check_open()
        try:
            ticket = self._writer.hold(busy_timeout=_RESET_WITHIN)
        except StoreBusy:
            return
        try:
            self._checkpoint()
        finally:
            self._writer.let_go(ticket)

    def foreign_handles(self) -> bool:
        """Tell whether another copy of SQLite has the file open in this process, as far as the system tells."""
        # So that apsw has the -shm file open and a second descriptor on it is somebody else's.
        self.data_version()
        return foreign.found(self.path)

    def status(self) -> Status:
        """Return what the file and the library look like now."""
        return self.read(self._status, busy_timeout=1.0)

    def is_usable(self) -> bool:
        """Tell whether verbs can be called: it is not closed, and no fork has spoiled it."""
        try:
            self._check_open()
        except (QueueClosed, ForkedHandle):
            return False
        return True

    def close(self) -> None:
        """Close every handle once what runs has ended; verbs then raise QueueClosed. Does nothing the second time."""
        if self._closed:
            return
        self._file.check_process()
        ticket = self._writer.hold(busy_timeout=QUIET_WITHIN)
        try:
            self._closed = True
            self._watch.close()
            self._readers.close()
            self._writer.close()
        finally:
            self._writer.let_go(ticket)

    def before_fork(self) -> None:
        """Close every handle, waiting for transactions within limits; a child without locks would lose commits."""
        until = time.monotonic() + QUIET_WITHIN
        if not self._writer.is_mine():
            try:
                self._fork_ticket = self._writer.hold(busy_timeout=QUIET_WITHIN)
                self._writer.close()
            except StoreBusy:
                self._fork_ticket = None
        self._readers.pause(until=until)
        self._watch.pause(until=until)
        self._writer.freeze()

    def after_fork_in_parent(self) -> None:
        """Go on; the next verb opens its handle again."""
        self._writer.thaw()
        self._watch.resume()
        self._readers.resume()
        ticket, self._fork_ticket = self._fork_ticket, None
        if ticket is not None:
            self._writer.let_go(ticket)

    def after_fork_in_child(self) -> None:
        """Replace the locks; refuse to work where a handle on the file could not be closed."""
        self._fork_ticket = None
        kept = [*self._writer.start_over(), *self._watch.start_over(), *self._readers.start_over()]
        inherited.keep(kept)
        self._file.adopt_process(spoiled=bool(kept) or inherited.has(self.path))

    def _check_open(self) -> None:
        self._file.check_process()
        if self._closed:
            raise QueueClosed

    def _prepare(self, busy_timeout: float, now: Callable[[], int]) -> None:
        if inherited.has(self.path):
            raise ForkedHandle(self.path)
        foreign.check(self.path)
        migrate.look(self.path, self._version, vfs=self._vfs)
        try:
            create = not os.path.exists(self.path)
            connection = connections.connect(self.path, create=create, vfs=self._vfs, busy_timeout=busy_timeout)
        except apsw.Error as exc:
            raise translate(exc, self.path) from exc
        try:
            migrate.refuse_newer(self.path, migrate.version(connection), self._version)
            migrate.prepare(connection, busy_timeout=busy_timeout)
            migrate.migrate(connection, self.path, self._migrations, now)
            self._file.remember()
        except apsw.Error as exc:
            raise translate(exc, self.path, errno=connection.system_errno) from exc
        finally:
            connection.close()

    def _open(self, busy_timeout: float) -> apsw.Connection:
        if self._closed:
            raise QueueClosed
        if self._writer.is_open or self._readers.is_open or self._watch.is_open:
            self._file.check()
        else:
            self._file.check_closed()
        try:
            connection = connections.connect(self.path, vfs=self._vfs, busy_timeout=busy_timeout)
        except apsw.Error as exc:
            raise translate(exc, self.path) from exc
        try:
            self._file.check()
            migrate.check_current(connection, self.path, self._version)
            self._file.remember_wal()
        except apsw.Error as exc:
            errno = connection.system_errno
            connection.close()
            raise translate(exc, self.path, errno=errno) from exc
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self, busy_timeout: float) -> apsw.Connection:
        return connections.make_reader(self._open(busy_timeout))

    def _checkpoint(self) -> None:
        connection = self._writer.connection(0)
        self._file.check()
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if self._wal_bytes() > connections.WAL_LIMIT:
                connection.set_busy_timeout(connections.milliseconds(_RESET_WITHIN))
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return
        except apsw.Error as exc:
            raise translate(exc, self.path, errno=connection.system_errno) from exc

    def _wal_bytes(self) -> int:
        try:
            return os.stat(self.path + "-wal").st_size
        except OSError:
            return 0

    def _status(self, connection: apsw.Connection) -> Status:
        def ask(pragma: str) -> int:
            rows: list[Any] = connection.execute(pragma).fetchall()
            return int(rows[0][0])

        page_size, pages = ask("PRAGMA page_size"), ask("PRAGMA page_count")
        return Status(
            library=apsw.sqlite_lib_version(),
            journal_mode=str(connection.execute("PRAGMA journal_mode").fetchall()[0][0]),
            schema_version=migrate.version(connection),
            auto_vacuum=ask("PRAGMA auto_vacuum"),
            page_size=page_size,
            pages=pages,
            free_pages=ask("PRAGMA freelist_count"),
            file_bytes=page_size * pages,
            wal_bytes=self._wal_bytes(),
        )
