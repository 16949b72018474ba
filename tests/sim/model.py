"""A job queue as a dictionary: what the rules say, written down once more in the plainest way."""

from datetime import datetime, timedelta

import attrs

from jobq.model.outcome import Cancelled, Failed, Outcome, Postponed, Released, Succeeded, Voided

#: Seconds: of a lease, of the one retry delay that the kinds of the model have.
LEASE, RETRY = 60, 10
CAP = {"capped": 1}


@attrs.define
class ModelJob:
    """What the model knows of one job."""

    kind: str
    priority: int
    run_at: datetime
    key: str | None
    max_attempts: int
    state: str = "queued"
    attempts: int = 0
    deferrals: int = 0
    token: str | None = None
    lease_until: datetime | None = None
    cancel_asked: bool = False
    finished_at: datetime | None = None

    @property
    def live(self) -> bool:
        """Whether it holds its key."""
        return self.state in {"queued", "running"}

    def facts(self) -> tuple[object, ...]:
        """Return what the row must say."""
        return (self.state, self.attempts, self.deferrals, self.priority, self.run_at, self.token is not None)


class Model:
    """Jobs by id, and what each event does to them."""

    def __init__(self) -> None:
        self.jobs: dict[int, ModelJob] = {}
        self.paused = False

    def holder(self, key: str | None) -> int | None:
        """Return the id of the live job that holds a key."""
        held = (id for id, job in self.jobs.items() if key is not None and job.live and job.key == key)
        return next(held, None)

    def reclaim(self, now: datetime) -> None:
        """Take back what has expired."""
        for job in self.jobs.values():
            if job.state == "running" and job.lease_until is not None and job.lease_until <= now:
                if job.cancel_asked:
                    self._end(job, "cancelled", now)
                elif job.attempts < job.max_attempts:
                    self._again(job, now)
                else:
                    self._end(job, "failed", now)

    def best(self, now: datetime) -> int | None:
        """Return the id of the job that a claim takes."""
        running = [job.kind for job in self.jobs.values() if job.state == "running"]
        open_jobs = [
            (-job.priority, job.run_at, id)
            for id, job in self.jobs.items()
            if job.state == "queued" and job.run_at <= now and running.count(job.kind) < CAP.get(job.kind, 1_000)
        ]
        return None if self.paused or not open_jobs else min(open_jobs)[2]

    def start(self, id: int, token: str, now: datetime) -> None:
        """Begin a run."""
        job = self.jobs[id]
        job.state, job.attempts, job.token = "running", job.attempts + 1, token
        job.lease_until = now + timedelta(seconds=LEASE)

    def settle(self, id: int, outcome: Outcome, now: datetime) -> None:
        """End a run."""
        job = self.jobs[id]
        match outcome:
            case Succeeded():
                self._end(job, "succeeded", now)
            case _ if job.cancel_asked:
                self._end(job, "cancelled", now)
            case Postponed(until=until):
                job.attempts, job.deferrals = job.attempts - 1, job.deferrals + 1
                self._again(job, until)
            case Released():
                job.attempts -= 1
                self._again(job, job.run_at)
            case Voided():
                job.attempts -= 1
                self._again(job, job.lease_until or now)
            case Failed(retryable=True) | Cancelled() if job.attempts < job.max_attempts:
                self._again(job, now + timedelta(seconds=RETRY))
            case _:
                self._end(job, "failed", now)

    def cancel(self, id: int, now: datetime) -> bool:
        """Ask a job to stop."""
        job = self.jobs[id]
        if job.state == "queued":
            self._end(job, "cancelled", now)
        elif job.state == "running":
            job.cancel_asked = True
        else:
            return False
        return True

    def may_requeue(self, id: int) -> bool:
        """Whether a job may run again from the start."""
        job = self.jobs[id]
        return job.state in {"queued", "failed", "cancelled"} and self.holder(job.key) in {None, id}

    def requeue(self, id: int, now: datetime) -> None:
        """Run a job again from the start."""
        job = self.jobs[id]
        job.attempts = job.deferrals = 0
        job.finished_at = None
        self._again(job, now)

    def prune(self, before: datetime) -> None:
        """Remove what ended before a time."""
        self.jobs = {id: job for id, job in self.jobs.items() if job.finished_at is None or job.finished_at > before}

    def _again(self, job: ModelJob, run_at: datetime) -> None:
        job.state, job.run_at = "queued", run_at
        self._let_go(job)

    def _end(self, job: ModelJob, state: str, now: datetime) -> None:
        job.state, job.finished_at = state, now
        self._let_go(job)

    def _let_go(self, job: ModelJob) -> None:
        job.token, job.lease_until, job.cancel_asked = None, None, False
