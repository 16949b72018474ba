"""What takes the enqueues of a thread while it has joined a connection of the host's."""

import os
from collections.abc import Callable, Sequence
from datetime import datetime

from jobq.errors import ForeignHandle, OutboxTableMissing, OutboxUnavailable, OutsideTransaction
from jobq.log import get_logger
from jobq.model.draft import Draft
from jobq.model.instant import to_ms
from jobq.outbox import envelope
from jobq.outbox.host import Host, lacks_table
from jobq.outbox.table import UID_BYTES, NewRow

logger = get_logger(__name__)


class Staging:
    """Stages drafts through one connection, inside the transaction that the host has open on it.

    Nothing here commits, rolls back, or begins a transaction before something is staged.
    """

    def __init__(
        self, host: Host, *, path: str, required: bool, known: bool, on_known: Callable[[], None]
    ) -> None:
        self._host = host
        self._path = path
        self._required = required
        # Whether the table was seen; asked for at most once a process.
        self._known = known
        self._on_known = on_known
        self._checked = False

    def check(self) -> None:
        """Refuse what can be seen to be wrong before anything is staged, without a statement in a transaction."""
        refuse_unfit(self._host, self._path)
        if self._required and self._host.will_commit_alone():
            raise OutsideTransaction("the connection is in autocommit and has no transaction open")

    def put(self, drafts: Sequence[Draft], *, now: datetime) -> list[int]:
        """Insert a row for each draft, all of them or none, and return their numbers."""
        self._check_again()
        rows = [
            NewRow(os.urandom(UID_BYTES).hex(), draft.kind, envelope.write(draft), to_ms(now))
            for draft in drafts
        ]
        try:
            numbers = self._host.stage(rows)
        except Exception as error:  # the driver's own, and the host's to deal with
            if lacks_table(error):
                raise OutboxTableMissing from error
            raise
        self._on_known()
        logger.debug("jobq.outbox.staged", count=len(numbers))
        return numbers

    def _check_again(self) -> None:
        """Look at what may have changed since, or could not be seen before."""
        _refuse_unusable(self._host)
        if self._required and self._host.commits_alone():
            raise OutsideTransaction("the connection is in autocommit and has no transaction open")
        if not self._checked:
            if not self._known and not self._host.has_table():
                raise OutboxTableMissing
            refuse_jobqs_file(self._host, self._path)
            self._checked = True


def refuse_unfit(host: Host, path: str) -> None:
    """Raise OutboxUnavailable where a connection cannot be used, ForeignHandle where it has jobq's own file open."""
    _refuse_unusable(host)
    refuse_jobqs_file(host, path)


def refuse_jobqs_file(host: Host, path: str) -> None:
    """Raise ForeignHandle where a connection has jobq's own file open.

    With another copy of SQLite that corrupts the file; with apsw there is no need of an outbox.
    """
    wanted = _identity(path)
    if wanted is not None and any(_identity(name) == wanted for name in host.files()):
        raise ForeignHandle(path)


def _refuse_unusable(host: Host) -> None:
    """Raise OutboxUnavailable where a connection is closed, or another thread's."""
    problem = host.problem()
    if problem is not None:
        raise OutboxUnavailable(problem)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
