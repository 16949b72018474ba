"""What an exception of a handler means: the outcome of its run."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime

from jobq.cancellation import CancelReason
from jobq.errors import (
    ArgumentError,
    Deferred,
    JobCancelled,
    PermanentJobError,
    StoreCorrupt,
    StoreError,
    TransientJobError,
)
from jobq.model.duration import to_seconds
from jobq.model.instant import require_aware, shift
from jobq.model.job import FailureClass
from jobq.model.outcome import Cancelled, Failed, Outcome, Postponed, Released
from jobq.model.redact import Redactor, clean, describe_error

#: SQLite's primary result codes for trouble that passes: BUSY, LOCKED, IOERR, FULL. They are read off whatever driver
#: the handler uses, by the attributes of the two common ones.
_PASSING = frozenset({5, 6, 10, 13})
_CODES = ("sqlite_errorcode", "extendedresult")
#: Classes that say the same by their names, so that nothing has to be imported to know them.
_PASSING_NAMES = frozenset(
    {
        "apsw.BusyError",
        "apsw.LockedError",
        "apsw.IOError",
        "apsw.FullError",
        "subprocess.TimeoutExpired",
        "socket.gaierror",
    }
)
#: The standard driver's errors carry no code when they were not raised by SQLite itself.
_PASSING_TEXTS = ("database is locked", "database table is locked", "disk I/O error")
#: A chain of causes can be a circle, or endless.
_LONGEST_CHAIN = 100
#: How many frames of a failure the log names.
_FRAMES = 4

#: What a run ends as when its handler stops because it was asked to.
_STOPPED: dict[CancelReason | None, Outcome] = {
    None: Cancelled(),
    CancelReason.USER: Cancelled(),
    CancelReason.SHUTDOWN: Released(),
    # Its settle will be superseded; whoever holds the newer token decides.
    CancelReason.LEASE_LOST: Released(),
}


def outcome_of(
    error: BaseException,
    reason: CancelReason | None,
    *,
    now: Callable[[], datetime],
    redactor: Redactor,
) -> Outcome:
    """Return what a run ended as whose handler raised ``error`` while its token said ``reason``.

    JobCancelled counts only where the handler raised it itself. The other typed errors are found through the chain of
    causes, the outermost first, and before a builtin one that merely hints at a passing cause.
    """
    if isinstance(error, JobCancelled):
        return _stopped(error, reason, redactor)
    for cause in _chain(error):
        match cause:
            case Deferred():
                return _postponed(cause, now, redactor)
            case PermanentJobError(code=code):
                return unrecoverable(error, _code(code, redactor), redactor)
            case TransientJobError(code=code):
                return Failed(
                    error=describe_error(error, redactor),
                    reason=_code(code, redactor),
                    failure_class=FailureClass.TRANSIENT,
                    where=_where(error),
                )
    transient = any(map(_passes, _chain(error)))
    return Failed(
        error=describe_error(error, redactor),
        failure_class=FailureClass.TRANSIENT if transient else None,
        where=_where(error),
    )


def unrecoverable(error: BaseException, reason: str | None, redactor: Redactor) -> Failed:
    """Return the failure that no further attempt can mend."""
    return Failed(
        error=describe_error(error, redactor),
        reason=reason,
        failure_class=FailureClass.UNRECOVERABLE,
        retryable=False,
        where=_where(error),
    )


def _stopped(error: JobCancelled, reason: CancelReason | None, redactor: Redactor) -> Outcome:
    if reason is CancelReason.TIMEOUT:
        return Failed(error=describe_error(error, redactor), reason="timeout", failure_class=FailureClass.TRANSIENT)
    return _STOPPED[reason]


def _postponed(error: Deferred, now: Callable[[], datetime], redactor: Redactor) -> Outcome:
    try:
        if error.until is not None:
            until = require_aware(error.until, argument="until")
        else:
            delay = 0.0 if error.delay is None else to_seconds(error.delay, argument="delay")
            until = shift(now(), max(0.0, delay), argument="delay")
    except ArgumentError as fault:
        return Failed(error=describe_error(fault, redactor))
    return Postponed(until=until, reason=None if error.reason is None else clean(str(error.reason), redactor))


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if cause is None:
            return
        yield cause
        following = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        # urllib keeps the cause under a name of its own.
        reason = getattr(cause, "reason", None)
        cause = following or (reason if isinstance(reason, BaseException) else None)


def _passes(error: BaseException) -> bool:
    if isinstance(error, StoreError):
        return not isinstance(error, StoreCorrupt)
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if any(f"{kind.__module__}.{kind.__qualname__}" in _PASSING_NAMES for kind in type(error).__mro__):
        return True
    codes = [code for name in _CODES if isinstance(code := getattr(error, name, None), int)]
    if codes:
        return any(code & 0xFF in _PASSING for code in codes)
    return type(error).__name__ == "OperationalError" and str(error).startswith(_PASSING_TEXTS)


def _code(code: object, redactor: Redactor) -> str | None:
    # An HTTP status is a likely code, too; what is neither cannot be asked for its text without risk.
    return clean(str(code), redactor) if isinstance(code, str | int) else None


def _where(error: BaseException) -> str | None:
    """Return the innermost frames that the error came through, as places in files; no text of the error is in it."""
    frames: deque[str] = deque(maxlen=_FRAMES)
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.appendleft(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    return " < ".join(frames) or None
