"""What is refused because of how things stand: nothing has this name, or its state does not allow it."""

from jobq.errors.root import JobqError

#: The most names that a fix lists.
_MOST_NAMED = 10


class JobNotFound(JobqError, LookupError):
    """No job has this id; it never existed or was pruned."""

    def __init__(self, job_id: int) -> None:
        # Python writes out no decimal number of thousands of digits, and no database holds such an id.
        shown = str(job_id) if job_id.bit_length() <= 64 else f"of {job_id.bit_length():,} bits"
        super().__init__(f"no job has the id {shown}")
        self.job_id = job_id
        self.fix = "Look for it with jobs.find(); a job that has ended may have been pruned."


class QueueNotFound(JobqError, LookupError):
    """No queue has this name."""

    def __init__(self, queue: str, *, known: tuple[str, ...] = ()) -> None:
        super().__init__(f"no queue is called {queue!r}")
        self.queue = queue
        self.known = known
        self.fix = f"Known queues: {', '.join(known)}." if known else None


class ScheduleNotFound(JobqError, LookupError):
    """No schedule has this name."""

    def __init__(self, schedule: str, *, known: tuple[str, ...] = ()) -> None:
        super().__init__(f"no schedule is called {schedule!r}")
        self.schedule = schedule
        self.known = known
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        self.fix = f"Known schedules: {', '.join(known[:_MOST_NAMED])}{more}." if known else None


class InvalidTransition(JobqError, ValueError):
    """The job's state does not allow what was asked; the row is unchanged."""

    def __init__(self, job_id: int, state: str, wanted: str) -> None:
        super().__init__(f"job {job_id} is {state} and cannot be {wanted}")
        self.job_id = job_id
        self.state = state
        self.wanted = wanted
        self.fix = "Cancel it or wait until it has ended." if state == "running" else "Enqueue a new job instead."


class DedupeConflict(JobqError, ValueError):
    """The dedupe key is held by another queued or running job; nothing was written.

    ``holder`` is that job's id.
    """

    def __init__(self, holder: int, *, why: str) -> None:
        super().__init__(f"the dedupe key is held by job {holder}: {why}")
        self.holder = holder
        self.fix = f"Wait until job {holder} has ended, or cancel it."


class LeaseLost(JobqError, RuntimeError):
    """The lease's token is no longer the job's: it expired and was taken over, or was voided.

    Nothing was written. Whoever holds the newer token decides the job.
    """

    def __init__(self, job_id: int) -> None:
        super().__init__(f"the lease on job {job_id} was lost")
        self.job_id = job_id
        self.fix = "Stop working on this job and take another lease; extend leases in time."


class WaitTimeout(JobqError, TimeoutError):
    """A job did not end within the time that the caller was ready to wait; the job goes on."""

    def __init__(self, job_id: int, state: str, seconds: float) -> None:
        super().__init__(f"job {job_id} is still {state} after {seconds:g} s")
        self.job_id = job_id
        self.state = state
        self.seconds = seconds
        self.fix = "Wait longer, or see whether a runner serves its queue and knows its kind."


class NoQueueInstalled(JobqError, RuntimeError):
    """A handler was asked to enqueue and cannot tell on which job queue."""

    def __init__(self, kind: str, *, attached: int) -> None:
        super().__init__(
            f"the handler of {kind!r} is attached to {attached} job queues, one is needed to enqueue; none is installed"
        )
        self.kind = kind
        self.attached = attached
        self.fix = (
            "Call jobq.install(jobs) once at start, open one with jobq.open(path, handlers=...), or call "
            "jobs.enqueue(handler, payload) on it."
        )


class InsideTransaction(JobqError, RuntimeError):
    """A verb was called inside a transaction of this thread that cannot be a part of it; nothing was done.

    What runs jobs, takes or ends leases, or waits needs commits of its own.
    """

    def __init__(self, verb: str) -> None:
        super().__init__(f"{verb} cannot be a part of the transaction that this thread has open")
        self.verb = verb
        self.fix = f"Call {verb} before or after the block."


class TransactionEnded(JobqError, RuntimeError):
    """A transaction or snapshot was used where it cannot be: after its end, or on another thread; nothing was done."""

    def __init__(self, why: str) -> None:
        super().__init__(f"nothing can be done in this transaction: {why}")
        self.why = why
        self.fix = "Open a block with jobs.transaction() or jobs.read() on the thread that uses it, and leave it soon."


class StatementRefused(JobqError, ValueError):
    """A statement of the host's is not carried out in jobq's transaction or snapshot; nothing of it was written.

    ``what`` names what it would do; the statement itself is not shown.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is refused here")
        self.what = what
        self.fix = (
            "The block begins and ends the transaction, blocks inside it are savepoints, jobq's verbs write its "
            "tables; change settings of the file through a connection of your own, made with apsw."
        )


class QueueClosed(JobqError, RuntimeError):
    """A verb was called on a job queue after its ``close()``."""

    def __init__(self) -> None:
        super().__init__("this job queue is closed")
        self.fix = "Open it again with jobq.open(path)."


class RunnerBusy(JobqError, RuntimeError):
    """``drain()`` or ``run_once()`` was called while the runner's threads run, or inside a handler; nothing was run."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this runner cannot run jobs on the calling thread: {why}")
        self.fix = "Stop the runner first, or enqueue the work and wait for it outside the handler."
