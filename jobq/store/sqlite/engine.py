"""The engine: operations on the one file, on one guarded writer and a few readers.

Verbs are functions over a connection; the engine gives them a transaction. It holds no handle before the first verb
and none over a fork.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import apsw

from jobq import fork
from jobq.errors import ForkedHandle, QueueClosed, StoreBusy
from jobq.model.events import Change
from jobq.store.hosting import Reading
from jobq.store.sqlite import backup, foreign, inherited, migrate, upkeep
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.aside import Aside
from jobq.store.sqlite.building import building
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.hosted import Hosted, Snapshot
from jobq.store.sqlite.migrate import Migration
from jobq.store.sqlite.opening import Opening
from jobq.store.sqlite.readers import Readers
from jobq.store.sqlite.turn import Ticket
from jobq.store.sqlite.upkeep import Status
from jobq.store.sqlite.watch import Watch
from jobq.store.sqlite.writer import Writer

T = TypeVar("T")

#: How long a fork, and close(), wait for what other threads are doing, in seconds.
QUIET_WITHIN = 5.0


def _now() -> int:
    return time.time_ns() // 1_000_000


class Engine:
    """Runs operations in transactions on one database file.

    Opening checks the library, the file and its version, makes or migrates the file, and closes it again: the handles
    are opened by the first verb, so that a preloading server may fork after opening. Raises ArgumentError,
    ConfigError, ForeignHandle, ForkedHandle, SchemaTooNew or a StoreError.

    ``feed`` gets the changes of each commit, in the order of the commits and still under the lock, so it must do no
    more than keep them. ``now`` is the time of migration records, in milliseconds.
    """

    def __init__(
        self,
        path: str,
        *,
        feed: Callable[[list[Change]], None],
        create: bool = True,
        busy_timeout: float = 5.0,
        migrations: Sequence[Migration] | None = None,
        now: Callable[[], int] = _now,
        vfs: str | None = None,
        quiet_within: float = QUIET_WITHIN,
    ) -> None:
        connections.check_library(apsw.sqlite_lib_version())
        self.path = connections.check_path(path)
        self._closed = False
        self._quiet_within = quiet_within
        self._file = DatabaseFile(self.path)
        self._opening = Opening(self._file, migrate.packaged() if migrations is None else migrations, vfs=vfs)
        self._writer = Writer(self._file, self._open, feed, self._close_idle)
        self._readers = Readers(self._file, self._open_reader)
        self._aside = Aside(self._file, readers=self._readers, writer=self._writer)
        self._watch = Watch(self._file, self._open_reader)
        self._fork_ticket: Ticket | None = None
        self._hosted: Hosted | None = None
        with building.opening(self.path):
            self._opening.prepare(create=create, busy_timeout=busy_timeout, now=now)
            fork.register(self)

    def write(
        self, operation: Callable[[apsw.Connection, list[Change]], T], *, sync: bool, busy_timeout: float
    ) -> T:
        """Carry out an operation in an IMMEDIATE transaction, which other threads' operations may share.

        It appends its changes to the list that it is given; they are fed after the commit. ``sync`` asks that the
        commit survives power loss. If the operation raises, it alone is rolled back and its error comes back. After a
        store error nothing of it is written, unless ``outcome_unknown`` says so.
        """
        self._check_open()
        # Looked at twice: only while a thread keeps a transaction open is there a question whose it is.
        if self._hosted is not None and (hosted := self.mine) is not None:
            return hosted.join(operation)
        result: T = self._writer.write(operation, sync=sync, busy_timeout=busy_timeout)
        return result

    def read(self, operation: Callable[[apsw.Connection], T], *, busy_timeout: float) -> T:
        """Carry out an operation that only reads, on one snapshot."""
        self._check_open()
        if (hosted := self.mine) is not None:
            return hosted.read(operation)
        return self._readers.read(operation, busy_timeout=busy_timeout)

    @property
    def mine(self) -> Hosted | None:
        """The transaction that the calling thread keeps open; its reads and writes join it."""
        return self._hosted if self._hosted is not None and self._writer.is_mine else None

    @contextmanager
    def transaction(
        self, *, sync: bool, busy_timeout: float, on_commit: Callable[[], None], on_blocked: Callable[[], None]
    ) -> Iterator[Hosted]:
        """Keep a transaction open for the calling thread, as :meth:`Writer.keep`; inside another it is a savepoint."""
        self._check_open()
        if (outer := self.mine) is not None:
            with outer.nested() as inner:
                yield inner
            return
        keep = self._writer.keep
        with keep(sync=sync, busy_timeout=busy_timeout, on_commit=on_commit, on_blocked=on_blocked) as group:
            hosted = self._hosted = Hosted(group, self._file)
            try:
                yield hosted
                hosted.check()
            finally:
                self._hosted, hosted.over = None, True

    @contextmanager
    def snapshot(self, *, busy_timeout: float) -> Iterator[Reading]:
        """Keep one snapshot open for the calling thread; inside its transaction it is what that sees."""
        self._check_open()
        if (outer := self.mine) is not None:
            yield outer.look
            return
        with self._readers.snapshot(busy_timeout=busy_timeout) as connection:
            seen = Snapshot(connection, self._file)
            try:
                yield seen.execute
            finally:
                seen.over = True

    def data_version(self) -> int:
        """Return a number that changes whenever anybody committed, in this process or another."""
        self._check_open()
        return self._watch.version()

    def checkpoint(self) -> None:
        """Move the WAL into the database while others go on; cut it back when it has grown large.

        Does nothing where others are at work just then. Raises a store error when the disk does not take it.
        """
        self._check_open()
        if self.mine is None:
            self._aside.checkpoint()

    def backup(self, path: str, *, progress: Callable[[int, int], object], busy_timeout: float) -> None:
        """Copy the file as of now into the empty file at ``path``, on a snapshot that holds up nobody."""
        self._check_open()
        with self._readers.snapshot(busy_timeout=busy_timeout) as connection:
            backup.copy(connection, path, progress)

    def foreign_handles(self) -> bool:
        """Tell whether another copy of SQLite has the file open in this process, as far as the system tells."""
        # So that apsw has the -shm file open and a second descriptor on it is somebody else's.
        self.data_version()
        return foreign.found(self.path)

    def status(self) -> Status:
        """Return what the file and the library look like now."""
        return self.read(lambda connection: upkeep.status(connection, self.path), busy_timeout=1.0)

    def is_usable(self) -> bool:
        """Tell whether verbs can be called: it is not closed, and no fork has spoiled it."""
        try:
            self._check_open()
        except (QueueClosed, ForkedHandle):
            return False
        return True

    def close(self) -> None:
        """Close every handle once what runs has ended; verbs then raise QueueClosed. Does nothing the second time.

        In a child that inherited handles it leaves them alone: closing them would harm the parent.
        """
        if self._closed:
            return
        if not self.is_usable():
            self._closed = True
            return
        ticket = self._writer.hold(busy_timeout=self._quiet_within)
        try:
            self._closed = True
            self._watch.close()
            self._readers.close()
            self._writer.close()
        finally:
            self._writer.let_go(ticket)

    def before_fork(self) -> None:
        """Close every handle, waiting for transactions within limits; a child without locks would lose commits."""
        until = time.monotonic() + self._quiet_within
        if not self._writer.is_mine:
            try:
                self._fork_ticket = self._writer.hold(busy_timeout=self._quiet_within)
                self._writer.close()
            except StoreBusy:
                # The connection stays open, which the child will find.
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
        self._fork_ticket = self._hosted = None
        left_open = [*self._writer.start_over(), *self._watch.start_over(), *self._readers.start_over()]
        inherited.keep(left_open)
        self._file.adopt_process(spoiled=bool(left_open) or inherited.has(self.path))

    def _check_open(self) -> None:
        self._file.check_process()
        if self._closed:
            raise QueueClosed

    def _open(self, busy_timeout: float) -> apsw.Connection:
        if self._closed:
            raise QueueClosed
        alone = not (self._writer.is_open or self._readers.is_open or self._watch.is_open)
        return self._opening.open(busy_timeout, alone=alone)

    def _close_idle(self) -> None:
        """Close what nobody uses just now, after a write that met a read-only file.

        Whether the -shm file may be written is shared by all handles of the process: while one stays that was opened
        on a disk for reading only, no other could write when the disk no longer is.
        """
        self._readers.close_idle()
        self._watch.close_idle()

    def _open_reader(self, busy_timeout: float) -> apsw.Connection:
        return connections.make_reader(self._open(busy_timeout))
