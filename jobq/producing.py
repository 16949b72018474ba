"""Enqueueing: arguments become drafts, drafts become rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

from jobq.arguments import check_int
from jobq.drafting import draft_of, make_draft, resolved
from jobq.enqueued import Enqueued
from jobq.errors import ArgumentError, JobqError, OutsideTransaction
from jobq.log import get_logger
from jobq.model.duration import Duration
from jobq.model.job import JSON, Actor
from jobq.newjob import NewJob
from jobq.places import Stage
from jobq.store.base import Draft, Placed
from jobq.waiting import Waiting

logger = get_logger(__name__)


class Producing(Waiting):
    """The verbs that make jobs."""

    def enqueue(
        self,
        kind_or_payload: object,
        payload: object = None,
        *,
        queue: str | None = None,
        priority: int | str | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        dedupe_key: str | None = None,
        max_attempts: int | None = None,
        parent_id: int | None = None,
        actor: Actor | str | None = None,
        tenant_id: str | None = None,
        subject: str | None = None,
        meta: Mapping[str, JSON] | None = None,
        join: bool = True,
    ) -> Enqueued:
        """Store one job and return its id; it is acknowledged, so it survives the death of this process.

        The job is named by a kind and a JSON payload, by a handler and its payload, or by a payload value of a
        registered class. What is not named comes from the kind, then from the configuration. ``delay`` counts from the
        insert, a negative one means now; ``run_at`` is an aware datetime. With a dedupe key that a queued or running
        job of this kind holds, that job is the answer and ``created`` is False.

        Inside a transaction of this thread the job is a part of it, and inside ``outbox.joined(connection)`` it is
        staged there; the innermost of the two counts. With ``join=False`` it is checked now and enqueued when the
        outermost transaction has ended, however that ended, or at once where there is none. The ``id``, ``created`` and
        ``job`` of an answer that has to wait are None.

        Raises:
            ArgumentError: an option is malformed or out of range.
            PayloadError: the payload is no JSON, or does not fit its kind; PayloadTooLarge is one.
            UnknownKind: nobody registered the payload's class or the handler here.
            RetiredKind: the kind is retired.
            DedupeConflict: a job of another kind holds the key.
            JobNotFound: there is no job ``parent_id``.
            OutsideTransaction: an outbox demands a transaction here, and this thread is in none.
        """
        draft = make_draft(
            self,
            kind_or_payload,
            payload,
            queue=queue,
            priority=priority,
            delay=delay,
            run_at=run_at,
            dedupe_key=dedupe_key,
            max_attempts=max_attempts,
            parent_id=parent_id,
            actor=actor,
            tenant_id=tenant_id,
            subject=subject,
            meta=meta,
        )
        stage = self._stage() if join else None
        if stage is not None:
            return self._staged(stage, (draft,))[0]
        block = None if join else self.blocks.mine()
        if block is not None:
            block.at_end.append(partial(self._place, draft))
            return Enqueued.later(self.wait)
        return Enqueued(self._place(draft), self.wait)

    def enqueue_many(
        self, items: Iterable[NewJob], *, chunk: int | None = None, join: bool = True
    ) -> list[Enqueued]:
        """Store many jobs in one transaction, or in one for each ``chunk`` of them; answers come in input order.

        Dedupe keys hold inside the batch too. What is refused leaves its whole transaction unwritten; with ``chunk``
        the chunks before it stand. The rest is as in :meth:`enqueue`, ``join`` too.
        """
        size = None if chunk is None else check_int(chunk, argument="chunk", least=1)
        if not isinstance(items, Iterable):
            raise ArgumentError("items", f"NewJob values are needed, not a {type(items).__name__}")
        chunks = self._chunks(items, size)
        stage = self._stage() if join else None
        if stage is not None:
            return [answer for drafts in chunks for answer in self._staged(stage, drafts)]
        block = None if join else self.blocks.mine()
        if block is None:
            wait = self.wait
            return [Enqueued(placed, wait) for placed in self._place_all(chunks)]
        checked = list(chunks)
        block.at_end.append(lambda: self._place_all(checked))
        return [Enqueued.later(self.wait) for drafts in checked for _ in drafts]

    def _stage(self) -> Stage | None:
        """Return where what joins is staged; None where it goes into jobq's file, which an outbox may forbid."""
        stage = self.blocks.places.stage()
        if stage is None and self.demands_transaction and self.blocks.mine() is None:
            raise OutsideTransaction("this thread has none open")
        return stage

    def _staged(self, stage: Stage, drafts: Sequence[Draft]) -> list[Enqueued]:
        now = self.clock.now()
        numbers = stage.put([resolved(self, draft, now) for draft in drafts], now=now)
        return [Enqueued.staged(number) for number in numbers]

    def draft(self, item: NewJob) -> Draft:
        """Check what an enqueue would be told, and return what it would store; nothing is written."""
        return draft_of(self, item)

    def _place(self, draft: Draft) -> Placed:
        self.register()
        (placed,) = self.store.enqueue((draft,))
        self.deliver()
        if logger.enabled("info"):
            fields = {"job_id": placed.id, "kind": draft.kind, "queue": placed.queue, "created": placed.created}
            self.blocks.after_commit(partial(_tell, fields))
        return placed

    def _chunks(self, items: Iterable[NewJob], size: int | None) -> Iterator[list[Draft]]:
        source = enumerate(items)
        while drafts := [self._draft(number, item) for number, item in islice(source, size)]:
            yield drafts

    def _place_all(self, chunks: Iterable[list[Draft]]) -> list[Placed]:
        """Store each chunk in a transaction of its own; the next one is asked for when it is written."""
        answers: list[Placed] = []
        for drafts in chunks:
            self.register()
            placed = self.store.enqueue(drafts)
            self.deliver()
            counts = {"count": len(placed), "created": sum(one.created for one in placed)}
            self.blocks.after_commit(partial(_tell, counts))
            answers += placed
        return answers

    def _draft(self, number: int, item: NewJob) -> Draft:
        try:
            return draft_of(self, item)
        except JobqError as error:
            error.add_note(f"This was items[{number}]; nothing of its transaction was written.")
            raise


def _tell(fields: Mapping[str, object]) -> None:
    logger.info("jobq.job.enqueued", **fields)
