"""What a handler sees of the run it is in."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Protocol, Unpack

from jobq.cancellation import CancelToken
from jobq.enqueued import Enqueued
from jobq.errors import TransactionEnded
from jobq.finishing import JobTransaction
from jobq.handler import Producer
from jobq.log import Logger, get_logger
from jobq.model.draft import Draft
from jobq.model.job import JSON, Actor
from jobq.model.lease import Claim, Settled
from jobq.model.payload import decode
from jobq.newjob import ChildOptions, NewJob


class Host(Producer, Protocol):
    """A job queue, as far as a run needs one."""

    def draft(self, item: NewJob) -> Draft:
        """Check a job that is to be enqueued later."""
        ...

    def finish(
        self, claim: Claim, follow_ups: Callable[[], tuple[Draft, ...]], note: Callable[[Settled | None], None]
    ) -> AbstractContextManager[JobTransaction]:
        """Open a transaction that settles a run."""
        ...


_NO_META: Mapping[str, JSON] = {}


class RunningJob:
    """One run of a job, as its handler gets it.

    The facts are those of the claim; they do not follow later changes of the row. Making one costs a microsecond:
    everything else is built when somebody looks at it.
    """

    __slots__ = (
        "_jobs", "_log", "_meta", "cancel_token", "claim", "delegates", "error", "follow_ups", "settled",
    )  # fmt: skip

    def __init__(self, claim: Claim, *, jobs: Host, cancel_token: CancelToken, delegates: Any = None) -> None:
        #: The raw columns of the claim.
        self.claim = claim
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
        self._jobs = jobs
        self._meta: Mapping[str, JSON] | None = None
        self._log: Logger | None = None

    @property
    def id(self) -> int:
        """The id of the job."""
        return self.claim.id

    @property
    def kind(self) -> str:
        """The kind of the job."""
        return self.claim.kind

    @property
    def queue(self) -> str:
        """The queue it was claimed from."""
        return self.claim.queue

    @property
    def attempt(self) -> int:
        """The number of this run, from 1."""
        return self.claim.attempts

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has in all."""
        return self.claim.max_attempts

    @property
    def deferrals(self) -> int:
        """How often the job was deferred before."""
        return self.claim.deferrals

    @property
    def priority(self) -> int:
        """The priority of the job."""
        return self.claim.priority

    @property
    def parent_id(self) -> int | None:
        """The id of the job that enqueued this one."""
        return self.claim.parent_id

    @property
    def actor(self) -> Actor:
        """Who asked for the job."""
        return Actor(self.claim.actor)

    @property
    def tenant_id(self) -> str | None:
        """The tenant the job belongs to."""
        return self.claim.tenant_id

    @property
    def subject(self) -> str | None:
        """What the job is about."""
        return self.claim.subject

    @property
    def meta(self) -> Mapping[str, JSON]:
        """What the enqueuer sent along beside the payload; empty where it sent nothing."""
        if self._meta is None:
            self._meta = decode(self.claim.meta) if self.claim.meta else _NO_META
        return self._meta

    @property
    def slot(self) -> datetime | None:
        """The due instant of the schedule that made this job; None where none did."""
        return self.claim.slot

    @property
    def catch_up(self) -> bool:
        """Whether that instant was missed when the job was made, or stands for others that were."""
        return self.claim.catch_up

    @property
    def last_error(self) -> str | None:
        """How the run before this one ended, redacted."""
        return self.claim.last_error

    @property
    def log(self) -> Logger:
        """A logger bound to job id, kind, queue, attempt and worker."""
        if self._log is None:
            self._log = get_logger("jobq.handler").bind(**bindings(self.claim))
        return self._log

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

    def _inherit(self, options: ChildOptions) -> dict[str, object]:
        """Return the options of a child: what was named, else actor, tenant and priority of this job."""
        claim = self.claim
        named = {name: value for name, value in options.items() if value is not None}
        return {"priority": claim.priority, "actor": claim.actor, "tenant_id": claim.tenant_id, **named}

    def _note(self, settled: Settled | None) -> None:
        self.settled = settled

    def _refuse_settled(self) -> None:
        if self.settled is not None:
            raise TransactionEnded("it has settled this run already")


def bindings(claim: Claim) -> dict[str, object]:
    """Return what every log line about a run carries."""
    return {
        "job_id": claim.id,
        "kind": claim.kind,
        "queue": claim.queue,
        "attempt": claim.attempts,
        "worker": claim.worker,
    }
