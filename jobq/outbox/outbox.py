"""The outbox: jobs that are staged in the host's own database, in the host's own transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

import attrs

from jobq.arguments import check_int, check_word
from jobq.errors import ArgumentError
from jobq.jobqueue import JobQueue
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import from_ms, to_ms
from jobq.outbox.contact import Contact
from jobq.outbox.host import Host
from jobq.outbox.kinds import host_of
from jobq.outbox.relay import Relay
from jobq.outbox.staging import Staging, refuse_unfit
from jobq.outbox.table import DEFINITIONS, Dialect

T = TypeVar("T")


class OutboxMode(StrEnum):
    """Whether an enqueue outside of a transaction is what somebody wants, or something that was forgotten."""

    OPTIONAL = "optional"
    REQUIRED = "required"


@attrs.frozen(kw_only=True)
class OutboxPending:
    """What an outbox has still to publish."""

    #: Rows that are committed and not published.
    count: int
    #: Those of them that could not be published so far; they are tried again, with growing pauses.
    failing: int
    #: Seconds since the oldest of them was staged; None where there is none.
    age: float | None


@attrs.frozen(kw_only=True)
class OutboxFailure:
    """A row that could not be published so far."""

    outbox_id: int
    kind: str
    attempts: int
    error: str
    staged_at: datetime
    #: When it is tried again.
    retry_at: datetime


class Outbox:
    """Stages jobs in the host's own database, inside the host's own transaction, and publishes them from there.

    For a host whose data does not live in jobq's file: its rows and its jobs are committed together, or neither. What
    was staged becomes a job when the relay has published it, once, wherever any process is killed.

    ``connect()`` returns a new connection to the host's database, by any of the drivers that an outbox knows; the relay
    and the verbs here use connections of their own and close them. With ``mode="required"`` an enqueue on this job
    queue outside of a transaction raises OutsideTransaction. ``keep`` is how long a published row stays in the host's
    table. Making one writes nothing and connects to nothing.

    Raises:
        ArgumentError: an argument is not what it has to be.
    """

    def __init__(
        self,
        jobs: JobQueue,
        connect: Callable[[], Any],
        *,
        mode: OutboxMode | str = OutboxMode.OPTIONAL,
        keep: Duration = "1d",
    ) -> None:
        if not isinstance(jobs, JobQueue):
            raise ArgumentError("jobs", f"a JobQueue is needed, not a {type(jobs).__name__}")
        if not callable(connect):
            problem = f"a function that connects is needed, not a {type(connect).__name__}"
            raise ArgumentError("connect", problem, fix="Give connect=lambda: sqlite3.connect(path), for instance.")
        self.jobs = jobs
        self.mode = check_word(mode, OutboxMode, argument="mode")
        self._contact = Contact(connect, path=jobs.path)
        self._known = False
        #: Publishes what is staged: ``tick()`` here and now, ``start()`` and ``stop()`` on a thread of its own.
        self.relay = Relay(jobs, contact=self._contact, keep=max(0.0, to_seconds(keep, argument="keep")))
        if self.mode is OutboxMode.REQUIRED:
            jobs.demands_transaction = True

    @contextmanager
    def joined(self, connection: Any) -> Iterator[None]:
        """Stage what this thread enqueues meanwhile through a connection of the host's, in the transaction open on it.

        It holds for every job queue of this file, wherever the enqueue is called from, on this thread only; a
        ``jobs.transaction()`` or another ``joined`` inside it wins. Nothing here commits, rolls back or closes: what is
        staged stands or falls with the host's transaction, which may begin and end inside the block or around it. All
        other verbs act at once, as outside. An error of the driver comes out as the driver raises it.

        Raises:
            ArgumentError: the connection is of a kind that an outbox does not know.
            OutboxUnavailable: it is closed, or another thread's.
            OutsideTransaction: it is in autocommit without a transaction, and the mode is "required".
            ForeignHandle: it has jobq's own file open.
            OutboxTableMissing: the table is not there; said when something is enqueued.
        """
        stage = Staging(
            host_of(connection),
            path=self.jobs.path,
            required=self.mode is OutboxMode.REQUIRED,
            known=self._known,
            on_known=self._note_table,
        )
        stage.check()
        with self.jobs.blocks.places.enter(stage):
            yield

    def create_table(self, connection: Any = None) -> None:
        """Make the table ``jobq_outbox`` where it is not there: committed at once, through a connection of its own.

        Through a ``connection`` of the host's it is made as that stands, and committed by the host; an error of the
        driver comes out as the driver raises it then.

        Raises:
            OutboxUnavailable: the database cannot be reached, or refuses.
            ArgumentError, ForeignHandle: as for :meth:`joined`.
        """
        if connection is None:
            self._with_own(lambda host: host.create_and_commit())
            return
        host = host_of(connection)
        refuse_unfit(host, self.jobs.path)
        host.create()

    @staticmethod
    def ddl(dialect: str) -> str:
        """Return the statements that make the table, for the host's migrations; "sqlite" or "postgresql"."""
        statements = DEFINITIONS[check_word(dialect, Dialect, argument="dialect")]
        return ";\n\n".join(statements) + ";\n"

    def pending(self) -> OutboxPending:
        """Count what is committed and not published yet, and say how old the oldest is.

        Raises:
            OutboxUnavailable, OutboxTableMissing: as for the relay.
        """
        count, failing, oldest = self._with_own(lambda host: host.pending())
        now = to_ms(self.jobs.clock.now())
        return OutboxPending(count=count, failing=failing, age=None if oldest is None else max(0, now - oldest) / 1000)

    def failing(self, limit: int = 50) -> list[OutboxFailure]:
        """Return rows that could not be published so far, those that are tried next first.

        Raises:
            OutboxUnavailable, OutboxTableMissing: as for the relay.
        """
        most = check_int(limit, argument="limit", least=0)
        return [
            OutboxFailure(
                outbox_id=number,
                kind=kind,
                attempts=attempts,
                error=error or "",
                staged_at=from_ms(staged_at),
                retry_at=from_ms(retry_at),
            )
            for number, kind, attempts, error, staged_at, retry_at in self._with_own(lambda host: host.failing(most))
        ]

    def _with_own(self, call: Callable[[Host], T]) -> T:
        host = self._contact.open()
        try:
            return self._contact.ask(call, host)
        finally:
            self._contact.close(host)

    def _note_table(self) -> None:
        self._known = True
