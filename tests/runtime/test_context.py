"""What a handler sees of its run."""

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

import jobq
from jobq.testing import FakeClock


def test_facts_are_those_of_the_job(jobs: jobq.JobQueue) -> None:
    """Everything that was said at enqueue is there, typed."""
    seen: dict[str, Any] = {}

    @jobs.job(name="look", queue="mail", max_attempts=3)
    def look(payload: Any, job: jobq.RunningJob) -> None:
        names = ("id", "kind", "queue", "attempt", "max_attempts", "deferrals", "priority", "parent_id", "actor")
        seen.update({name: getattr(job, name) for name in names})
        seen.update(tenant=job.tenant_id, subject=job.subject, meta=job.meta, slot=job.slot, error=job.last_error)
        seen.update(delegates=job.delegates)

    made = look.enqueue(priority=7, actor="user", tenant_id="t", subject="s", meta={"trace": "abc"})
    jobq.Runner(jobs, delegates="services").drain()

    assert seen == {
        "id": made.id, "kind": "look", "queue": "mail", "attempt": 1, "max_attempts": 3, "deferrals": 0, "priority": 7,
        "parent_id": None, "actor": jobq.Actor.USER, "tenant": "t", "subject": "s", "meta": {"trace": "abc"},
        "slot": None, "error": None, "delegates": "services",
    }  # fmt: skip


def test_a_child_inherits_and_is_committed_at_once(jobs: jobq.JobQueue, caplog: Any) -> None:
    """A child knows its parent, has its actor, tenant and priority, and stays when the parent fails."""

    @jobs.job(name="parent", max_attempts=1)
    def parent(payload: Any, job: jobq.RunningJob) -> None:
        job.enqueue("child", {"n": 1})
        job.enqueue("child", {"n": 2}, tenant_id="other", priority=1)
        raise ValueError("too late")

    made = parent.enqueue(actor="agent", tenant_id="t", priority=42)
    jobq.Runner(jobs).drain()
    second, first = jobs.find(parent_id=made.id)

    assert (first.actor, first.tenant_id, first.priority) == ("agent", "t", 42)
    assert (second.actor, second.tenant_id, second.priority) == ("agent", "other", 1)
    assert jobs.get(made.id).state == "failed"


def test_the_logger_is_bound_to_the_run(jobs: jobq.JobQueue, caplog: Any) -> None:
    """A handler's own lines carry the ids of its run."""
    caplog.set_level("INFO", logger="jobq.handler")

    @jobs.job
    def talk(payload: Any, job: jobq.RunningJob) -> None:
        job.log.info("hello")

    made = talk.enqueue()
    jobq.Runner(jobs).drain()
    (record,) = (record for record in caplog.records if record.name == "jobq.handler")

    assert {"job_id": made.id, "kind": "talk", "queue": "default", "attempt": 1}.items() <= record.jobq.items()


def test_last_error_of_the_run_before(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The second attempt sees how the first one ended."""
    errors = []

    @jobs.job(max_attempts=2)
    def again(payload: Any, job: jobq.RunningJob) -> None:
        errors.append(job.last_error)
        if job.attempt == 1:
            raise ValueError("first")

    again.enqueue()
    jobq.Runner(jobs).drain(until="1m")

    assert errors == [None, "ValueError: first"]


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    """The lines of a structlog that the host configured."""
    capture = LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, capture])
    yield capture.entries
    structlog.reset_defaults()


def test_a_configured_structlog_has_the_ids_on_the_handlers_own_lines(
    jobs: jobq.JobQueue, lines: list[Any], caplog: Any
) -> None:
    """While a handler runs, every line of the host's logger carries the ids of the run, and not afterwards."""

    @jobs.job
    def talk(payload: Any) -> None:
        structlog.get_logger("host").info("inside")

    made = talk.enqueue()
    jobq.Runner(jobs).drain()
    structlog.get_logger("host").info("outside")
    inside, outside = (next(line for line in lines if line["event"] == event) for event in ("inside", "outside"))

    assert (inside["job_id"], inside["kind"], inside["attempt"]) == (made.id, "talk", 1)
    assert "job_id" not in outside


@pytest.mark.parametrize("error", [None, ValueError, SystemExit], ids=["returns", "raises", "exits"])
def test_what_a_handler_binds_ends_with_its_run(
    jobs: jobq.JobQueue, lines: list[Any], error: type[BaseException] | None
) -> None:
    """The next job of the same thread does not carry the user of the one before, however that ended."""
    seen = []

    @jobs.job(max_attempts=1)
    def bind(payload: Any) -> None:
        seen.append(structlog.contextvars.get_contextvars().get("user"))
        structlog.contextvars.bind_contextvars(user="ada")
        if error is not None:
            raise error

    ids = [made.id for made in jobs.enqueue_many([jobq.NewJob("bind"), jobq.NewJob("bind")])]
    with jobq.Runner(jobs, workers={"default": 1}):
        for job_id in ids:
            jobs.wait(job_id, timeout=30)

    assert seen == [None, None]
    ends = [line for line in lines if line["event"] in ("jobq.job.succeeded", "jobq.job.failed")]
    assert [line.get("user") for line in ends] == [None, None]


def test_the_line_of_an_attempt_says_how_it_went(jobs: jobq.JobQueue, clock: FakeClock, caplog: Any) -> None:
    """One line for each attempt, with how long the job waited and ran."""
    caplog.set_level("INFO", logger="jobq")

    @jobs.job
    def slow(payload: Any, job: jobq.RunningJob) -> None:
        job.cancel_token.wait(1.5)

    made = slow.enqueue()
    clock.advance(2)
    jobq.Runner(jobs).drain()
    (record,) = (record for record in caplog.records if record.getMessage().startswith("jobq.job.succeeded"))

    expected = {"job_id": made.id, "attempt": 1, "waited_ms": 2000, "ran_ms": 1500, "kind": "slow", "queue": "default"}
    assert expected.items() <= record.jobq.items()
