"""The trade of every loop: write down what ended and take what is next, in one transaction."""

from collections.abc import Callable, Mapping, Sequence

from jobq.jobqueue import JobQueue
from jobq.model.effects import Verdict
from jobq.model.lease import Claim, ClaimRequest, Settled, Settlement
from jobq.model.outcome import Succeeded
from jobq.runtime.hand import Ended, Hand
from jobq.runtime.held import Held
from jobq.runtime.permits import Permits, Taken
from jobq.runtime.report import report
from jobq.runtime.sleepguard import SleepGuard


class Exchange:
    """What worker threads, a drain and the overseer share when they talk to the job queue."""

    def __init__(self, jobs: JobQueue, *, held: Held, guard: SleepGuard, announce: Callable[[], None]) -> None:
        self._jobs = jobs
        self._held = held
        self._guard = guard
        #: Has the bus told soon, without waiting for a listener.
        self.announce = announce
        self._version = -1
        self._kinds: tuple[str, ...] = ()
        self._gate_names: Mapping[str, str] = {}
        self.permits = Permits(jobs.gates, lambda: self._gate_names)

    def settle(self, ended: Sequence[Ended]) -> list[Settled]:
        """Write down how runs ended; the answer has the order of the runs, superseded ones included.

        Nobody is told of it yet: :meth:`announce` or :meth:`deliver` is to follow.
        """
        if not ended:
            return []
        open_runs = self._settlements(ended)
        settled = _merged(ended, self._jobs.store.settle(open_runs, durable=False) if open_runs else [])
        self._let_go(ended, settled)
        return settled

    def note(self, ended: Sequence[Ended], settled: Sequence[Settled]) -> None:
        """Let go of what was settled, log it, and tell the bus.

        The bus comes last: whoever hears that a job runs can cancel it, who hears that it ended finds its permit free.
        """
        self._let_go(ended, settled)
        self._jobs.deliver()

    def deliver(self) -> None:
        """Tell the bus on the calling thread."""
        self._jobs.deliver()

    def take_back(self, hand: Hand) -> list[Ended]:
        """Take what a hand holds beside its current run: what is over, and the unstarted jobs as released."""
        ended = hand.steal()
        for one in ended:
            self.permits.release(one.claim)
        return ended

    def settle_and_claim(
        self,
        ended: Sequence[Ended],
        claims: list[Claim],
        *,
        workers: tuple[str, ...],
        queues: tuple[str, ...] | None,
        hand: int,
        on_permit: Callable[[], object] | None = None,
    ) -> list[Settled]:
        """Do the same, and claim for each of ``workers`` in the same transaction; what it got is put into ``claims``.

        It is unsynced: what a power cut undoes runs once more, which "at least once" covers. Where the store raises,
        nothing was settled or claimed, and the permits are back. The caller holds what it got, also where an interrupt
        strikes after the claim, and calls :meth:`note`. ``on_permit`` is called once when there is a permit that this
        claim could not get.
        """
        self.observe()
        self._refresh()
        taken: Taken = {}
        try:
            # Nearly no process has a gate, and then nothing is taken.
            permits = self.permits.take(taken, len(workers)) if self._gate_names else {}
            request = self._request(workers, queues, hand, permits)
            # Into the caller's list in the same step: no interrupt comes between.
            answers, claims[:] = self._jobs.store.settle_and_claim(self._settlements(ended), request, durable=False)
        finally:
            if taken:
                try:
                    self.permits.settle(taken, claims, on_free=on_permit)
                except BaseException:
                    self.permits.settle(taken, claims)
                    raise
        return _merged(ended, answers)

    def request(self, queues: tuple[str, ...] | None) -> ClaimRequest:
        """Return what a claim could take now: what a watcher looks for."""
        self._refresh()
        return self._request((), queues, 1, self.permits.free() if self._gate_names else {})

    def observe(self) -> None:
        """Let the sleep guard look at the clocks, and move the due times back if the wall clock was set back."""
        self._guard.observe()
        step = self._guard.take_step()
        if step is None:
            return
        try:
            self._jobs.store.move_due_times(since=step.since, stepped_back=step.seconds)
            self._jobs.store.reclaim(hold_expired=self._guard.holding)
        except BaseException:
            self._guard.put_back(step)
            raise
        self.announce()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that have a handler here."""
        self._refresh()
        return self._kinds

    def _let_go(self, ended: Sequence[Ended], settled: Sequence[Settled]) -> None:
        if not ended:
            return
        for one, answer in zip(ended, settled, strict=True):
            key = (one.claim.id, one.claim.token)
            if answer.verdict == Verdict.SUPERSEDED:
                self._held.lose(key)
            self._held.drop(key)
        report(ended, settled)

    def _refresh(self) -> None:
        handlers = self._jobs.handlers
        version = handlers.version
        if version != self._version:
            self._kinds = handlers.kinds()
            found = ((kind, handlers.find(kind)) for kind in self._kinds)
            self._gate_names = {kind: one.gate for kind, one in found if one is not None and one.gate is not None}
            self._jobs.register()
            self._version = version

    def _request(
        self, workers: tuple[str, ...], queues: tuple[str, ...] | None, hand: int, permits: Mapping[str, int]
    ) -> ClaimRequest:
        config = self._jobs.config
        return ClaimRequest(
            workers,
            config.lease,
            self._kinds,
            queues,
            hand,
            config.kind_limits,
            self._gate_names,
            permits,
            self._guard.holding,
        )

    def _settlements(self, ended: Sequence[Ended]) -> list[Settlement]:
        return [
            Settlement(one.claim.id, one.claim.token, one.outcome, follow_ups=one.follow_ups)
            if isinstance(one.outcome, Succeeded)
            else Settlement(one.claim.id, one.claim.token, one.outcome, self._jobs.policy(one.claim.kind))
            for one in ended
            if one.settled is None
        ]


def _merged(ended: Sequence[Ended], answers: Sequence[Settled]) -> list[Settled]:
    """Return the answers in the order of the runs, those that had settled themselves included."""
    if len(answers) == len(ended):
        return list(answers)
    others = iter(answers)
    return [next(others) if one.settled is None else one.settled for one in ended]
