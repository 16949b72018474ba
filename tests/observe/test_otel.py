"""Spans of attempts, and the context that is carried to them."""

from collections.abc import Iterator

import attrs
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer, get_current_span

import jobq
from jobq.observe import conventions
from jobq.observe.otel import Tracing


@attrs.frozen
class Traced:
    """A job queue whose attempts are traced, and what was exported."""

    tracing: Tracing
    tracer: Tracer
    exporter: InMemorySpanExporter

    def spans(self) -> tuple[ReadableSpan, ...]:
        """Return the finished spans, in the order of their ends."""
        return self.exporter.get_finished_spans()


@pytest.fixture
def traced(jobs: jobq.JobQueue) -> Iterator[Traced]:
    """Tracing with an SDK that keeps spans in memory."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(jobs, tracer_provider=provider)
    yield Traced(tracing, provider.get_tracer("test"), exporter)
    tracing.close()
    provider.shutdown()


def parent_of(span: ReadableSpan) -> int | None:
    """Return the id of a span's parent."""
    return None if span.parent is None else span.parent.span_id


def test_attempt_is_a_span_in_the_trace_of_its_enqueuer(jobs: jobq.JobQueue, traced: Traced) -> None:
    """With the names of the messaging conventions."""

    @jobs.job(queue="mail", max_attempts=3)
    def send(payload: None) -> None:
        with traced.tracer.start_as_current_span("smtp"):
            pass

    with traced.tracer.start_as_current_span("request"):
        made = send.enqueue(meta={"mine": 1})
    jobq.Runner(jobs, around=traced.tracing.around).drain()

    request, smtp, attempt = traced.spans()
    assert attempt.name == "process mail"
    assert attempt.kind is SpanKind.CONSUMER
    assert parent_of(attempt) == request.context.span_id
    assert parent_of(smtp) == attempt.context.span_id
    assert dict(attempt.attributes or {}) == {
        "messaging.system": "jobq",
        "messaging.destination.name": "mail",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": str(made.id),
        "jobq.job.kind": "send",
        "jobq.job.attempt": 1,
        "jobq.job.max_attempts": 3,
    }
    assert attempt.status.status_code is StatusCode.UNSET
    assert jobs.get(made.id).meta["mine"] == 1


def test_each_attempt_is_marked_with_its_error_and_not_with_its_text(jobs: jobq.JobQueue, traced: Traced) -> None:
    """A text may hold a secret; a deferral is no error."""
    plan: list[Exception | None] = [ValueError("password=hunter2"), jobq.Deferred("later", delay=0), None]

    @jobs.job(retry=jobq.RetryPolicy(base=0))
    def flaky(payload: None) -> None:
        if (error := plan.pop(0)) is not None:
            raise error

    flaky.enqueue()
    jobq.Runner(jobs, around=traced.tracing.around).drain()

    failed, deferred, succeeded = traced.spans()
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})[conventions.ERROR_TYPE] == "ValueError"
    assert [one.status.status_code for one in (deferred, succeeded)] == [StatusCode.UNSET] * 2
    assert all("hunter2" not in one.to_json() for one in traced.spans())
    assert len({one.context.trace_id for one in traced.spans()}) == 3


def test_jobs_that_a_handler_enqueues_belong_to_the_trace(jobs: jobq.JobQueue, traced: Traced) -> None:
    """Through enqueue and follow_up; the attempt is the current span."""

    @jobs.job
    def parent(payload: None, job: jobq.RunningJob) -> None:
        job.enqueue("child")
        job.follow_up("child")

    @jobs.job
    def child(payload: None) -> None:
        """Does nothing."""

    parent.enqueue()
    jobq.Runner(jobs, around=traced.tracing.around).drain()

    first, *others = traced.spans()
    assert len(others) == 2
    assert [parent_of(one) for one in others] == [first.context.span_id] * 2


def test_nothing_is_carried_outside_of_a_span_or_after_close(jobs: jobq.JobQueue, traced: Traced) -> None:
    """Nor by the jobs of a schedule that was added inside one."""
    with traced.tracer.start_as_current_span("request"):
        jobs.schedules.add("s", every="1m", kind="a")
        assert "otel" in jobs.enqueue("a").job.meta  # type: ignore[union-attr]
        traced.tracing.close()
        assert jobs.enqueue("a").job.meta == {}  # type: ignore[union-attr]
    jobs.carry = traced.tracing.carried
    assert jobs.enqueue("a").job.meta == {}  # type: ignore[union-attr]

    jobs.clock.advance("1m")  # type: ignore[attr-defined]
    (fired,) = jobs.schedules.tick()

    assert jobs.get(fired.job_id).meta == {}


def test_broken_context_starts_a_new_trace(jobs: jobq.JobQueue, traced: Traced) -> None:
    """What is in meta may come from anybody."""

    @jobs.job
    def a(payload: None) -> None:
        assert get_current_span().is_recording()

    for carrier in (5, "x", {"traceparent": 7}, {"traceparent": "zz"}, ["traceparent"]):
        a.enqueue(meta={"otel": carrier})

    assert jobq.Runner(jobs, around=traced.tracing.around).drain().succeeded == 5
    assert [one.parent for one in traced.spans()] == [None] * 5
