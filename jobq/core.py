"""What every part of a job queue stands on: its store, its registrations, and the delivery of what happened."""

from collections.abc import Callable, Mapping, Sequence

from jobq.arguments import check_string
from jobq.blocks import Blocks
from jobq.bus import Bus
from jobq.clock import Clock
from jobq.config import Config
from jobq.database import Database, LiveRuns
from jobq.doorbell import Doorbell
from jobq.errors import ArgumentError, QueueClosed
from jobq.gate import Gates
from jobq.handler import AnyHandler
from jobq.handlers import Handlers
from jobq.lines import Lines
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, JSON, Priority
from jobq.model.redact import Redactor, clean
from jobq.model.retry import RetryPolicy
from jobq.observe.eventlog import EventLog
from jobq.observe.trace import Trace
from jobq.store.base import KindRow, QueueRow, Store


class Core:
    """The parts of a job queue and what they have in common; :class:`jobq.jobqueue.JobQueue` is the whole."""

    def __init__(
        self, *, database: Database, store: Store, config: Config, clock: Clock, redactor: Redactor
    ) -> None:
        self._database = database
        self._store: Store | None = store
        # The version of the handlers that the database has seen; configured queues are news from the beginning.
        self._registered = -1 if config.queues else 0
        self._attached: list[Handlers] = []
        self._retry = config.retry
        #: The file that events are appended to, None for none.
        self.event_log: EventLog | None = None
        self.config = config
        self.clock = clock
        self.redactor = redactor
        database.event_logs.join(redactor)
        #: The merged view of all registries that this job queue was opened with, and of its own decorator.
        self.handlers = Handlers()
        #: Whether an outbox demands that whatever is enqueued here is a part of a transaction.
        self.demands_transaction = False
        #: What every enqueue adds to the ``meta`` of its job: context that is carried to the run. None adds nothing.
        self.carry: Callable[[], Mapping[str, JSON]] | None = None
        #: The version of the declared schedules that the database has seen.
        self.declared_version = (0, 0)
        #: The declared schedules that do not fit their kinds, and why; they are not stored.
        self.misfits: dict[str, str] = {}
        #: Where handlers' traces go; None where the trace is off.
        self.tracing = (
            Trace(config.trace_file, max_bytes=config.trace_max_bytes, backups=config.trace_backups)
            if config.trace_file
            else None
        )

    @property
    def store(self) -> Store:
        """The store; raises QueueClosed after ``close()``."""
        if self._store is None:
            raise QueueClosed
        return self._store

    @property
    def path(self) -> str:
        """The absolute path of the database file."""
        return self._database.path

    @property
    def file_existed(self) -> bool:
        """Whether the database file was there before this process opened it."""
        return self._database.existed

    @property
    def bus(self) -> Bus:
        """The bus, which all job queues of this file in this process share."""
        return self._database.bus

    @property
    def doorbell(self) -> Doorbell:
        """What wakes the waiting runners of other processes, shared in the same way."""
        return self._database.doorbell

    @property
    def blocks(self) -> Blocks:
        """The transaction that a thread of this process keeps open on the file, shared in the same way."""
        return self._database.blocks

    @property
    def gates(self) -> Gates:
        """The gates of this process, shared in the same way."""
        return self._database.gates

    @property
    def lines(self) -> Lines:
        """The lines of the log that runs of this process wrote and nobody has kept yet, shared in the same way."""
        return self._database.lines

    @property
    def live(self) -> LiveRuns:
        """The runs under way in this process, shared in the same way."""
        return self._database.live

    def clean(self, text: str, *, argument: str) -> str:
        """Return a text for people as it is stored: redacted first, then cut to 500 characters."""
        return clean(check_string(text, argument=argument), self.redactor)

    def deliver(self) -> None:
        """Tell the bus' listeners what the store has done; every verb ends with it."""
        self._database.bus.deliver()

    def register(self) -> None:
        """Write the rows of kinds and queues for what was registered since the last time; nearly always nothing."""
        version = self.handlers.version
        if version != self._registered:
            handlers = [handler for kind in self.handlers.kinds() if (handler := self.handlers.find(kind))]
            rows = [self._row(handler) for handler in handlers]
            self.store.register(rows, self._queue_rows(rows), self.handlers.retired())
            if self.blocks.mine() is None:  # else it may be rolled back
                self._registered = version

    def policy(self, kind: str) -> RetryPolicy:
        """Return how a kind is retried: its handler's policy here, else the configuration where the kind has no row.

        A kind without a handler here is retried as its row says.
        """
        handler = self.handlers.find(kind)
        if handler is not None:
            return handler.retry or self._retry
        row = self.store.declared(kind)
        try:
            return self._retry if row is None else RetryPolicy.from_json(row.retry)
        except ArgumentError:  # broken by hand
            return self._retry

    def max_attempts(self, kind: str) -> int:
        """Return how many attempts a job of this kind gets unless the enqueue says otherwise.

        What its handler here declares, else the configuration, else the kind's row, else 5.
        """
        handler = self.handlers.find(kind)
        if handler is not None and handler.max_attempts is not None:
            return handler.max_attempts
        if self.config.max_attempts is not None:
            return self.config.max_attempts
        row = None if handler is not None else self.store.declared(kind)
        return DEFAULT_ATTEMPTS if row is None else row.max_attempts

    def cap(self, kind: str) -> int | None:
        """Return how many jobs of this kind may run at once: the configured limit, else what its handler declares."""
        handler = self.handlers.find(kind)
        return self.config.kind_limits.get(kind, None if handler is None else handler.concurrency)

    def _queue_rows(self, kinds: Sequence[KindRow]) -> list[QueueRow]:
        configured = self.config.queues
        named = dict.fromkeys(kind.queue for kind in kinds if kind.queue not in configured)
        return [QueueRow(name) for name in named] + [
            QueueRow(name, configured=True, hidden=queue.hidden, kinds=queue.kinds)
            for name, queue in configured.items()
        ]

    def _row(self, handler: AnyHandler) -> KindRow:
        return KindRow(
            name=handler.kind,
            queue=handler.queue or DEFAULT_QUEUE,
            priority=Priority.INGEST.value if handler.priority is None else handler.priority,
            max_attempts=self.max_attempts(handler.kind),
            max_deferrals=handler.max_deferrals,
            cap=self.cap(handler.kind),
            retry=self.policy(handler.kind).to_json(),
            intake=handler.intake,
        )
