"""From a claim to an ended run: the same steps on a worker thread and in a drain."""

from collections.abc import Callable
from typing import Any

from jobq.cancellation import CancelToken
from jobq.jobqueue import JobQueue
from jobq.model.lease import Claim
from jobq.model.outcome import Released, Succeeded
from jobq.runtime.context import RunningJob
from jobq.runtime.execute import Executor
from jobq.runtime.hand import Ended
from jobq.runtime.permits import Permits

#: Told about a run with a budget, and the monotonic time at which it is over.
Watcher = Callable[[RunningJob, float], None]


class Runs:
    """Begins runs and carries them out."""

    def __init__(
        self, jobs: JobQueue, *, executor: Executor, permits: Permits, delegates: Any, on_budget: Watcher
    ) -> None:
        self._jobs = jobs
        self._executor = executor
        self._permits = permits
        self._delegates = delegates
        self._on_budget = on_budget

    def begin(self, claim: Claim) -> RunningJob:
        """Make the run of a claimed job; its budget counts from here, and a cancel reaches it."""
        handler = self._jobs.handlers.find(claim.kind)
        limit = None if handler is None else handler.timeout
        token = CancelToken(self._jobs.clock, time_limit=limit)
        job = RunningJob(claim, jobs=self._jobs, cancel_token=token, delegates=self._delegates)
        self._jobs.live[claim.id, claim.token] = token
        if limit is not None:
            self._on_budget(job, token.started + limit)
        return job

    def carry_out(self, job: RunningJob) -> Ended:
        """Run the handler to its end; its permit is back before anybody can settle the run."""
        claim, token = job.claim, job.cancel_token
        try:
            handler = self._jobs.handlers.find(claim.kind)
            # A handler that was retired since the claim is gone; the job is not ours any more.
            outcome = Released() if handler is None else self._executor.run(job, handler)
        finally:
            self._permits.release(claim)
        if job.reporter is not None and job.settled is None:
            job.reporter.flush()
        follow_ups = job.follow_ups if isinstance(outcome, Succeeded) else ()
        return Ended(claim, outcome, self._jobs.clock.monotonic() - token.started, follow_ups, job.settled)
