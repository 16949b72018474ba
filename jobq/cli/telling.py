"""What ``jobq work`` says: what it serves, a line for each run that ended here, and for each lease that expired."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from jobq.cli.output import note, say_json
from jobq.errors import JobqError
from jobq.jobqueue import JobQueue
from jobq.model.events import JobStateChanged
from jobq.model.job import DEFAULT_QUEUE, JobState


class Teller:
    """Writes the lines, each at once and whole, whichever thread it comes from."""

    def __init__(self, jobs: JobQueue, *, json: bool) -> None:
        self._jobs = jobs
        self._json = json

    def begin(self, queues: Iterable[str], *, named: bool) -> None:
        """Say which queues and kinds are served; of queues that somebody named also which nobody uses."""
        served = list(queues)
        kinds = {kind: self._queue_of(kind) for kind in self._jobs.handlers.kinds()}
        shown = ", ".join(kind for kind, queue in kinds.items() if queue in served)
        note(f"working on {', '.join(served)} of {self._jobs.path}: {shown or 'jobs that were enqueued there by name'}")
        if named:
            known = self._jobs.queues(hidden=True)
            used = {*kinds.values(), *(queue.name for queue in known if queue.queued or queue.running)}
            for queue in served:
                if queue not in used:
                    note(f"note: no kind of this program belongs to the queue {queue}, and no job is in it")

    def ended(self, event: JobStateChanged, started: JobStateChanged, what: str) -> None:
        """Tell how a run of this process ended."""
        milliseconds = round((event.at - started.at).total_seconds() * 1000)
        error, due = self._why(event)
        if self._json:
            say_json(_line(event, what, started.attempt, milliseconds, error, due), line=True)
            return
        text = f"{_head(event)} {what}, attempt {started.attempt}, {milliseconds} ms"
        note(f"{text}: {error}" if error else text)

    def expired(self, event: JobStateChanged) -> None:
        """Tell that the lease of another worker expired, and what became of its job."""
        error, due = self._why(event)
        attempt, worker = self._last_run(event.job_id)
        if self._json:
            line = _line(event, "expired", attempt, None, error, due)
            say_json({**line, "worker": worker}, line=True)
            return
        became = "queued again" if event.state is JobState.QUEUED else event.state
        note(f"{_head(event)} {became}: lease expired, was on {worker or 'an unknown worker'}")

    def _queue_of(self, kind: str) -> str:
        handler = self._jobs.handlers.find(kind)
        return DEFAULT_QUEUE if handler is None or handler.queue is None else handler.queue

    def _last_run(self, job_id: int) -> tuple[int | None, str | None]:
        try:
            runs = self._jobs.history(job_id)
        except JobqError:
            return None, None
        return (runs[-1].attempt, runs[-1].worker) if runs else (None, None)

    def _why(self, event: JobStateChanged) -> tuple[str | None, datetime | None]:
        """Return the error and the next due time of a run that did not succeed, as far as they can be read now."""
        if event.state is JobState.SUCCEEDED:
            return None, None
        try:
            job = self._jobs.get(event.job_id)
        except JobqError:
            return None, None
        return job.last_error, job.run_at if job.state is JobState.QUEUED else None


def _head(event: JobStateChanged) -> str:
    return f"{event.at:%H:%M:%S} job {event.job_id} {event.kind}"


def _line(
    event: JobStateChanged,
    what: str,
    attempt: int | None,
    milliseconds: int | None,
    error: str | None,
    due: datetime | None,
) -> dict[str, Any]:
    return {
        "at": event.at,
        "job_id": event.job_id,
        "kind": event.kind,
        "queue": event.queue,
        "outcome": what,
        "state": event.state,
        "attempt": attempt,
        "milliseconds": milliseconds,
        "error": error,
        "due": due,
    }
