"""Pruning at the store: what may go, what stays and why, and that each step is bounded."""

from collections.abc import Callable
from datetime import datetime

import pytest

from jobq.model.job import JobState
from jobq.model.outcome import Failed, Succeeded
from jobq.model.pruning import Place, Prunable
from tests.store.bench import Workbench, draft

ENDED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


def end(bench: Workbench, state: JobState = JobState.SUCCEEDED, *, result: str = "1", **options: object) -> int:
    """Make a job that has just ended."""
    if state is JobState.CANCELLED:
        job_id = bench.enqueue(**options)
        bench.cancel(job_id)
        return job_id
    claim = bench.start(**options)
    bench.settle(claim, Succeeded(result) if state is JobState.SUCCEEDED else Failed(error="x", retryable=False))
    assert bench.state(claim.id) is state
    return claim.id


def pages(bench: Workbench, state: JobState = JobState.SUCCEEDED, before: datetime | None = None) -> list[Prunable]:
    """Walk to the end."""
    found: list[Prunable] = []
    after: Place | None = None
    while True:
        found.append(bench.store.prunable(state, ended_before=before or bench.now, after=after))
        after = found[-1].after
        if after is None:
            return found


def prunable(bench: Workbench, state: JobState = JobState.SUCCEEDED, before: datetime | None = None) -> list[int]:
    """Return the ids of all pages in order."""
    return [job_id for page in pages(bench, state, before) for ids in page.portions for job_id in ids]


@pytest.mark.parametrize("state", ENDED)
def test_only_jobs_of_the_state_and_age_are_found(bench: Workbench, state: JobState) -> None:
    """The oldest end first; one that ended at the very time belongs to them, one a millisecond later does not."""
    first, second = end(bench, state), end(bench, state)
    for other in ENDED:
        if other is not state:
            end(bench, other)
    before = bench.now
    bench.clock.advance(0.001)
    end(bench, state)
    bench.start()
    bench.enqueue()

    assert prunable(bench, state, before) == [first, second]
    assert bench.store.count_prunable(state, ended_before=before) == (2, 0)


def test_pages_go_on_where_the_last_one_ended(bench: Workbench) -> None:
    """Also over many jobs that ended at one instant, and none comes twice."""
    ids = [placed.id for placed in bench.store.enqueue([draft() for _ in range(2_300)])]
    bench.store.cancel(ids)

    found = pages(bench, JobState.CANCELLED)

    assert len(found) == 3
    assert prunable(bench, JobState.CANCELLED) == ids


def test_portions_are_bounded(bench: Workbench) -> None:
    """At most 50 jobs, fewer of those with large texts or many children."""
    large = [end(bench, result='"' + "x" * 100_000 + '"') for _ in range(8)]
    parent = end(bench)
    children = [placed.id for placed in bench.store.enqueue([draft(parent_id=parent) for _ in range(190)])]
    bench.store.cancel(children)
    bench.store.cancel(plain := [placed.id for placed in bench.store.enqueue([draft() for _ in range(300)])])

    (page,) = pages(bench)
    assert [len(portion) for portion in page.portions] == [3, 3, 2, 1]
    assert [job_id for portion in page.portions for job_id in portion] == [*large, parent]
    (page,) = pages(bench, JobState.CANCELLED)
    assert [len(portion) for portion in page.portions] == [50] * 9 + [40]
    assert {job_id for portion in page.portions for job_id in portion} == {*children, *plain}


