"""Taking leases: how an outside worker comes by its work."""

import time
from collections.abc import Iterable

from jobq.arguments import check_int, check_length, check_text, names
from jobq.commitwait import wait_for_commit
from jobq.core import Core
from jobq.errors import PayloadError
from jobq.failures import unrecoverable
from jobq.identity import boot_id, worker_name
from jobq.model.duration import Duration, to_seconds
from jobq.model.lease import Claim, ClaimRequest, Lease, Settlement
from jobq.model.payload import decode
from jobq.model.runner import clock_moved
from jobq.threads import Bell

#: The most jobs that one call leases.
MOST_LEASES = 1000


class Taking(Core):
    """The verb that makes leases."""

    def lease(
        self,
        kinds: str | Iterable[str] | None = None,
        queues: str | Iterable[str] | None = None,
        *,
        worker: str | None = None,
        limit: int = 1,
        length: Duration | None = None,
        wait: Duration | None = None,
    ) -> list[Lease]:
        """Claim up to ``limit`` jobs for a worker outside, best first; nothing to claim is an empty list.

        Of all kinds and queues where none are named. ``length`` is the configured lease unless named. Priorities,
        pauses and caps hold as for worker threads. Gates do not: they belong to the threads of one process. A job whose
        payload is no JSON any more fails and is left out.

        With ``wait`` it blocks in real time until there is something to claim, at most so long; it looks without the
        write lock meanwhile, also for what other processes enqueue. Inside a transaction of this thread it raises
        InsideTransaction.
        """
        seconds = self.config.lease if length is None else check_length(length, argument="length")
        name = worker_name() if worker is None else check_text(worker, argument="worker")
        count = check_int(limit, argument="limit", least=1, most=MOST_LEASES)
        deadline = time.monotonic() + (0.0 if wait is None else to_seconds(wait, argument="wait"))
        self.blocks.refuse("lease")
        self.register()
        request = ClaimRequest(
            workers=(name,) * count,
            lease_length=seconds,
            kinds=names(kinds, argument="kinds"),
            queues=names(queues, argument="queues"),
            kind_limits=self.config.kind_limits,
        )
        while not (leases := self._take(request)) and time.monotonic() < deadline:
            self._await_work(request, deadline)
        return leases

    def _take(self, request: ClaimRequest) -> list[Lease]:
        claims = self.store.claim(request._replace(hold_expired=self._just_woke()), durable=True)
        self.deliver()
        return self._leases([claim for claim in claims if self._readable(claim)])

    def _await_work(self, request: ClaimRequest, deadline: float) -> None:
        """Return when a claim would find something, or at the deadline."""
        while time.monotonic() < deadline:
            # Before the look: what is committed after it ends the pause.
            seen = self.store.data_version()
            outlook = self.store.look(request)
            if outlook.ready or outlook.expired:
                return
            until = deadline
            if outlook.next_due is not None:
                until = min(until, time.monotonic() + (outlook.next_due - self.clock.now()).total_seconds())
            wait_for_commit(self, Bell(), seen, until)

    def _just_woke(self) -> bool:
        """Whether runners of this machine had no chance to beat lately, so that their leases only seem to be over."""
        moved = clock_moved(
            self.store.runners(),
            boot_id=boot_id(),
            wall=self.clock.now(),
            monotonic=self.clock.monotonic(),
            lease=self.config.lease,
        )
        return moved is not None

    def _leases(self, claims: list[Claim]) -> list[Lease]:
        if not claims:
            return []
        jobs = self.store.get([claim.id for claim in claims])
        leases = []
        for claim in claims:
            job = jobs.get(claim.id)
            # One that is gone again by now was taken over: its lease was shorter than this call.
            if job is not None and job.token == claim.token and job.lease_until and job.lease_length:
                leases.append(
                    Lease(
                        job=job,
                        token=claim.token,
                        worker=claim.worker,
                        until=job.lease_until,
                        length=job.lease_length,
                        cancel_requested=job.cancel_requested_at is not None,
                    )
                )
        return leases

    def _readable(self, claim: Claim) -> bool:
        try:
            decode(claim.payload)
        except PayloadError as error:
            outcome = unrecoverable(error, "bad_payload", self.redactor)
            self.store.settle((Settlement(claim.id, claim.token, outcome),), durable=True)
            self.deliver()
            return False
        return True
