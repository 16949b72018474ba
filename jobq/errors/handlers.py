"""What handlers raise to say how their run ended."""

from datetime import datetime, timedelta

from jobq.errors.arguments import ArgumentError
from jobq.errors.root import JobqError


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
