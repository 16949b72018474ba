"""Requeueing by hand: who may, what it resets, what it leaves, and the change log; rescheduling beside it."""

from typing import Any

import attrs
import pytest

from jobq.errors import JobNotFound, QueueNotFound
from jobq.model.effects import Verdict
from jobq.model.job import Actor, FailureClass, Job, JobState
from jobq.model.outcome import Failed, Postponed, Succeeded
from tests.store.bench import Workbench, ids

FATAL = Failed(error="ValueError: boom", reason="code", failure_class=FailureClass.UNRECOVERABLE, retryable=False)


def _failed(bench: Workbench, **options: Any) -> int:
    claim = bench.start(**options)
    assert bench.settle(claim, FATAL) is Verdict.FAILED
    return claim.id


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED, JobState.QUEUED])
def test_a_requeued_job_starts_over(bench: Workbench, state: JobState) -> None:
    """attempts 0, deferrals 0, due now, nothing left of the last end."""
    claim = bench.start()
    bench.settle(claim, Postponed(until=bench.now, reason="later"))
    (claim,) = bench.claim()
    if state is JobState.CANCELLED:
        bench.cancel(claim.id)
    bench.settle(claim, Failed(error="x", retryable=state is not JobState.FAILED))
    before = bench.get(claim.id)
    assert (before.state, before.deferrals) == (state, 1)
    bench.clock.advance(3)
    assert bench.requeue(claim.id).ids == (claim.id,)
    assert bench.get(claim.id) == attrs.evolve(
        before,
        state=JobState.QUEUED,
        attempts=0,
        deferrals=0,
        run_at=bench.now,
        last_error=None,
        failure_reason=None,
        failure_class=None,
        started_at=None,
        finished_at=None,
    )
    assert ids(bench.claim()) == [claim.id]


def test_running_succeeded_and_unknown_jobs_are_refused_and_the_others_go_on(bench: Workbench) -> None:
    """Each with its reason, in the order that was asked."""
    done = bench.start()
    bench.settle(done, Succeeded("1"))
    running, failed = bench.start(), _failed(bench)
    before = {job_id: bench.get(job_id) for job_id in (done.id, running.id)}
    answer = bench.requeue(running.id, 999, failed, done.id)
    assert answer.ids == (failed,)
    assert answer.refused == ((running.id, "running"), (999, "not found"), (done.id, "succeeded"))
    assert bench.store.get([done.id, running.id]) == before


def test_a_key_that_a_newer_job_holds_refuses_the_old_one(bench: Workbench) -> None:
    """The row is unchanged, the reason names the holder."""
    old = _failed(bench, dedupe_key="k")
    new, before = bench.enqueue(dedupe_key="k"), bench.get(old)
    assert bench.requeue(old).refused == ((old, f"dedupe key held by job {new}"),)
    assert bench.get(old) == before
    assert bench.store.changes(job_id=old, limit=9) == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_of_two_dead_jobs_of_one_key_the_first_is_requeued(bench: Workbench, dry_run: bool) -> None:
    """A dry run says so too."""
    first = _failed(bench, dedupe_key="k")
    second = _failed(bench, dedupe_key="k")
    answer = bench.requeue(first, second, dry_run=dry_run)
    assert answer.ids == (first,)
    assert answer.refused == ((second, f"dedupe key held by job {first}"),)


def test_a_dry_run_changes_nothing(bench: Workbench) -> None:
    """No row, no line of the log, no event, no side table."""
    job_id, told = _failed(bench), len(bench.feed)
    before = bench.get(job_id)
    assert bench.requeue(job_id, dry_run=True).ids == (job_id,)
    assert bench.get(job_id) == before
    assert bench.store.changes(job_id=None, limit=9) == []
    assert len(bench.feed) == told
    assert bench.enqueue() == job_id + 1


def test_an_id_given_twice_is_requeued_once(bench: Workbench) -> None:
    """One line in the log."""
    job_id = _failed(bench)
    assert bench.requeue(job_id, job_id).ids == (job_id,)
    assert len(bench.store.changes(job_id=job_id, limit=9)) == 1


