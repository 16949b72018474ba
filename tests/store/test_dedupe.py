"""One queued or running job for each dedupe key, through everything that can happen to it."""

from collections.abc import Callable

import pytest

from jobq.errors import DedupeConflict, JobNotFound, RetiredKind
from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.outcome import Failed, Postponed, Released, Succeeded, Voided
from jobq.store.base import Filter
from tests.store.bench import LEASE, Workbench, draft


def _retry(bench: Workbench) -> None:
    assert bench.settle(bench.claim()[0], Failed(error="x")) is Verdict.RETRIED


def _defer(bench: Workbench) -> None:
    bench.settle(bench.claim()[0], Postponed(until=bench.after(60)))


def _reclaim(bench: Workbench) -> None:
    bench.claim()
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) == 1


def _requeue(bench: Workbench) -> None:
    (claim,) = bench.claim()
    bench.settle(claim, Failed(error="x", retryable=False))
    assert bench.requeue(claim.id).ids == (claim.id,)


STILL_HELD: dict[str, Callable[[Workbench], object]] = {
    "queued": lambda bench: None,
    "running": lambda bench: bench.claim(),
    "cancel-requested": lambda bench: bench.cancel(bench.claim()[0].id),
    "backing-off": _retry,
    "deferred": _defer,
    "released": lambda bench: bench.settle(bench.claim()[0], Released()),
    "voided": lambda bench: bench.settle(bench.claim()[0], Voided()),
    "reclaimed": _reclaim,
    "requeued": _requeue,
}
FREED: dict[str, Callable[[Workbench, int], object]] = {
    "succeeded": lambda bench, _: bench.settle(bench.claim()[0], Succeeded()),
    "failed": lambda bench, _: bench.settle(bench.claim()[0], Failed(error="x", retryable=False)),
    "cancelled": lambda bench, job_id: bench.cancel(job_id),
}


@pytest.mark.parametrize("stage", STILL_HELD)
def test_a_key_is_held_until_its_job_ends(bench: Workbench, elsewhere: Workbench, stage: str) -> None:
    """A second enqueue answers with the first job, as it now is, and announces nothing."""
    first = bench.enqueue(dedupe_key="k")
    STILL_HELD[stage](bench)
    seen = elsewhere.get(first)
    second = elsewhere.place(dedupe_key="k", payload='"other"')
    assert (second.id, second.created, second.load()) == (first, False, seen)
    assert elsewhere.feed == []
    assert elsewhere.get(first) == seen


@pytest.mark.parametrize("end", FREED)
def test_a_key_is_free_when_its_job_has_ended(bench: Workbench, end: str) -> None:
    """The next enqueue makes a new job."""
    first = bench.enqueue(dedupe_key="k")
    FREED[end](bench, first)
    second = bench.place(dedupe_key="k")
    assert second.created
    assert second.id > first


def test_a_key_is_held_by_one_queue_for_all(bench: Workbench) -> None:
    """It is global to the database."""
    first = bench.enqueue(dedupe_key="k", queue="mail")
    assert bench.place(dedupe_key="k", queue="default").id == first


@pytest.mark.parametrize("other", ["K", "k ", " k", "ｋ"])
def test_keys_are_compared_exactly(bench: Workbench, other: str) -> None:
    """Nothing is folded or trimmed."""
    bench.enqueue(dedupe_key="k")
    assert bench.place(dedupe_key=other).created


def test_a_key_of_another_kind_is_a_conflict_and_nothing_is_written(bench: Workbench) -> None:
    """Not even the drafts in front of it, nor the queue that they would have made."""
    first = bench.enqueue("a", dedupe_key="k")
    told = len(bench.feed)
    with pytest.raises(DedupeConflict) as caught:
        bench.store.enqueue([draft("b"), draft("b", dedupe_key="new", queue="mail"), draft("b", dedupe_key="k")])
    assert caught.value.holder == first
    assert [job.id for job in bench.store.find(Filter(), limit=None)] == [first]
    assert [queue.name for queue in bench.store.queues()] == ["default"]
    assert len(bench.feed) == told
    assert bench.place("b", dedupe_key="new").created


def test_a_conflict_within_one_call_writes_nothing(bench: Workbench) -> None:
    """Two kinds, one key, one batch."""
    with pytest.raises(DedupeConflict):
        bench.store.enqueue([draft("a", dedupe_key="k"), draft("b", dedupe_key="k")])
    assert bench.store.count(Filter())[JobState.QUEUED] == 0


def test_a_batch_answers_in_its_own_order(bench: Workbench) -> None:
    """Keys are honoured inside the batch; ids rise in the order of the drafts."""
    held = bench.enqueue(dedupe_key="held")
    keys = [None, "x", None, None, "held", "x", "y", None]
    placed = bench.store.enqueue([draft(dedupe_key=key, payload=str(n)) for n, key in enumerate(keys)])
    first = held + 1
    assert [(made.id, made.created) for made in placed] == [
        (first, True),
        (first + 1, True),
        (first + 2, True),
        (first + 3, True),
        (held, False),
        (first + 1, False),
        (first + 4, True),
        (first + 5, True),
    ]
    assert [made.load().payload for made in placed] == [0, 1, 2, 3, {}, 1, 6, 7]


def test_a_refused_batch_leaves_no_gap_in_what_follows(bench: Workbench) -> None:
    """A retired kind or an unknown parent anywhere refuses all of it."""
    bench.store.register([], [], ["old"])
    for bad, error in ((draft("old"), RetiredKind), (draft("a", parent_id=77), JobNotFound)):
        with pytest.raises(error):
            bench.store.enqueue([draft("a"), draft("a", dedupe_key="k"), bad])
    assert bench.store.find(Filter(), limit=None) == []
    assert bench.feed == []
    assert bench.place(dedupe_key="k").created


def test_an_empty_batch_is_no_work(bench: Workbench) -> None:
    """No jobs, no answers."""
    assert bench.store.enqueue([]) == []


def test_a_requeue_of_a_queued_holder_keeps_its_key(bench: Workbench) -> None:
    """A job does not stand in its own way."""
    first = bench.enqueue(dedupe_key="k", delay=60)
    assert bench.requeue(first).ids == (first,)
    assert bench.place(dedupe_key="k").id == first
