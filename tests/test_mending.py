"""Labels, retriage and self-heal as a host uses them."""

from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq import ArgumentError, Config, JobQueue, JobState, JobStateChanged, LabelLayer, Requeued, TransientJobError
from jobq.batches import BATCH, REST
from jobq.runtime.maintenance import HEAL_EVERY
from jobq.runtime.parts import Parts
from jobq.testing import FakeClock
from tests.conftest import ErrorLog

Again = Callable[..., JobQueue]


@pytest.fixture
def sorted_jobs(jobs: JobQueue) -> JobQueue:
    """A job queue with an intake kind and one with a queue of its own."""
    jobs.job(name="sort", intake=True)(lambda payload: None)
    jobs.job(name="print", queue="mill")(lambda payload: None)
    return jobs


def test_the_human_word_wins(jobs: JobQueue) -> None:
    """Whatever the order; each layer can be read alone."""
    assert jobs.labels.set("order:7", "tone", "angry", layer="human") is True
    assert jobs.labels.set("order:7", "tone", "calm") is True
    assert jobs.labels.set("order:7", "tone", "calm", layer=LabelLayer.MACHINE) is False
    jobs.labels.set("order:7", "topic", "parts")

    assert jobs.labels.get("order:7") == {"tone": "angry", "topic": "parts"}
    assert jobs.labels.get("order:7", layer="machine") == {"tone": "calm", "topic": "parts"}
    assert jobs.labels.get("order:8") == {}
    assert jobs.labels.clear("order:7", "tone", layer="human") == 1
    assert jobs.labels.get("order:7")["tone"] == "calm"
    assert jobs.labels.clear("order:7") == 2


def test_an_enqueue_follows_argument_label_kind_default(sorted_jobs: JobQueue, open_again: Again) -> None:
    """In this order, with a handler here or without one; a job that waits stays where it is."""
    before = sorted_jobs.enqueue("print", subject="order:7")
    sorted_jobs.labels.set("order:7", "queue", "rush")
    for jobs in (sorted_jobs, open_again()):
        found = [
            jobs.enqueue("print", subject="order:7", queue="desk"),
            jobs.enqueue("print", subject="order:7"),
            jobs.enqueue("print", subject="order:8"),
            jobs.enqueue("print"),
            jobs.enqueue("sort"),
        ]
        assert [jobs.get(made.id).queue for made in found] == ["desk", "rush", "mill", "mill", "default"]
        assert found[1].job.queue == "rush"
    assert sorted_jobs.get(before.id).queue == "mill"


def test_schedules_children_and_follow_ups_are_routed_too(jobs: JobQueue, clock: FakeClock) -> None:
    """Every way in asks the same rule."""

    @jobs.job(name="sort")
    def sort(payload: Any, job: jobq.RunningJob) -> None:
        """Make a child and a follow-up for the subject."""
        job.enqueue("child", subject="order:7")
        job.follow_up("after", subject="order:7")

    jobs.labels.set("order:7", "queue", "rush", layer="human")
    entries = [{"kind": "slot", "subject": "order:7"}]
    jobs.schedules.add("hourly", every="1h", entries=entries)  # type: ignore[arg-type]
    clock.advance("1h")
    jobs.schedules.tick()
    sort.enqueue(None)
    jobq.Runner(jobs).drain(limit=1)

    assert {job.kind: job.queue for job in jobs.find(subject="order:7")} == {
        "slot": "rush", "child": "rush", "after": "rush"
    }  # fmt: skip


def test_a_label_that_was_broken_by_hand_routes_nothing(jobs: JobQueue) -> None:
    """It harms only itself."""
    jobs.store.put_label("s", "queue", "No Queue!", layer=LabelLayer.HUMAN, actor=jobq.Actor.USER)

    assert jobs.enqueue("sort", subject="s").job.queue == "default"


