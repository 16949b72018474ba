"""A job and what is below it: its parts, their parts, and so on."""

from contextlib import closing

import apsw
import attrs
import pytest

import jobq
from jobq import JobState


@attrs.frozen
class Family:
    """Three generations: a root that has succeeded, two parts of it, and parts of these."""

    root: int
    done: int
    running: int
    below_done: int
    below_running: int
    stranger: int


def by_hand(jobs: jobq.JobQueue, sql: str) -> None:
    """Do to the file what no verb does."""
    with closing(apsw.Connection(jobs.path)) as connection:
        connection.execute(sql)


@pytest.fixture
def family(jobs: jobq.JobQueue) -> Family:
    """A family in which only the youngest are queued and one part runs, and a job that does not belong to it."""
    root = jobs.enqueue("root").id
    jobs.complete(jobs.lease()[0])
    done = jobs.enqueue("part", parent_id=root).id
    jobs.complete(jobs.lease()[0])
    running = jobs.enqueue("part", parent_id=root).id
    jobs.lease()
    below_done = jobs.enqueue("leaf", parent_id=done).id
    below_running = jobs.enqueue("leaf", parent_id=running).id
    return Family(root, done, running, below_done, below_running, jobs.enqueue("stranger").id)


def test_children_are_the_parts_of_a_job_oldest_first(jobs: jobq.JobQueue, family: Family) -> None:
    """Not the parts of its parts; a job that was not split has none."""
    assert [job.id for job in jobs.children(family.root)] == [family.done, family.running]
    assert jobs.children(family.stranger) == []


def test_family_progress_counts_everything_below(jobs: jobq.JobQueue, family: Family) -> None:
    """Every generation, by state, without the job itself; every state is a key."""
    counts = jobs.family_progress(family.root)

    assert counts == {**dict.fromkeys(JobState, 0), "queued": 2, "running": 1, "succeeded": 1}
    assert jobs.family_progress(family.stranger) == dict.fromkeys(JobState, 0)


@pytest.mark.parametrize("verb", ["children", "family_progress"])
def test_the_family_of_nobody_is_not_found(jobs: jobq.JobQueue, verb: str) -> None:
    """As everywhere; an empty answer would say that it has no parts."""
    with pytest.raises(jobq.JobNotFound):
        getattr(jobs, verb)(7)


def test_cancel_with_children_reaches_every_generation(
    jobs: jobq.JobQueue, family: Family, events: list[jobq.JobStateChanged]
) -> None:
    """Below parts that have ended too; the queued are cancelled, the running asked, a stranger goes on."""
    reached = jobs.cancel(family.root, children=True)

    assert sorted(reached) == [family.running, family.below_done, family.below_running]
    assert [jobs.get(id_).state for id_ in (family.below_done, family.below_running)] == ["cancelled", "cancelled"]
    assert jobs.get(family.running).cancel_requested_at is not None
    assert jobs.get(family.stranger).state == "queued"
    assert {event.job_id for event in events if event.state == "cancelled"} == {family.below_done, family.below_running}


def test_cancel_with_children_takes_the_job_itself_first(jobs: jobq.JobQueue, family: Family) -> None:
    """And names nobody twice, though one that was named is a part of another."""
    reached = jobs.cancel([family.running, family.below_running], children=True)

    assert reached == (family.running, family.below_running)


def test_cancel_without_children_leaves_them_alone(jobs: jobq.JobQueue, family: Family) -> None:
    """The answer for a bare id stays True or False."""
    assert jobs.cancel(family.running) is True
    assert jobs.cancel(family.root) is False
    assert jobs.family_progress(family.root)["cancelled"] == 0


def test_a_dry_run_with_children_changes_nothing(jobs: jobq.JobQueue, family: Family) -> None:
    """It answers the same."""
    told = jobs.cancel(family.root, children=True, dry_run=True)

    assert jobs.family_progress(family.root)["cancelled"] == 0
    assert jobs.cancel(family.root, children=True) == told


def test_cancel_with_children_of_nobody_is_not_found(jobs: jobq.JobQueue, family: Family) -> None:
    """A job with nothing left to cancel answers with no id."""
    with pytest.raises(jobq.JobNotFound):
        jobs.cancel(99, children=True)
    jobs.cancel(family.stranger)

    assert jobs.cancel(family.stranger, children=True) == ()


def test_cancel_with_children_is_one_transaction(jobs: jobq.JobQueue, family: Family) -> None:
    """A part that cannot be written leaves the others as they were."""
    by_hand(jobs, f"""
        CREATE TRIGGER stuck BEFORE UPDATE ON jobq_job WHEN old.id = {family.below_running}
        BEGIN SELECT RAISE(ABORT, 'stuck'); END
    """)

    with pytest.raises(apsw.ConstraintError):
        jobs.cancel(family.root, children=True)

    assert jobs.family_progress(family.root)["cancelled"] == 0


def test_a_running_part_is_asked_at_once(jobs: jobq.JobQueue) -> None:
    """In this process through its token, while its handler runs."""
    asked: list[bool] = []

    @jobs.job
    def part(payload: object, job: jobq.RunningJob) -> None:
        assert job.parent_id is not None
        jobs.cancel(job.parent_id, children=True)
        asked.append(job.cancel_token.requested)

    part.enqueue(parent_id=jobs.enqueue("root").id)
    jobq.Runner(jobs).drain()

    assert asked == [True]


def test_parents_that_were_tied_into_a_ring_by_hand_end_the_walk(jobs: jobq.JobQueue, family: Family) -> None:
    """Each job is met once, the one that was asked about among them."""
    by_hand(jobs, f"UPDATE jobq_job SET parent_id = {family.below_done} WHERE id = {family.root}")

    assert sum(jobs.family_progress(family.root).values()) == 5
    assert len(jobs.cancel(family.done, children=True)) == 3
