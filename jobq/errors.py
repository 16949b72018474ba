"""Every exception that jobq raises, in one tree.

::

    JobqError
    ├── ArgumentError (ValueError)           an argument of a verb is out of its range
    │   └── CronError                        a cron expression is malformed or can never fire
    ├── ConfigError (ValueError)             a registration or a configuration contradicts itself
    ├── PayloadError (ValueError)            a payload is not JSON or does not fit its kind
    │   └── PayloadTooLarge                  it is larger than the limit
    ├── ResultError (ValueError)             a handler's result is not JSON or does not fit its kind
    ├── UnknownKind (LookupError)            nobody registered it and no row knows it
    ├── RetiredKind (ValueError)             enqueueing a kind that was declared retired
    ├── JobNotFound (LookupError)            no job has this id
    ├── QueueNotFound (LookupError)          no queue has this name
    ├── ScheduleNotFound (LookupError)       no schedule has this name
    ├── InvalidTransition (ValueError)       requeueing one job that is running or succeeded
    ├── DedupeConflict (ValueError)          the key is held by another job
    ├── LeaseLost (RuntimeError)             the lease's token is no longer the job's
    ├── WaitTimeout (TimeoutError)           the job did not end in time
    ├── NoQueueInstalled (RuntimeError)      a handler was asked to enqueue and has no job queue
    ├── InsideTransaction (RuntimeError)     what cannot be a part of a transaction was called inside one
    ├── TransactionEnded (RuntimeError)      a transaction was used after its end, or on another thread
    ├── StatementRefused (ValueError)        SQL of the host's that a transaction does not carry out
    ├── QueueClosed (RuntimeError)           a verb was called after close()
    ├── RunnerBusy (RuntimeError)            a drain beside the runner's threads, or inside a handler
    ├── ForeignHandle (RuntimeError)         another SQLite library has the file open in this process
    ├── ForkedHandle (RuntimeError)          a handle was inherited through a fork
    ├── SchemaTooNew (RuntimeError)          the file was written by a newer jobq
    ├── StoreError (OSError)                 the database did not do what it was asked to do
    │   ├── StoreBusy                        somebody else held the lock for too long
    │   ├── StoreUnavailable                 the file cannot be opened, read or written
    │   ├── StoreFull                        the disk or a quota is full
    │   └── StoreCorrupt                     the file is damaged, or was replaced while open
    ├── Deferred                             raised by a handler: come back later
    ├── PermanentJobError                    raised by a handler: do not try again
    └── TransientJobError                    raised by a handler: the cause will pass
    JobCancelled (BaseException)             raised by a handler that stops because it was asked to

An error builds its message from data and keeps the data as attributes. ``fix`` says what the user can do about it,
where there is something to do; it is shown below a traceback too. No message carries a payload, a result or a secret.
"""

from datetime import datetime, timedelta

#: The most names that a fix lists.
_MOST_NAMED = 10


class JobqError(Exception):
    """The root of all errors of jobq but :class:`JobCancelled`."""

    #: What the user can do about it, as a sentence; None where there is nothing to do.
    fix: str | None = None

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "fix" and isinstance(value, str):
            self.__notes__ = [value]

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between processes by pickle; their __init__ takes the data, not the finished message.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: "type[JobqError]", arguments: tuple[object, ...], data: dict[str, object]) -> "JobqError":
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(data)
    return error


