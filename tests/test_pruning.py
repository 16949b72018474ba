"""``jobs.prune()`` and the retention of runners."""

from collections.abc import Callable
from datetime import timedelta

import attrs
import pytest

import jobq
from jobq.model.events import JobStateChanged
from jobq.testing import FakeClock
from tests.conftest import ErrorLog

Again = Callable[..., jobq.JobQueue]


def end(jobs: jobq.JobQueue, state: str = "succeeded", **options: object) -> int:
    """Make a job that has just ended, and has had a failed run before."""
    made = jobs.enqueue("k", {"a": "x" * 5_000}, priority="user", **options)  # type: ignore[arg-type]
    if state == "cancelled":
        jobs.cancel(made.id)
        return made.id
    (lease,) = jobs.lease("k", worker="w")
    if state == "succeeded":
        jobs.complete(lease, "x" * 5_000)
    else:
        jobs.fail(lease, "boom", permanent=True)
    return made.id


def rows(jobs: jobq.JobQueue, table: str) -> int:
    """Count the rows of a table."""
    with jobs.read() as snapshot:
        return int(snapshot.execute(f"SELECT count(*) FROM {table}")[0][0])


def test_b56_prune_of_age_zero_takes_ended_jobs_and_nothing_else(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Every status, a running child of a finished parent; then enqueue."""
    succeeded, failed, cancelled = end(jobs), end(jobs, "failed"), end(jobs, "cancelled")
    parent = end(jobs)
    child = jobs.enqueue("child", parent_id=parent)
    (lease,) = jobs.lease("child", worker="w")
    delayed = jobs.enqueue("k", delay="1h").id
    queued = jobs.enqueue("other").id

    gone = jobs.prune(older_than=0)

    assert gone == jobq.Pruned(counts={"succeeded": 1, "failed": 1, "cancelled": 1}, kept=1)
    assert sorted(job.id for job in jobs.find()) == sorted([parent, child.id, delayed, queued])
    assert jobs.get(child.id).parent_id == parent
    assert not jobs.extend(lease).cancel_requested
    for job_id in (succeeded, failed, cancelled):
        with pytest.raises(jobq.JobNotFound):
            jobs.get(job_id)
    # The side tables and the history went along.
    assert (rows(jobs, "jobq_payload"), rows(jobs, "jobq_result"), rows(jobs, "jobq_run")) == (1, 1, 0)

    highest = max(job.id for job in jobs.find())
    jobs.cancel(queued)
    jobs.prune(older_than=0)
    assert jobs.enqueue("other").id == highest + 1


def test_b56_job_that_ends_during_prune_is_too_young(open_again: Again, clock: FakeClock) -> None:
    """It ended after the sweep began, although before the sweep came to its state."""
    jobs = open_again()
    end(jobs, "succeeded")
    jobs.enqueue("late")
    (lease,) = jobs.lease("late", worker="w")

    def meanwhile(done: int) -> None:
        clock.advance("1s")
        if done == 1:
            jobs.fail(lease, "late", permanent=True)

    gone = jobs.prune(older_than=0, progress=meanwhile)

    assert gone.total == 1
    assert [(job.kind, job.state) for job in jobs.find()] == [("late", "failed")]


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_state_and_age_narrow_it(jobs: jobq.JobQueue, clock: FakeClock, state: str) -> None:
    """Only that state, and only ends at least so long ago."""
    old = {one: end(jobs, one) for one in ("succeeded", "failed", "cancelled")}
    clock.advance("1h")
    young = end(jobs, state)
    clock.advance("30m")

    assert jobs.prune(state=state, older_than="1h30m0.001s").total == 0
    gone = jobs.prune(state=jobq.JobState(state), older_than=timedelta(minutes=90))

    assert gone.counts == {state: 1}
    assert {job.id for job in jobs.find()} == {young, *old.values()} - {old[state]}


def test_without_an_age_the_retention_decides(open_again: Again, clock: FakeClock) -> None:
    """Succeeded and cancelled after a week, failed after 30 days; the change log after 90."""
    jobs = open_again()
    end(jobs), end(jobs, "cancelled")
    failed = end(jobs, "failed")
    jobs.requeue(failed)
    (lease,) = jobs.lease("k", worker="w")
    jobs.fail(lease, "x", permanent=True)

    clock.advance(timedelta(days=7, milliseconds=-1))
    assert jobs.prune().total == 0
    clock.advance(0.001)
    assert jobs.prune().counts == {"succeeded": 1, "failed": 0, "cancelled": 1}
    clock.advance("23d")
    assert jobs.prune().counts == {"succeeded": 0, "failed": 1, "cancelled": 0}
    assert len(jobs.changes()) == 1
    clock.advance("60d")
    assert (jobs.prune().total, jobs.changes()) == (0, [])


def test_none_keeps(open_again: Again, clock: FakeClock) -> None:
    """For ever, also where the state is named without an age; an age given by hand wins."""
    jobs = open_again(config=jobq.Config(retention={"succeeded": None, "changes": None}))
    end(jobs)
    clock.advance("3000d")

    assert jobs.prune().total == 0
    assert jobs.prune(state="succeeded").counts == {"succeeded": 0}
    assert jobs.prune(older_than="2000d").total == 1


def test_dry_run_counts_and_removes_nothing(jobs: jobq.JobQueue) -> None:
    """What it says is what then goes."""
    parent = end(jobs)
    jobs.enqueue("k", parent_id=parent, delay="1h")
    end(jobs), end(jobs, "failed")
    before = jobs.find()

    said = jobs.prune(older_than=0, dry_run=True)

    assert jobs.find() == before
    assert said == jobs.prune(older_than=0)
    assert (said.total, said.kept) == (2, 1)


def test_many_jobs_go_in_bounded_transactions(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Not more than 50 in one; others could write between them."""
    made = jobs.enqueue_many([jobq.NewJob("k", i) for i in range(1_000)])
    jobs.cancel([one.id for one in made])
    told: list[int] = []

    assert jobs.prune(older_than=0, progress=told.append).total == 1_000
    assert told[:20] == list(range(50, 1_001, 50))


def test_slot_guards_outlive_pruned_jobs(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A slot whose job was pruned is not run again."""
    jobs.schedules.add("s", every="1h", kind="k")
    runner = jobq.Runner(jobs)
    clock.advance("1h")
    runner.scheduler.tick()
    jobs.cancel([job.id for job in jobs.find()])

    assert jobs.prune(older_than=0).total == 1
    assert rows(jobs, "jobq_slot") == 1


def test_prune_publishes_nothing(jobs: jobq.JobQueue, events: list[JobStateChanged]) -> None:
    """No job changed its state."""
    end(jobs)
    told = len(events)

    jobs.prune(older_than=0)

    assert len(events) == told


def test_space_is_given_back(jobs: jobq.JobQueue) -> None:
    """After it hardly a page of the file is free, and the WAL is small."""
    for _ in range(4):
        made = jobs.enqueue_many([jobq.NewJob("k", "x" * 20_000) for _ in range(300)])
        jobs.cancel([one.id for one in made])

    jobs.prune(older_than=0)

    status = jobs.store.engine.status()  # type: ignore[attr-defined]
    assert status.free_pages <= max(256, status.pages // 50)
    assert status.pages < 600
    assert status.wal_bytes <= 4 * 1024 * 1024


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"state": "running"}, id="running"),
        pytest.param({"state": "queued"}, id="queued"),
        pytest.param({"state": "gone"}, id="no state"),
        pytest.param({"older_than": -1}, id="negative"),
        pytest.param({"older_than": "soon"}, id="no duration"),
        pytest.param({"older_than": True}, id="bool"),
    ],
)
def test_what_makes_no_sense_is_refused(jobs: jobq.JobQueue, options: dict[str, object]) -> None:
    """And nothing is removed."""
    end(jobs)

    with pytest.raises(jobq.ArgumentError) as caught:
        jobs.prune(**options)  # type: ignore[arg-type]

    assert caught.value.fix
    assert len(jobs.find()) == 1


def test_an_age_beyond_the_calendar_is_old_enough_for_nothing(jobs: jobq.JobQueue) -> None:
    """It is no error."""
    end(jobs)

    assert jobs.prune(older_than="3000000d").total == 0


def test_prune_is_refused_inside_a_transaction(jobs: jobq.JobQueue) -> None:
    """It consists of many."""
    with jobs.transaction(), pytest.raises(jobq.InsideTransaction):
        jobs.prune(older_than=0)


def test_a_job_that_a_table_of_the_hosts_refers_to_stays(jobs: jobq.JobQueue) -> None:
    """It keeps no other from going, and it goes where the table lets it."""
    _, billed, _ = (end(jobs) for _ in range(3))
    with jobs.transaction() as tx:
        tx.execute("CREATE TABLE bill (job INTEGER REFERENCES jobq_job (id))")
        tx.execute("INSERT INTO bill VALUES (?)", (billed,))

    assert jobs.prune(older_than=0).total == 2
    assert [job.id for job in jobs.find()] == [billed]
    with jobs.transaction() as tx:
        tx.execute("DELETE FROM bill")
    assert jobs.prune(older_than=0).total == 1


def test_runner_sweeps_by_the_retention(open_again: Again, clock: FakeClock) -> None:
    """At its start and once a minute, one short step after the other."""
    jobs = open_again(config=jobq.Config(retention={"cancelled": "1h"}))
    made = jobs.enqueue_many([jobq.NewJob("k", i) for i in range(120)])
    jobs.cancel([one.id for one in made])
    maintenance = jobq.Runner(jobs).maintenance
    maintenance.tick()
    assert (maintenance.pause(), len(jobs.find(limit=None))) == (1.0, 120)

    clock.advance("1h")
    left = []
    while not left or maintenance.pause() < 0.1:
        maintenance.tick()
        left.append(len(jobs.find(limit=None)))

    assert left == [70, 20, 0, 0]
    end(jobs, "cancelled")
    clock.advance("59s")
    maintenance.tick()
    assert len(jobs.find()) == 1


def test_runner_does_not_trust_a_clock_that_has_just_jumped(open_again: Again, clock: FakeClock) -> None:
    """What somebody set ten years ahead by mistake removes nothing while the sleep guard holds."""
    jobs = open_again()
    end(jobs)
    maintenance = jobq.Runner(jobs).maintenance
    maintenance.tick()
    clock.advance("60s")
    clock.jump("3650d")

    maintenance.tick()

    assert len(jobs.find()) == 1


def test_failing_sweep_is_taken_up_at_the_next_look(
    jobs: jobq.JobQueue, clock: FakeClock, errors: ErrorLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that raises costs no more than the sweep under way."""
    end(jobs)
    clock.advance("8d")
    maintenance = jobq.Runner(jobs).maintenance
    with monkeypatch.context() as broken:
        broken.setattr(jobs.store, "prune", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            maintenance.tick()
    assert maintenance.pause() == 1.0

    clock.advance("60s")
    maintenance.tick()

    assert jobs.find() == []
    assert errors.take() == []


def test_retention_is_frozen_and_shown() -> None:
    """It is a value of its own with the documented defaults, in seconds."""
    kept = jobq.Config().retention

    assert attrs.asdict(kept) == {
        "succeeded": 7 * 86_400, "failed": 30 * 86_400, "cancelled": 7 * 86_400, "changes": 90 * 86_400,
    }  # fmt: skip
    assert jobq.Config(retention={"failed": "keep"}).retention == jobq.Retention(failed=None)
