"""A handler's rows and the success of its job in one transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jobq.blocks import Block
from jobq.errors import LeaseLost
from jobq.model.draft import Draft
from jobq.model.effects import Verdict
from jobq.model.lease import Claim, Settled, Settlement
from jobq.model.outcome import Succeeded
from jobq.store.hosting import Bindings
from jobq.transacting import Transacting, Transaction


class JobTransaction:
    """An open transaction that ends a run: what :meth:`jobq.RunningJob.transaction` yields."""

    def __init__(self, transaction: Transaction, encode: Callable[[object], str | None]) -> None:
        self._transaction = transaction
        self._encode = encode
        self._text: str | None = None
        self._named = False

    def execute(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Carry out SQL and return every row, as :meth:`jobq.Transaction.execute`."""
        return self._transaction.execute(sql, bindings)

    def result(self, value: object) -> None:
        """Name the result of the job; the last one named counts, and what the handler returns does not.

        Raises:
            ResultError: it is no JSON, too large, or refused by the kind's schema.
        """
        self._text = self._encode(value)
        self._named = True

    def text(self) -> str | None:
        """Return the result as it is stored; where none was named it is None, which the schema may refuse."""
        return self._text if self._named else self._encode(None)


class Finishing(Transacting):
    """What a run needs to end itself."""

    @contextmanager
    def finish(
        self, claim: Claim, follow_ups: Callable[[], tuple[Draft, ...]], note: Callable[[Settled | None], None]
    ) -> Iterator[JobTransaction]:
        """Open a transaction whose end settles a run as succeeded, with its follow-ups, if its token still stands.

        ``note`` is told what the settlement came to before it is committed, and None when it was not committed.
        """
        self.blocks.refuse("job.transaction")
        handler = self.handlers.find(claim.kind)
        limit = self.config.result_max_bytes
        block: Block | None = None
        try:
            with self.transaction() as transaction:
                block = self.blocks.mine()
                job = JobTransaction(
                    transaction, lambda value: None if handler is None else handler.encode_result(value, limit=limit)
                )
                yield job
                settlement = Settlement(
                    claim.id, claim.token, Succeeded(job.text()), follow_ups=follow_ups()
                )
                (settled,) = self.store.settle((settlement,), durable=True)
                if settled.verdict == Verdict.SUPERSEDED:
                    raise LeaseLost(claim.id)
                # Before the commit: a beat that misses the lease afterwards must know why.
                note(settled)
        except BaseException:
            if block is None or not block.committed:
                note(None)
            raise