class ArgumentError(JobqError, ValueError):
    """An argument of a verb is malformed or out of its range; nothing was written."""

    def __init__(self, argument: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem
        self.fix = fix or f"Call again with {argument} as described; nothing was written."


class CronError(ArgumentError):
    """A cron expression is malformed or can never fire; nothing was written.

    ``text`` is the part that is wrong, ``field`` the name of the field that it stands in and ``allowed`` that field's
    range; both are None where the expression as a whole is wrong.
    """

    def __init__(
        self,
        text: str,
        problem: str,
        *,
        field: str | None = None,
        allowed: str | None = None,
        fix: str | None = None,
    ) -> None:
        place = f"{field} " if field else ""
        bounds = f" ({allowed})" if allowed else ""
        super().__init__("cron", f"{place}{text[:40]!r}: {problem}{bounds}", fix=fix)
        self.text = text
        self.field = field
        self.allowed = allowed


class ConfigError(JobqError, ValueError):
    """A registration or a configuration value contradicts itself or another one."""

    def __init__(self, problem: str, *, fix: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix or "Correct the registration or the configuration; nothing was changed."


class PayloadError(JobqError, ValueError):
    """A payload is not storable as JSON or does not fit its kind's schema.

    ``path`` leads to the bad value, as in ``$.items[3].price``; the value itself is never shown.
    """

    def __init__(self, path: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"payload at {path}: {problem}")
        self.path = path
        self.problem = problem
        self.fix = fix or "Send JSON values that fit the kind's payload class; turn other values into text or numbers."


class PayloadTooLarge(PayloadError):
    """An encoded payload is larger than ``payload_max_bytes``."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            "$",
            f"{size:,} bytes encoded, at most {limit:,} are allowed",
            fix="Store the content elsewhere and enqueue a reference to it, or raise payload_max_bytes.",
        )
        self.size = size
        self.limit = limit


class ResultError(JobqError, ValueError):
    """A handler's result is not storable as JSON, is too large or does not fit its kind's schema."""

    def __init__(self, path: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"result at {path}: {problem}")
        self.path = path
        self.problem = problem
        self.fix = fix or "Return JSON values that fit the kind's result class; turn other values into text or numbers."


class UnknownKind(JobqError, LookupError):
    """Nobody registered this kind (or payload class) here, and no row of the database knows it."""

    def __init__(self, kind: str, *, fix: str | None = None) -> None:
        super().__init__(f"unknown kind: {kind!r}")
        self.kind = kind
        self.fix = fix or "Register a handler for it, or enqueue it by its name."


class RetiredKind(JobqError, ValueError):
    """The kind was declared retired; no job of it is accepted."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the kind {kind!r} is retired")
        self.kind = kind
        self.fix = "Enqueue the kind that replaced it, or register a handler for it again."


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


class ForeignHandle(JobqError, RuntimeError):
    """Another copy of the SQLite library has the file open in this process.

    Closing any handle drops the POSIX locks that the process holds on the file, so two copies of SQLite corrupt it
    (https://sqlite.org/howtocorrupt.html, section 2.2).
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is open in this process through something other than apsw")
        self.path = path
        self.fix = (
            "Close that handle (the standard sqlite3 module, SQLAlchemy or Django on it, a plain open()) and "
            "keep jobq in a file of its own."
        )


class ForkedHandle(JobqError, RuntimeError):
    """A database handle was inherited through a fork; using it would write without locks."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was in use while this process was forked")
        self.path = path
        self.fix = (
            "Fork while no transaction runs and no connection of your own is open on the file, or start the child "
            "process with spawn."
        )


class SchemaTooNew(JobqError, RuntimeError):
    """The file was written by a newer jobq; it was left untouched."""

    def __init__(self, path: str, found: int, supported: int) -> None:
        super().__init__(f"{path} has schema version {found}, this jobq knows versions up to {supported}")
        self.path = path
        self.found = found
        self.supported = supported
        self.fix = "Upgrade jobq in this environment."


class StoreError(JobqError, OSError):
    """The database did not do what it was asked to do; the operation was rolled back.

    ``code`` is SQLite's extended result code. ``outcome_unknown`` is True after a failed COMMIT: the change may or
    may not be there. An enqueue with a dedupe key may then be repeated safely.
    """

    def __init__(self, path: str, detail: str, *, code: int = 0, outcome_unknown: bool = False) -> None:
        unknown = "; the outcome of the commit is unknown" if outcome_unknown else ""
        super().__init__(f"{path}: {detail}{unknown}")
        self.path = path
        self.detail = detail
        self.code = code
        self.outcome_unknown = outcome_unknown
        # The class says it; said again for this one, so that a traceback shows it.
        self.fix = type(self).fix


class StoreBusy(StoreError):
    """Another connection held the lock for longer than ``busy_timeout``."""

    fix = "Try again; look for a long transaction in another process, or raise busy_timeout."


class StoreUnavailable(StoreError):
    """The file cannot be opened, read or written at present."""

    fix = "Check that the directory exists, that this user may write to it, and that the file is there."


class StoreFull(StoreError):
    """The disk, a quota or the file size limit is exhausted; acknowledged work is safe."""

    fix = "Free some space; work goes on by itself."


class StoreCorrupt(StoreError):
    """The file is damaged, is not a database, or was replaced or unlinked while it was open."""

    fix = "Stop every process that uses the file, keep a copy of it, and restore a backup."


class Deferred(JobqError):
    """Raised by a handler: come back later; the attempt is not counted.

    ``delay`` takes seconds, a timedelta or text such as "5m"; ``until`` an aware datetime; exactly one is needed.
    ``reason`` is kept, redacted, in ``last_error``.
    """

    def __init__(
        self,
        reason: str | None = None,
        *,
        delay: float | str | timedelta | None = None,
        until: datetime | None = None,
    ) -> None:
        if (delay is None) == (until is None):
            raise ArgumentError("delay", "name either delay or until")
        super().__init__(reason or "deferred")
        self.reason = reason
        self.delay = delay
        self.until = until


class PermanentJobError(JobqError):
    """Raised by a handler: the job fails at once, whatever attempts are left; its class is unrecoverable.

    ``code`` is kept as ``failure_reason``.
    """

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class TransientJobError(JobqError):
    """Raised by a handler: a failed attempt whose cause will pass; its class is transient.

    ``code`` is kept as ``failure_reason``.
    """

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class JobCancelled(BaseException):
    """Raised by a handler that stops because its cancel token asked it to.

    It derives from BaseException so that a broad ``except Exception`` in a handler does not swallow it.
    """