def test_retriage_sorts_a_subject_anew(sorted_jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """Machine labels are gone, the intake job waits again, what people said stays; all of it or nothing."""
    jobs = sorted_jobs
    made = jobs.enqueue("sort", subject="order:7")
    (lease,) = jobs.lease("sort", worker="w")
    jobs.fail(lease, "no idea", permanent=True)
    jobs.labels.set("order:7", "topic", "parts")
    jobs.labels.set("order:7", "tone", "angry", layer="human")

    def fail() -> None:
        with jobs.transaction():
            jobs.retriage("order:7")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert (jobs.labels.get("order:7")["topic"], jobs.get(made.id).state) == ("parts", JobState.FAILED)

    assert jobs.retriage("order:7", actor="user") == Requeued((made.id,))
    assert jobs.labels.get("order:7") == {"tone": "angry"}
    assert (jobs.get(made.id).state, events[-1].previous) == (JobState.QUEUED, JobState.FAILED)
    (newest, *_) = jobs.changes(subject="order:7")
    assert (newest.what, newest.actor, newest.after) == ("retriaged", "user", {"requeued": [made.id]})
    assert jobs.retriage("order:9") == Requeued(())


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda jobs: jobs.labels.set("", "a", "b"), id="no subject"),
        pytest.param(lambda jobs: jobs.labels.set("s", "", "b"), id="no name"),
        pytest.param(lambda jobs: jobs.labels.set("s", "a", ""), id="no value"),
        pytest.param(lambda jobs: jobs.labels.set("s", "a", 5), id="number"),
        pytest.param(lambda jobs: jobs.labels.set("s", "queue", "No Queue!"), id="no queue"),
        pytest.param(lambda jobs: jobs.labels.set("s", "a", "b", layer="robot"), id="layer"),
        pytest.param(lambda jobs: jobs.labels.set("s", "a", "b", actor="robot"), id="actor"),
        pytest.param(lambda jobs: jobs.labels.get("s", layer="robot"), id="get layer"),
        pytest.param(lambda jobs: jobs.labels.clear("s", ""), id="clear no name"),
        pytest.param(lambda jobs: jobs.retriage(7), id="retriage number"),
        pytest.param(lambda jobs: jobs.job(name="n", intake="yes")(lambda payload: None), id="intake"),
    ],
)
def test_bad_arguments_are_refused(jobs: JobQueue, call: Callable[[JobQueue], object]) -> None:
    """And nothing is written."""
    with pytest.raises(ArgumentError):
        call(jobs)
    assert jobs.changes() == []


def busy(jobs: JobQueue) -> int:
    """Register a kind that fails for a cause that passes, let a job of it fail, and return its id."""

    @jobs.job(name="call", max_attempts=1)
    def call(payload: Any) -> None:
        """Fail."""
        raise TransientJobError("line busy")

    made = call.enqueue(None)
    assert jobq.Runner(jobs).drain().failed == 1
    return made.id


def test_self_heal_requeues_what_has_rested(
    jobs: JobQueue, clock: FakeClock, events: list[JobStateChanged], errors: ErrorLog
) -> None:
    """And says which; the change is told; unrecoverable ones are counted apart."""
    job_id = busy(jobs)
    jobs.enqueue("other")
    jobs.fail(jobs.lease("other", worker="w")[0], "never", permanent=True)
    assert jobs.self_heal() == ()

    clock.advance("15m")

    told: list[int] = []
    assert jobs.self_heal(progress=told.append) == (job_id,)
    assert told == [1]
    assert events[-1].job_id == job_id
    assert (jobs.count_failed(), jobs.count_failed(unrecoverable=True)) == (1, 1)
    assert jobs.count_failed(unrecoverable=False) == 0
    assert errors.take() == ["jobq.job.failed"]


def test_a_runner_heals_many_in_steps(open_again: Again, clock: FakeClock) -> None:
    """Each tick heals a few, so that what else its maintenance does is not kept waiting; the last one is at rest."""
    jobs = open_again(config=Config(self_heal=True))
    jobs.enqueue_many([jobq.NewJob("call", max_attempts=1) for _ in range(2 * BATCH + 1)])
    for lease in jobs.lease("call", worker="w", limit=2 * BATCH + 1):
        jobs.fail(lease, TransientJobError("line busy"))
    describe: Any = None
    parts = Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)
    parts.maintenance.tick()
    clock.advance("15m")

    healed = []
    while not healed or parts.maintenance.pause() == REST:
        parts.maintenance.tick()
        healed.append(jobs.counts()[JobState.QUEUED])

    assert healed[:3] == [BATCH, 2 * BATCH, 2 * BATCH + 1]
    assert parts.maintenance.pause() > REST


@pytest.mark.parametrize(("configured", "state"), [(True, "queued"), (False, "failed")])
def test_a_runner_heals_where_it_is_configured(
    open_again: Again, clock: FakeClock, errors: ErrorLog, configured: bool, state: str
) -> None:
    """Each minute, in its maintenance."""
    jobs = open_again(config=Config(self_heal=configured))
    describe: Any = None
    job_id = busy(jobs)
    parts = Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)
    parts.maintenance.tick()
    clock.advance("15m")
    parts.maintenance.tick()

    assert jobs.get(job_id).state == state
    if configured:
        jobq.Runner(jobs).drain()
        clock.advance(HEAL_EVERY - 1)
        clock.advance("15m")
        parts.maintenance.tick()
        assert [line.what for line in jobs.changes(job_id)] == ["healed", "healed"]
    assert set(errors.take()) == {"jobq.job.failed"}
