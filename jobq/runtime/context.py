"""What a handler sees of the run it is in."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, Unpack

from jobq.arguments import check_amount, check_string
from jobq.cancellation import CancelReason, CancelToken
from jobq.enqueued import Enqueued
from jobq.errors import TransactionEnded
from jobq.finishing import JobTransaction
from jobq.handler import Producer
from jobq.log import Logger, get_logger
from jobq.model.draft import Draft
from jobq.model.lease import Claim, Settled
from jobq.model.progress import Progress
from jobq.newjob import ChildOptions, NewJob
from jobq.runtime import progress
from jobq.runtime.facts import Facts, bindings

logger = get_logger(__name__)


class Host(Producer, progress.Host, Protocol):
    """A job queue, as far as a run needs one."""

    @property
    def tracing(self) -> object | None:
        """None where the trace is off."""
        ...

    def trace(self, claim: Claim, direction: str, text: str) -> None:
        """Write one entry of the trace."""
        ...

    def draft(self, item: NewJob) -> Draft:
        """Check a job that is to be enqueued later."""
        ...

    def finish(
        self, claim: Claim, follow_ups: Callable[[], tuple[Draft, ...]], note: Callable[[Settled | None], None]
    ) -> AbstractContextManager[JobTransaction]:
        """Open a transaction that settles a run."""
        ...


class RunningJob(Facts):
    """One run of a job, as its handler gets it.

    The facts are those of the claim; they do not follow later changes of the row. Making one costs a microsecond:
    everything else is built when somebody looks at it.
    """

    __slots__ = (
        "_jobs", "_log", "cancel_token", "delegates", "error", "follow_ups", "reporter", "settled",
    )  # fmt: skip

    def __init__(self, claim: Claim, *, jobs: Host, cancel_token: CancelToken, delegates: Any = None) -> None:
        super().__init__(claim)
        #: Asks the handler to stop.
        self.cancel_token = cancel_token
        #: What the host gave the runner.
        self.delegates = delegates
        #: What the handler raised; known once the run is over.
        self.error: BaseException | None = None
        #: What :meth:`follow_up` has collected.
        self.follow_ups: tuple[Draft, ...] = ()
        #: What the run ended as, once :meth:`transaction` has written it.
        self.settled: Settled | None = None
        #: What writes the progress of this run; None where its handler tells none.
        self.reporter: progress.Reporter | None = None
        self._jobs = jobs
        self._log: Logger | None = None

    @property
    def log(self) -> Logger:
        """A logger bound to job id, kind, queue, attempt and worker."""
        if self._log is None:
            self._log = get_logger("jobq.handler").bind(**bindings(self.claim))
        return self._log

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far this run is: the job's row keeps the newest word, and the bus tells :class:`JobProgressed`.

        Call it as often as you like. The first word is written at once, as is the first with ``done`` at ``total``,
        else one each half second; what is left is written a second or two later, or when the run ends. ``note`` is for
        people, redacted, then cut to 500 characters. What is said in a ``job.transaction()`` is committed with it, what
        is said in a ``jobs.transaction()`` is written after it. Nothing is synced, and a database in trouble gets it
        later. A run that has lost its lease writes nothing, and its cancel token says so. The next attempt starts
        without.

        Raises:
            ArgumentError: a number is negative, or none; the note is no text.
        """
        word = Progress(
            check_amount(done, argument="done"),
            None if total is None else check_amount(total, argument="total"),
            None if note is None else check_string(note, argument="note"),
        )
        if self.reporter is None:
            self.reporter = progress.Reporter(self.claim, jobs=self._jobs, on_lost=self._lose)
        self.reporter.tell(word)

    def trace(self, direction: str, text: str) -> None:
        """Write what a model or an agent was told, or has answered, to the trace: in full, unredacted.

        ``direction`` is a word such as "sent" or "received". It does nothing unless the configuration names a file
        (``trace_file``); a file that cannot be written never fails a job. Of a text of over a million characters the
        beginning is kept.

        Raises:
            ArgumentError: where the trace is on, the direction is no short word, or the text is none.
        """
        if self._jobs.tracing is not None:
            self._jobs.trace(self.claim, direction, text)

    def enqueue(
        self, kind_or_payload: Any, payload: Any = None, *, join: bool = True, **options: Unpack[ChildOptions]
    ) -> Enqueued:
        """Enqueue a child of this job; it is committed at once, whatever becomes of this run.

        Inside a transaction of this thread it is a part of that, unless ``join`` is False. It names this job as its
        parent and inherits actor, tenant and priority unless told otherwise. The rest, and what is raised, is as in
        :meth:`jobq.JobQueue.enqueue`.
        """
        inherited: Any = self._inherit(options)
        return self._jobs.enqueue(kind_or_payload, payload, parent_id=self.claim.id, join=join, **inherited)

    def follow_up(self, kind_or_payload: Any, payload: Any = None, **options: Unpack[ChildOptions]) -> None:
        """Enqueue a child in the same transaction as this job's success, or not at all.

        It is checked now, and what is raised is as in :meth:`enqueue`, as is what is inherited. When the run is settled
        this job ends first, then its follow-ups are made in order; ``delay`` counts from then, and a job may follow
        itself under its own dedupe key. A key that another job holds by then makes no job. Where jobq refuses one then,
        because a job of another kind holds its key or its kind was retired, this job has succeeded all the same, and
        the refusal is logged.

        Raises:
            TransactionEnded: :meth:`transaction` has settled this run already.
        """
        self._refuse_settled()
        inherited: Any = self._inherit(options)
        item = NewJob(kind_or_payload, payload, parent_id=self.claim.id, **inherited)
        self.follow_ups = (*self.follow_ups, self._jobs.draft(item))

    @contextmanager
    def transaction(self) -> Iterator[JobTransaction]:
        """Open one transaction for the handler's rows and the success of this job; leaving it settles the run.

        The rows, the result (``tx.result(value)``), the follow-ups and what this thread enqueues meanwhile are
        committed together, synced, if this run still has its lease. A mere cancel request does not hinder it. An
        exception that leaves the block rolls all of it back and the run goes on. Keep it short: other writers wait.
        Leave the handler soon after it: what it returns is ignored, and what it raises is only logged.

        Raises:
            LeaseLost: somebody else has the job by now; nothing was written.
            ResultError: the result is refused; nothing was written.
            InsideTransaction: this thread has a transaction open.
            TransactionEnded: an earlier one has settled this run already.
            StoreError: as :meth:`jobq.JobQueue.transaction`.
        """
        self._refuse_settled()
        with self._jobs.finish(self.claim, lambda: self.follow_ups, self._note) as transaction:
            yield transaction
            if self.reporter is not None:
                self.reporter.join()

    def _inherit(self, options: ChildOptions) -> dict[str, object]:
        """Return the options of a child: what was named, else actor, tenant and priority of this job."""
        claim = self.claim
        named = {name: value for name, value in options.items() if value is not None}
        return {"priority": claim.priority, "actor": claim.actor, "tenant_id": claim.tenant_id, **named}

    def _note(self, settled: Settled | None) -> None:
        self.settled = settled
        if settled is None and self.reporter is not None:
            self.reporter.forget()

    def _lose(self) -> None:
        # A run that has settled itself has lost nothing.
        if self.settled is None and self.cancel_token.request(CancelReason.LEASE_LOST):
            logger.warning("jobq.lease.lost", **bindings(self.claim))

    def _refuse_settled(self) -> None:
        if self.settled is not None:
            raise TransactionEnded("it has settled this run already")
