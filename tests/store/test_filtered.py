"""Requeue and cancel by filter: what fits is found by id order, and looked at anew when its turn comes."""

from typing import Any

import pytest

from jobq.model.effects import Verdict
from jobq.model.filter import Filter
from jobq.model.job import Actor, FailureClass, JobState
from jobq.model.outcome import Failed
from jobq.store.base import QueueRow
from tests.store.bench import Workbench, ids


def fail(bench: Workbench, reason: str = "bounced", **options: Any) -> int:
    """Make a job that failed for good and return its id."""
    claim = bench.start(**options)
    outcome = Failed(error="x", reason=reason, failure_class=FailureClass.UNRECOVERABLE, retryable=False)
    assert bench.settle(claim, outcome) is Verdict.FAILED
    return claim.id


def matching(bench: Workbench, limit: int | None = None, **fields: Any) -> list[int]:
    """Return the ids that fit."""
    return bench.store.matching(Filter(**fields), limit=limit)


def test_ids_that_match_are_those_of_the_listing(bench: Workbench) -> None:
    """Oldest first; with a limit the newest ones, as a listing has them."""
    made = [fail(bench, subject="s"), bench.enqueue("b"), fail(bench, "timeout"), fail(bench, subject="s")]
    assert matching(bench, state=JobState.FAILED) == [made[0], made[2], made[3]]
    assert matching(bench, state=JobState.FAILED, limit=2) == [made[2], made[3]]
    assert matching(bench, failure_reason="timeout") == [made[2]]
    assert matching(bench, subject="s", state=JobState.QUEUED) == []
    assert matching(bench, limit=0) == []


def test_age_counts_from_the_end_or_from_the_making(bench: Workbench) -> None:
    """Exactly so old is older; what has not ended is as old as it is."""
    start = bench.now
    old, waiting = bench.start().id, bench.enqueue("b")
    bench.clock.advance(60)
    new = fail(bench, kind="c")
    assert matching(bench, older_than=start) == [old, waiting]
    assert matching(bench, newer_than=start) == [new]
    assert matching(bench, older_than=bench.now) == [old, waiting, new]
    assert [info.id for info in bench.store.find(Filter(newer_than=start), limit=None)] == [new]


def test_requeue_leaves_out_what_does_not_fit_any_more(bench: Workbench) -> None:
    """Between the look and its turn somebody else requeued one: it is not requeued twice, and not refused."""
    one, two = fail(bench), fail(bench)
    bench.requeue(one)
    wanted = Filter(state=JobState.FAILED)
    answer = bench.store.requeue([one, two], wanted=wanted, queue=None, actor=Actor.USER, dry_run=False)
    assert (answer.ids, answer.refused) == ((two,), ())
    assert len(bench.store.changes(job_id=one, limit=9)) == 1


def test_cancel_leaves_out_what_does_not_fit_any_more(bench: Workbench) -> None:
    """A job that was queued at the look and runs now is not asked to stop."""
    running, waiting = bench.start(), bench.enqueue()
    wanted = Filter(state=JobState.QUEUED)
    assert bench.store.cancel([running.id, waiting], wanted=wanted) == {waiting: Verdict.CANCELLED}
    assert bench.get(running.id).cancel_requested_at is None


@pytest.mark.parametrize("wanted", [None, Filter(state=JobState.FAILED)])
def test_a_dry_run_writes_nothing_and_takes_no_lock(
    bench: Workbench, elsewhere: Workbench, wanted: Filter | None
) -> None:
    """It answers while another process holds the write lock, and no commit is seen by anybody."""
    first, second = fail(bench, dedupe_key="k"), fail(bench, dedupe_key="k")
    seen, told = elsewhere.store.data_version(), len(bench.feed)
    with elsewhere.store.transaction(on_commit=lambda: None, on_blocked=lambda: None):
        dry = bench.store.requeue([first, second], wanted=wanted, queue=None, actor=Actor.USER, dry_run=True)
        assert bench.store.cancel([first], wanted=wanted, dry_run=True) == {first: None}
    assert (dry.ids, dry.refused) == ((first,), ((second, f"dedupe key held by job {first}"),))
    assert (elsewhere.store.data_version(), len(bench.feed)) == (seen, told)
    assert bench.state(first) is JobState.FAILED
    assert bench.store.changes(job_id=None, limit=9) == []
    wet = bench.store.requeue([first, second], wanted=wanted, queue=None, actor=Actor.USER, dry_run=False)
    assert wet == dry


def test_a_queued_job_changes_its_queue_by_requeue(bench: Workbench) -> None:
    """Nothing else moves it; the change log says from where to where."""
    bench.register("mailer", queue="mail")
    job_id = bench.enqueue(run_at=bench.after(60))
    bench.requeue(job_id, queue="mail")
    assert ids(bench.claim(queues=("default",))) == []
    assert ids(bench.claim(queues=("mail",))) == [job_id]
    (line,) = bench.store.changes(job_id=job_id, limit=9)
    assert (line.what, line.before["queue"], line.after["queue"]) == ("requeued", "default", "mail")
    assert (line.actor, line.at, line.subject) == (Actor.USER, bench.now, None)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_queue_that_does_not_accept_the_kind_is_no_place_to_requeue_to(bench: Workbench, dry_run: bool) -> None:
    """The others go on; one that is in such a queue already may run again there."""
    bench.store.register([], [QueueRow("mail", configured=True, kinds=("b",))], [])
    stays, goes = fail(bench), fail(bench, kind="b")
    answer = bench.requeue(stays, goes, queue="mail", dry_run=dry_run)
    assert (answer.ids, answer.refused) == ((goes,), ((stays, "the queue mail does not accept the kind a"),))
    assert bench.requeue(stays).ids == (stays,)


def test_a_filter_is_about_the_parents_and_children_follow(bench: Workbench) -> None:
    """What is below them is cancelled whether it fits or not."""
    parent = bench.start(kind="batch").id
    part, other = bench.enqueue(parent_id=parent), bench.enqueue()
    wanted = Filter(kind="batch")
    for dry_run in (True, False):
        verdicts = bench.store.cancel([parent, other], wanted=wanted, children=True, dry_run=dry_run)
        assert verdicts == {parent: Verdict.REQUESTED, part: Verdict.CANCELLED}
    assert bench.state(other) is JobState.QUEUED


def test_the_change_log_outlives_the_job_and_is_read_newest_first(bench: Workbench) -> None:
    """All lines, or those of one job."""
    one, two = fail(bench), fail(bench)
    bench.requeue(one, two)
    bench.requeue(one)
    assert [line.job_id for line in bench.store.changes(job_id=None, limit=2)] == [one, two]
    assert [line.before["state"] for line in bench.store.changes(job_id=one, limit=9)] == ["queued", "failed"]
