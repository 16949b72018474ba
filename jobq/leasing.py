"""The five verbs that prolong or end a lease."""

from datetime import datetime

import attrs

from jobq.arguments import check_length, check_run_at, check_text
from jobq.errors import ArgumentError, LeaseLost
from jobq.failures import outcome_of
from jobq.model.duration import Duration, to_seconds
from jobq.model.effects import Verdict
from jobq.model.instant import shift
from jobq.model.job import FailureClass
from jobq.model.lease import Lease, Settlement
from jobq.model.outcome import Failed, Outcome, Postponed, Released, Succeeded
from jobq.model.payload import encode_result
from jobq.taking import Taking


class Leasing(Taking):
    """The verbs that take a lease; :meth:`lease` makes them.

    Each is synced like everything that is acknowledged to somebody. All are fenced by the lease's token alone, so a
    lease may be kept as text by one process and ended by another. A lease that lapsed is still good while nobody took
    the job over; a superseded one raises LeaseLost and writes nothing. Inside a transaction of this
    thread all of them raise InsideTransaction.
    """

    def extend(self, lease: Lease, length: Duration | None = None) -> Lease:
        """Renew a lease from now, for its own length or another; the answer says whether a cancel was asked.

        Raises:
            LeaseLost: its token is no longer the job's.
        """
        seconds = None if length is None else check_length(length, argument="length")
        self.blocks.refuse("extend")
        beats = self.store.extend(((_checked(lease).id, lease.token),), length=seconds, durable=True)
        if not beats:
            raise LeaseLost(lease.id)
        return attrs.evolve(
            lease, until=beats[0].until, length=seconds or lease.length, cancel_requested=beats[0].cancel_requested
        )

    def complete(self, lease: Lease, result: object = None) -> Verdict:
        """End the run as succeeded; it has succeeded even where a cancel was asked.

        Raises:
            ResultError: the result is no JSON, too large, or refused by the kind's schema; the lease goes on.
            LeaseLost: its token is no longer the job's.
        """
        limit = self.config.result_max_bytes
        handler = self.handlers.find(_checked(lease).job.kind)
        if handler is not None:
            text = handler.encode_result(result, limit=limit)
        else:
            text = None if result is None else encode_result(result, limit=limit)
        return self._settle(lease, Succeeded(text))

    def fail(
        self, lease: Lease, error: str | BaseException, *, code: str | None = None, permanent: bool = False
    ) -> Verdict:
        """End the run as a failed attempt; the answer is RETRIED, FAILED, or CANCELLED where a cancel was asked.

        The text is redacted, then cut to 500 characters. ``code`` is kept as ``failure_reason``. A permanent failure is
        not tried again. An exception means what it means when a handler raises it: a PermanentJobError among its causes
        fails the job for good, a Deferred defers it.

        Raises:
            LeaseLost: its token is no longer the job's.
        """
        return self._settle(lease, self._failure(error, code, permanent))

    def defer(
        self,
        lease: Lease,
        *,
        delay: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
    ) -> Verdict:
        """Give the job back to come again later; the attempt is not counted, the reason is kept, redacted.

        Exactly one of ``delay``, from now, and ``until`` is named.

        Raises:
            LeaseLost: its token is no longer the job's.
        """
        if (delay is None) == (until is None):
            raise ArgumentError("delay", "name either delay or until")
        if until is not None:
            due = check_run_at(until, argument="until")
        else:
            seconds = max(0.0, to_seconds(delay or 0, argument="delay"))
            due = shift(self.clock.now(), seconds, argument="delay")
        told = None if reason is None else self.clean(reason, argument="reason")
        return self._settle(lease, Postponed(until=due, reason=told))

    def release(self, lease: Lease) -> Verdict:
        """Give the job back unfinished, to be claimed at once; the attempt is not counted.

        Raises:
            LeaseLost: its token is no longer the job's.
        """
        return self._settle(lease, Released())

    def _settle(self, lease: Lease, outcome: Outcome) -> Verdict:
        self.blocks.refuse("the end of a lease")
        policy = self.policy(_checked(lease).job.kind)
        (settled,) = self.store.settle((Settlement(lease.id, lease.token, outcome, policy),), durable=True)
        self.deliver()
        if settled.verdict == Verdict.SUPERSEDED:
            raise LeaseLost(lease.id)
        return Verdict(settled.verdict)

    def _failure(self, error: str | BaseException, code: str | None, permanent: bool) -> Outcome:
        if isinstance(error, BaseException):
            outcome = outcome_of(error, None, now=self.clock.now, redactor=self.redactor)
        else:
            outcome = Failed(error=self.clean(error, argument="error"))
        if not isinstance(outcome, Failed):
            return outcome
        if code is not None:
            outcome = attrs.evolve(outcome, reason=self.clean(check_text(code, argument="code"), argument="code"))
        if permanent:
            outcome = attrs.evolve(outcome, failure_class=FailureClass.UNRECOVERABLE, retryable=False)
        return outcome


def _checked(lease: Lease) -> Lease:
    if not isinstance(lease, Lease):
        raise ArgumentError("lease", f"a Lease is needed, not a {type(lease).__name__}")
    return lease