def test_removing_takes_what_is_named_and_nothing_else(bench: Workbench) -> None:
    """The answer counts them; unknown ids are nobody."""
    gone, stays = end(bench), end(bench)

    assert bench.store.prune([gone, 999], state=JobState.SUCCEEDED, ended_before=bench.now) == 1
    assert set(bench.store.states([gone, stays])) == {stays}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda bench, job_id: bench.requeue(job_id), id="requeued"),
        pytest.param(lambda bench, job_id: (bench.requeue(job_id), bench.claim()), id="running again"),
        pytest.param(lambda bench, job_id: bench.enqueue(parent_id=job_id), id="a child was enqueued"),
    ],
)
def test_a_job_that_changed_since_it_was_found_stays(
    bench: Workbench, elsewhere: Workbench, change: Callable[[Workbench, int], object]
) -> None:
    """The page was read without the lock; under it each job is looked at again."""
    job_id = end(bench, JobState.FAILED)
    (page,) = pages(bench, JobState.FAILED)
    assert page.portions == [[job_id]]

    change(elsewhere, job_id)

    assert bench.store.prune([job_id], state=JobState.FAILED, ended_before=bench.now) == 0
    assert job_id in bench.store.states([job_id])


def test_a_job_that_ended_again_later_stays(bench: Workbench) -> None:
    """It is as old as its last end."""
    job_id, before = end(bench, JobState.FAILED), bench.now
    bench.clock.advance(10)
    bench.requeue(job_id)
    (claim,) = bench.claim()
    bench.settle(claim, Failed(error="x", retryable=False))

    assert bench.store.prune([job_id], state=JobState.FAILED, ended_before=before) == 0


def test_a_parent_waits_for_its_children(bench: Workbench) -> None:
    """While one has not ended it is kept, and counted as such; then it goes, and the others forget it."""
    parent = end(bench)
    done, open_ = end(bench, JobState.FAILED, parent_id=parent), bench.enqueue(parent_id=parent)

    assert [(page.portions, page.kept) for page in pages(bench)] == [([], 1)]
    assert bench.store.count_prunable(JobState.SUCCEEDED, ended_before=bench.now) == (0, 1)
    assert bench.store.prune([parent], state=JobState.SUCCEEDED, ended_before=bench.now) == 0

    bench.cancel(open_)
    assert prunable(bench) == [parent]
    assert bench.store.prune([parent], state=JobState.SUCCEEDED, ended_before=bench.now) == 1
    assert [bench.get(child).parent_id for child in (done, open_)] == [None, None]


def test_a_parent_of_very_many_children_waits_until_they_are_fewer(bench: Workbench) -> None:
    """Each child that forgets its parent is a write; a transaction holds no more than 500 of them."""
    parent = end(bench)
    children = [placed.id for placed in bench.store.enqueue([draft(parent_id=parent) for _ in range(501)])]
    bench.store.cancel(children)

    assert prunable(bench) == []
    assert bench.store.count_prunable(JobState.SUCCEEDED, ended_before=bench.now) == (0, 1)

    bench.store.prune(children[:1], state=JobState.CANCELLED, ended_before=bench.now)
    assert prunable(bench) == [parent]


def test_a_chain_of_jobs_that_follow_each_other_does_not_stay_for_ever(bench: Workbench) -> None:
    """Only the last parent waits for its child."""
    chain = [end(bench)]
    for _ in range(4):
        chain.append(end(bench, parent_id=chain[-1]))
    bench.enqueue(parent_id=chain[-1])

    assert prunable(bench) == chain[:-1]


def test_ids_are_not_given_out_again(bench: Workbench) -> None:
    """Not even the highest."""
    job_id = end(bench)
    bench.store.prune([job_id], state=JobState.SUCCEEDED, ended_before=bench.now)

    assert bench.enqueue() == job_id + 1


def test_old_lines_of_the_change_log_go_in_pieces(bench: Workbench) -> None:
    """The younger ones stay; a line outlives its job."""
    job_id = end(bench, JobState.FAILED)
    for _ in range(3):
        bench.requeue(job_id)
    old = bench.now
    bench.clock.advance(5)
    bench.requeue(job_id)
    bench.cancel(job_id)
    bench.store.prune([job_id], state=JobState.CANCELLED, ended_before=bench.now)

    assert len(bench.store.changes(job_id=job_id, limit=9)) == 4
    assert bench.store.prune_changes(before=old) == 3
    assert bench.store.prune_changes(before=old) == 0
    assert [line.at for line in bench.store.changes(job_id=None, limit=9)] == [bench.now]
