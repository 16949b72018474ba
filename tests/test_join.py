"""Enqueues with ``join=False`` inside a transaction: no part of it, carried out when it has ended."""

import pytest

import jobq
from tests.aborting import Abort, aborted, failing
from tests.conftest import ErrorLog


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "rolled back"])
def test_what_does_not_join_is_carried_out_at_the_end(
    jobs: jobq.JobQueue, events: list[jobq.JobStateChanged], fails: bool
) -> None:
    """However the block ends, and after it; its answer names no job, an inner rollback does not undo it."""
    try:
        with jobs.transaction():
            jobs.enqueue("joined")
            try:
                with jobs.transaction():
                    apart = jobs.enqueue("apart", {"n": 1}, join=False)
                    raise LookupError
            except LookupError:
                pass
            assert (apart.id, apart.created, apart.job) == (None, None, None)
            assert len(jobs.find()) == 1
            if fails:
                raise ValueError
    except ValueError:
        pass

    expected = ["apart"] if fails else ["joined", "apart"]
    assert [event.kind for event in events] == expected
    assert jobs.find(kind="apart")[0].state == "queued"


def test_outside_a_block_join_false_is_a_plain_enqueue(jobs: jobq.JobQueue) -> None:
    """It has an id at once."""
    assert jobs.get(jobs.enqueue("a", join=False).id).kind == "a"


def test_what_does_not_join_is_checked_at_the_call(jobs: jobq.JobQueue) -> None:
    """Its arguments, not at the end."""
    with jobs.transaction(), pytest.raises(jobq.ArgumentError):
        jobs.enqueue("a", join=False, delay=float("nan"))


def test_a_failure_at_the_end_is_not_lost(jobs: jobq.JobQueue, errors: ErrorLog) -> None:
    """It is raised after the block; where the block failed, that error comes out with a note."""
    jobs.enqueue("a", dedupe_key="k")
    with failing(jobs.transaction(), jobq.DedupeConflict):
        jobs.enqueue("b", dedupe_key="k", join=False)
        jobs.enqueue("c", join=False)
    reason = Abort()
    with aborted(jobs.transaction(), reason):
        jobs.enqueue("b", dedupe_key="k", join=False)

    assert "DedupeConflict" in reason.__notes__[-1]
    assert errors.take() == ["jobq.enqueue.failed"]
    assert [job.kind for job in jobs.find()] == ["c", "a"]


@pytest.mark.parametrize("chunk", [None, 2], ids=["one transaction", "chunks"])
def test_many_that_do_not_join_are_carried_out_at_the_end(
    jobs: jobq.JobQueue, events: list[jobq.JobStateChanged], chunk: int | None
) -> None:
    """All of them, in order, though the block was rolled back; there are as many answers, which name no job."""
    with aborted(jobs.transaction()):
        jobs.enqueue("joined")
        items = (jobq.NewJob("apart", {"n": n}) for n in range(3))
        answers = jobs.enqueue_many(items, chunk=chunk, join=False)
        assert [(one.id, one.created, one.job) for one in answers] == [(None, None, None)] * 3
        assert jobs.find(kind="apart") == []

    assert [jobs.get(event.job_id).payload for event in events] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_many_outside_a_block_are_enqueued_at_once(jobs: jobq.JobQueue) -> None:
    """With ``join=False`` as without."""
    answers = jobs.enqueue_many([jobq.NewJob("a"), jobq.NewJob("b")], join=False)

    assert [jobs.get(one.id).kind for one in answers] == ["a", "b"]


def test_many_that_do_not_join_are_checked_at_the_call(jobs: jobq.JobQueue) -> None:
    """Each of them, before any is kept."""
    with jobs.transaction(), pytest.raises(jobq.ArgumentError) as caught:
        jobs.enqueue_many([jobq.NewJob("a"), jobq.NewJob("b", delay=float("nan"))], chunk=1, join=False)

    assert "items[1]" in caught.value.__notes__[-1]
    assert jobs.find() == []


def test_a_chunk_refused_at_the_end_leaves_those_before_it(jobs: jobq.JobQueue) -> None:
    """The error comes out of the block; the chunk is not written, nor is one behind it."""
    jobs.enqueue("a", dedupe_key="k")
    items = [jobq.NewJob("b"), jobq.NewJob("c"), jobq.NewJob("d", dedupe_key="k"), jobq.NewJob("e"), jobq.NewJob("f")]
    with failing(jobs.transaction(), jobq.DedupeConflict):
        jobs.enqueue_many(items, chunk=2, join=False)

    assert [job.kind for job in jobs.find()] == ["c", "b", "a"]
