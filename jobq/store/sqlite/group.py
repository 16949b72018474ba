"""A transaction that several threads share: the leader's operation, then those of its riders.

Each rider is a savepoint, because its operation may fail half way; the leader comes first and needs none.
"""

import time
from collections.abc import Callable

import apsw

from jobq.model.events import Change
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import again, translate
from jobq.store.sqlite.handle import Handle
from jobq.store.sqlite.turn import State, Ticket, Turn

#: A group ends after this many riders, or when this many seconds have passed: transactions stay short for others.
MOST_RIDERS = 63
LONGEST_GROUP = 0.005

_RIDING = State.RIDING


class Group:
    """One transaction on the writing connection, and who shares it."""

    __slots__ = (
        "committed", "committing", "connection", "execute", "failure", "fed", "file", "handle", "leader", "on_commit",
        "read_only", "riders", "spoiled", "synced",
    )  # fmt: skip

    def __init__(self, handle: Handle, file: DatabaseFile, leader: Ticket, *, synced: bool) -> None:
        self.handle = handle
        self.connection = handle.connection
        self.execute = handle.control.execute
        self.file = file
        self.leader = leader
        self.synced = synced
        self.riders: list[Ticket] = []
        self.committing = False
        self.committed = False
        self.fed = False
        #: What ended the transaction; everybody who shared it gets this error.
        self.failure: Exception | None = None
        #: Called after the commit and still under the lock, so it must do no more than keep something.
        self.on_commit: Callable[[], None] | None = None
        #: Whether the connection must be closed: a statement on it would stay unfinished, or it cannot write any more.
        self.spoiled = False
        #: Whether it could only read.
        self.read_only = False

    @property
    def threads(self) -> frozenset[int]:
        """The threads that share it."""
        return frozenset([self.leader.thread, *(rider.thread for rider in self.riders)])

    def carry_riders(self, turn: Turn) -> None:
        """Carry out the operations of those who wait, until there are no more or the group is large enough."""
        until = time.monotonic() + LONGEST_GROUP
        while len(self.riders) < MOST_RIDERS and time.monotonic() < until:
            rider = turn.board(self.riders, synced=self.synced) if turn.line else None
            if rider is None or not self._carry(rider):
                return

    def commit(self) -> None:
        """Commit for all, provided that the file still is the one that was opened."""
        self.file.check()
        if not self.connection.in_transaction:
            raise RuntimeError("an operation ended the transaction that it was called in")
        self.committing = True
        self.execute("COMMIT")
        self.committed = True

    def fail(self, error: Exception) -> Exception:
        """Note what ended the transaction and return it as the typed error."""
        self.failure = self._fault(error)
        self.spoiled = self.failure is error and isinstance(error, apsw.BusyError)
        self.note(error)
        return self.failure

    def note(self, error: Exception) -> None:
        """Note what an error says of the connection: one that was opened for reading only stays so."""
        if isinstance(error, apsw.ReadOnlyError):
            self.read_only = self.spoiled = True

    def end(self) -> None:
        """Make sure that the transaction is over, however it went. Idempotent."""
        in_transaction = self.connection.in_transaction
        if self.committing and self.failure is None and not in_transaction:
            # An interrupt came when COMMIT was done and before it was noted.
            self.committed = True
        # FULL and I/O errors have rolled back by themselves; a ROLLBACK then would raise and hide the cause.
        if in_transaction:
            try:
                self.execute("ROLLBACK")
            except apsw.Error:
                self.spoiled = True

    def changes(self) -> list[Change]:
        """Return what was committed, in order."""
        found = self.leader.changes
        for rider in self.riders:
            if rider.ran:
                found = found + rider.changes
        return found

    def answer(self, turn: Turn) -> None:
        """Wake the riders with their results; who was not served waits again, in front. Idempotent."""
        unserved = []
        for rider in self.riders:
            if rider.state is not _RIDING:
                continue
            if self.failure is not None and rider.ran:
                rider.error = again(self.failure)
            elif not (self.committed and rider.ran):
                unserved.append(rider)
                continue
            turn.answer(rider)
        if unserved:
            turn.put_back(unserved)

    def _carry(self, rider: Ticket) -> bool:
        """Carry out one rider's operation; False when the group can take no more."""
        self.file.check_process()
        operation = rider.operation
        execute = self.execute
        try:
            execute("SAVEPOINT jobq_rider")
        except apsw.BusyError:
            # An operation before it left a statement unfinished. COMMIT will say so; this rider is not to blame.
            return False
        rider.ran = True
        try:
            if operation is not None:
                rider.result = operation(self.connection, rider.changes)
            execute("RELEASE jobq_rider")
        except Exception as exc:
            if not self.connection.in_transaction:
                # SQLite rolled back everybody's work, so everybody gets this error.
                raise
            rider.error = self._fault(exc)
            rider.changes.clear()
            execute("ROLLBACK TO jobq_rider")
            execute("RELEASE jobq_rider")
        return True

    def _fault(self, error: Exception) -> Exception:
        if not isinstance(error, apsw.Error):
            return error
        errno = self.connection.system_errno
        return translate(error, self.file.path, errno=errno, outcome_unknown=self.committing)
