"""A span for each attempt, in the trace of whoever enqueued the job; the extra ``jobq[otel]``.

Only the API of OpenTelemetry is used: what becomes of spans is the host's business. No payload, result or text of an
error is put into a span.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from opentelemetry import propagate
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider, get_tracer

from jobq.errors import Deferred, JobCancelled
from jobq.jobqueue import JobQueue
from jobq.model.job import JSON
from jobq.observe import conventions

#: Where a job's ``meta`` carries the context: the fields of the host's propagator, ``traceparent`` unless configured.
CARRIER = "otel"


class Attempt(Protocol):
    """A running job, as far as a span needs one."""

    @property
    def id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def meta(self) -> Mapping[str, JSON]: ...


class Tracing:
    """Carries the context from enqueue to run, and makes a span of each attempt.

    From now on each enqueue on this job queue carries the context of its thread in the job's ``meta``. Give
    ``tracing.around`` to the runners: ``Runner(jobs, around=tracing.around)``. The span is the current one while the
    handler runs, so its own spans, and the jobs that it enqueues, belong to the same trace.
    """

    def __init__(self, jobs: JobQueue, *, tracer_provider: TracerProvider | None = None) -> None:
        self._jobs = jobs
        self._tracer = get_tracer("jobq", tracer_provider=tracer_provider)
        jobs.carry = self.carried

    def close(self) -> None:
        """Carry nothing any more; runners that have ``around`` keep it."""
        self._jobs.carry = None

    def carried(self) -> dict[str, JSON]:
        """Return what the ``meta`` of a job enqueued here and now carries; nothing outside of any span."""
        fields: dict[str, str] = {}
        propagate.inject(fields)
        return {CARRIER: fields} if fields else {}

    @contextmanager
    def around(self, job: Attempt) -> Iterator[None]:
        """Enter the span of an attempt; one that fails is marked with the class of its error."""
        carrier = job.meta.get(CARRIER)
        fields = carrier if isinstance(carrier, Mapping) else {}
        with self._tracer.start_as_current_span(
            f"{conventions.PROCESS} {job.queue}",
            context=propagate.extract({str(key): value for key, value in fields.items() if isinstance(value, str)}),
            kind=SpanKind.CONSUMER,
            attributes={
                conventions.SYSTEM: conventions.JOBQ,
                conventions.DESTINATION: job.queue,
                conventions.OPERATION_NAME: conventions.PROCESS,
                conventions.OPERATION_TYPE: conventions.PROCESS,
                conventions.MESSAGE_ID: str(job.id),
                conventions.KIND: job.kind,
                conventions.ATTEMPT: job.attempt,
                conventions.MAX_ATTEMPTS: job.max_attempts,
            },
            # Both would keep the text of the error, which may hold a secret.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except (Deferred, JobCancelled):
                raise  # the handler's own decision is no error
            except BaseException as error:
                span.set_attribute(conventions.ERROR_TYPE, type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR))
                raise
