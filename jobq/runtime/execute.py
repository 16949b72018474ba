"""Run one job's handler and say what the run ended as. Nothing here touches the store."""

import sys
import threading
from contextlib import ExitStack
from contextvars import copy_context
from typing import Any

from jobq.clock import Clock
from jobq.errors import JobCancelled, PayloadError, ResultError
from jobq.failures import outcome_of, unrecoverable
from jobq.handler import AnyHandler
from jobq.lines import RUN, Lines
from jobq.log import get_logger
from jobq.model.outcome import Outcome, Succeeded
from jobq.model.payload import decode
from jobq.model.redact import Redactor
from jobq.runtime.around import Around, given_job
from jobq.runtime.context import RunningJob
from jobq.runtime.facts import bindings

#: What costs a worker thread one attempt: everything, because a thread has to survive it.
EVERYTHING: tuple[type[BaseException], ...] = (BaseException,)
#: What does on the thread of a caller, who wants Ctrl-C and a failing test to get through.
ONLY_ERRORS: tuple[type[BaseException], ...] = (Exception, JobCancelled)

logger = get_logger(__name__)

_NO_RESULT = Succeeded()
_thread = threading.local()


def inside_handler() -> bool:
    """Return whether this thread is running a handler of any runner."""
    return getattr(_thread, "depth", 0) > 0


class Executor:
    """Turns a claimed job and its handler into an outcome.

    ``caught`` are the exceptions that count as an outcome; any other one goes through.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        lines: Lines,
        redactor: Redactor,
        result_limit: int,
        around: Around | None = None,
        caught: tuple[type[BaseException], ...] = EVERYTHING,
    ) -> None:
        self._clock = clock
        self._lines = lines
        self._redactor = redactor
        self._result_limit = result_limit
        self._around = given_job(around)
        self._caught = caught

    def run(self, job: RunningJob, handler: AnyHandler) -> Outcome:
        """Decode, call, encode; return what the run ended as. What the handler raised is left in ``job.error``.

        Context variables that are set meanwhile end with the run.
        """
        # No call between it and the try: an interrupt there would leave the thread inside a handler for ever.
        _thread.depth = getattr(_thread, "depth", 0) + 1
        try:
            # In a copy: what a handler binds, its user say, must not stand on the log lines of the thread's next job.
            return copy_context().run(self._outcome, job, handler)
        finally:
            _thread.depth -= 1

    def _outcome(self, job: RunningJob, handler: AnyHandler) -> Outcome:
        RUN.set((self._lines, job.claim))
        try:
            return self._run(job, handler)
        except self._caught as error:
            job.error = error
            if job.settled is not None:
                # What it ended as is written already.
                logger.warning("jobq.handler.failed", **bindings(job.claim), error=type(error).__name__)
                return _NO_RESULT
            if isinstance(error, ResultError):
                return unrecoverable(error, "bad_result", self._redactor)
            return outcome_of(error, job.cancel_token.reason, now=self._clock.now, redactor=self._redactor)

    def _run(self, job: RunningJob, handler: AnyHandler) -> Outcome:
        try:
            payload = handler.load(decode(job.claim.payload))
        except PayloadError as error:
            job.error = error
            return unrecoverable(error, "bad_payload", self._redactor)
        structlog: Any = sys.modules.get("structlog")
        if self._around is None and (structlog is None or not structlog.is_configured()):
            returned = handler.function(payload, job) if handler.wants_job else handler.function(payload)
        else:
            returned = self._call_within(job, handler, payload)
        if job.settled is not None or (returned is None and handler.result_type is None):
            return _NO_RESULT
        return Succeeded(handler.encode_result(returned, limit=self._result_limit))

    def _call_within(self, job: RunningJob, handler: AnyHandler, payload: Any) -> Any:
        """Call the handler inside ``around``, with its ids on the log lines of a configured structlog."""
        raised: BaseException | None = None
        returned = None
        with ExitStack() as stack:
            structlog: Any = sys.modules.get("structlog")
            if structlog is not None and structlog.is_configured():
                stack.enter_context(structlog.contextvars.bound_contextvars(**bindings(job.claim)))
            if self._around is not None:
                stack.enter_context(self._around(job))
            try:
                returned = handler.function(payload, job) if handler.wants_job else handler.function(payload)
            except BaseException as error:
                raised = error
                raise
        if raised is not None:
            # The context swallowed it; a run that raised has not succeeded.
            raise raised
        return returned