def test_a_requeue_may_change_the_queue(bench: Workbench) -> None:
    """To one that exists; the job is found there."""
    bench.enqueue(queue="mail", delay=99)
    job_id = _failed(bench)
    assert bench.requeue(job_id, queue="mail").ids == (job_id,)
    assert bench.claim(queues=("default",)) == []
    assert ids(bench.claim(queues=("mail",))) == [job_id]
    assert bench.feed[-2].queue == "mail"


def test_an_unknown_queue_is_refused_and_nothing_is_written(bench: Workbench) -> None:
    """The error names it."""
    job_id = _failed(bench)
    before = bench.get(job_id)
    with pytest.raises(QueueNotFound):
        bench.requeue(job_id, queue="nowhere")
    assert bench.get(job_id) == before


def test_every_requeue_leaves_a_line_in_the_change_log(bench: Workbench) -> None:
    """When, who, what, from, to; newest first, for one job or for all."""
    one, two = _failed(bench), bench.enqueue(delay=60)
    bench.enqueue(queue="mail", delay=99)
    bench.requeue(one)
    bench.clock.advance(1)
    bench.store.requeue([two], queue="mail", actor=Actor.AGENT, dry_run=False)
    newest, oldest = bench.store.changes(job_id=None, limit=9)
    assert (newest.at, newest.actor, newest.what, newest.job_id) == (bench.now, Actor.AGENT, "requeued", two)
    assert newest.before == {"state": "queued", "queue": "default", "attempts": 0}
    assert newest.after == {"state": "queued", "queue": "mail", "attempts": 0}
    assert (oldest.actor, oldest.job_id) == (Actor.USER, one)
    assert oldest.before == {"state": "failed", "queue": "default", "attempts": 1}
    assert bench.store.changes(job_id=one, limit=9) == [oldest]
    assert bench.store.changes(job_id=None, limit=1) == [newest]


def test_the_history_goes_on_under_its_own_numbers(bench: Workbench) -> None:
    """Attempts start again after a requeue, run numbers never do."""
    job_id = bench.enqueue(max_attempts=2)
    for _ in range(2):
        for _ in range(2):
            bench.clock.advance(10)
            (claim,) = bench.claim("w7")
            bench.settle(claim, Failed(error="x", reason="code", failure_class=FailureClass.TRANSIENT))
        assert bench.get(job_id).state is JobState.FAILED
        assert bench.requeue(job_id).ids == (job_id,)
    runs = bench.store.history(job_id)
    assert [(run.number, run.attempt) for run in runs] == [(1, 1), (2, 2), (3, 1), (4, 2)]
    assert {(run.worker, run.error, run.reason, run.failure_class) for run in runs} == {
        ("w7", "x", "code", FailureClass.TRANSIENT)
    }
    assert runs[0].started_at == runs[0].ended_at < runs[1].ended_at


def _unchanged_but(before: Job, after: Job, **changes: Any) -> bool:
    return attrs.evolve(before, **changes) == after


def test_a_queued_job_can_be_rescheduled(bench: Workbench) -> None:
    """Its due time as an instant or from now, its priority; nothing else moves."""
    job_id = bench.enqueue()
    before = bench.get(job_id)
    assert bench.store.reschedule(job_id, run_at=bench.after(60), delay=None, priority=None) is True
    assert _unchanged_but(before, bench.get(job_id), run_at=bench.after(60))
    bench.clock.advance(5)
    assert bench.store.reschedule(job_id, run_at=None, delay=10, priority=-7) is True
    assert _unchanged_but(before, bench.get(job_id), run_at=bench.after(10), priority=-7)
    assert bench.store.reschedule(job_id, run_at=None, delay=-10, priority=None) is True
    assert _unchanged_but(before, bench.get(job_id), run_at=bench.now, priority=-7)


def test_a_running_job_cannot_be_rescheduled(bench: Workbench) -> None:
    """False, and the row stays as it is."""
    claim = bench.start()
    before = bench.get(claim.id)
    assert bench.store.reschedule(claim.id, run_at=None, delay=9, priority=9) is False
    assert bench.get(claim.id) == before


def test_rescheduling_an_unknown_job_is_an_error(bench: Workbench) -> None:
    """It names the id."""
    with pytest.raises(JobNotFound) as caught:
        bench.store.reschedule(41, run_at=None, delay=1, priority=None)
    assert caught.value.job_id == 41
