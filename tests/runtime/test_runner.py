"""The runner with its threads: who is served by whom, and that threads survive what handlers do."""

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import jobq
from tests.runtime.conftest import PATIENCE, Changes

Open = Callable[..., jobq.JobQueue]


def test_jobs_run_and_the_answer_is_waited_for(open_real: Open) -> None:
    """What is enqueued beside a started runner runs at once."""
    jobs = open_real()
    jobs.job(name="double")(lambda payload: payload * 2)
    with jobq.Runner(jobs):
        assert jobs.enqueue("double", 21).wait(PATIENCE).result == 42


def test_workers_are_named_and_started_by_queue(open_real: Open) -> None:
    """The default queue has two threads, others one, unless configured; a number of zero leaves a queue out."""
    jobs = open_real(queues={"mail": jobq.QueueConfig(workers=3), "else": jobq.QueueConfig(workers=0)})
    jobs.job(name="a", queue="slow")(lambda payload: None)
    with jobq.Runner(jobs):
        names = {thread.name for thread in threading.enumerate() if thread.name.count("-") == 2}

    assert names == {
        "jobq-default-1", "jobq-default-2", "jobq-mail-1", "jobq-mail-2", "jobq-mail-3", "jobq-slow-1",
    }  # fmt: skip


def test_only_named_queues_are_served(open_real: Open) -> None:
    """With ``workers`` nothing else is touched."""
    jobs = open_real()
    jobs.job(name="a")(lambda payload: None)
    left = jobs.enqueue("a", queue="other")
    with jobq.Runner(jobs, workers={"mail": 1}):
        jobs.enqueue("a", queue="mail").wait(PATIENCE)

    assert jobs.get(left.id).state == "queued"


@pytest.mark.parametrize("workers", [{}, {"mail": 0}, {"Mail": 1}, {"mail": True}, 3])
def test_odd_workers_are_refused(jobs: jobq.JobQueue, workers: Any) -> None:
    """Names and numbers are checked when the runner is made."""
    with pytest.raises(jobq.ArgumentError):
        jobq.Runner(jobs, workers=workers)


def test_the_claim_names_the_worker(open_real: Open) -> None:
    """A run knows its worker as host, process and thread."""
    jobs = open_real()
    seen = []
    jobs.job(name="a")(lambda payload, job: seen.append(job.claim.worker))
    with jobq.Runner(jobs, workers={"default": 1}):
        jobs.enqueue("a").wait(PATIENCE)

    assert seen[0].split(":")[1:] == [str(os.getpid()), "jobq-default-1"]


def test_idle_threads_are_filled_by_one_claim(open_real: Open) -> None:
    """A burst reaches all idle threads at once: as many handlers as threads meet at a barrier."""
    jobs = open_real()
    barrier = threading.Barrier(4)
    jobs.job(name="meet")(lambda payload: barrier.wait(PATIENCE) and None)
    with jobq.Runner(jobs, workers={"default": 4}):
        jobs.enqueue("meet", queue="nobody")
        made = jobs.enqueue_many([jobq.NewJob("meet") for _ in range(4)])
        assert [one.wait(PATIENCE).state for one in made] == ["succeeded"] * 4


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, "odd", "mute"])
def test_b15_whatever_is_raised_costs_one_attempt_and_no_thread(open_real: Open, kind: Any, caplog: Any) -> None:
    """Fifty jobs afterwards run on the same two threads."""
    odd = {"odd": type("Odd", (BaseException,), {}), "mute": type("Mute", (BaseException,), {"__str__": None})}
    error = odd.get(kind, kind)
    jobs = open_real()

    @jobs.job(max_attempts=1)
    def boom(payload: Any) -> None:
        raise error

    jobs.job(name="fine")(lambda payload: None)
    with jobq.Runner(jobs, workers={"default": 2}) as runner:
        failed = jobs.enqueue("boom").wait(PATIENCE)
        made = jobs.enqueue_many([jobq.NewJob("fine") for _ in range(50)])
        assert {one.wait(PATIENCE).state for one in made} == {"succeeded"}
        assert runner.health().workers == 2

    assert (failed.state, failed.attempts) == ("failed", 1)


def test_a_hand_is_released_while_a_handler_is_slow(open_real: Open) -> None:
    """Jobs claimed together with one that blocks are done by somebody else meanwhile."""
    jobs = open_real(hand=32)
    stop, entered = threading.Event(), threading.Event()

    @jobs.job
    def step(payload: str) -> None:
        if payload == "block":
            entered.set()
            assert stop.wait(PATIENCE)

    jobs.enqueue_many([jobq.NewJob("step", "quick") for _ in range(200)])
    blocker = jobs.enqueue("step", "block")
    rest = jobs.enqueue_many([jobq.NewJob("step", "quick") for _ in range(20)])
    with jobq.Runner(jobs, workers={"default": 2}):
        assert entered.wait(PATIENCE)
        assert {one.wait(PATIENCE).state for one in rest} == {"succeeded"}
        assert {one.job.attempts for one in rest} == {0}
        assert jobs.get(blocker.id).state == "running"
        stop.set()
    assert {jobs.get(one.id).attempts for one in rest} == {1}


def test_a_job_that_was_tried_never_waits_in_a_hand(open_real: Open) -> None:
    """Hands hold only jobs that were never tried, may be tried again, and have neither cap nor gate."""
    jobs = open_real(hand=8)
    waiting = []
    for name, options in [("once", {"max_attempts": 1}), ("capped", {"concurrency": 8}), ("gated", {"gate": "g"})]:
        jobs.job(name=name, **options)(lambda payload, job: waiting.append(len(jobs.find(state="running"))))
        jobs.enqueue_many([jobq.NewJob(name) for _ in range(8)])
    with jobq.Runner(jobs, workers={"default": 1}):
        for info in jobs.find():
            jobs.wait(info.id, PATIENCE)

    assert set(waiting) == {1}


def test_gate_permits_are_shared_by_threads(open_real: Open) -> None:
    """No more handlers of gated kinds run at once than there are permits, and all jobs end."""
    jobs = open_real()
    gate = jobs.gate("llm", permits=2)
    free, lock = [], threading.Lock()

    @jobs.job(gate="llm")
    def ask(payload: Any) -> None:
        with lock:
            free.append(gate.free)

    made = [jobs.enqueue("ask", queue=queue) for queue in ("a", "b") for _ in range(20)]
    with jobq.Runner(jobs, workers={"a": 2, "b": 2}):
        assert {one.wait(PATIENCE).state for one in made} == {"succeeded"}

    assert min(free) >= 0
    assert gate.free == 2


def test_a_permit_is_free_before_the_job_is_settled(open_real: Open) -> None:
    """Whoever hears that a gated job has ended finds its permit free."""
    jobs = open_real()
    gate = jobs.gate("llm")
    free = []
    jobs.job(name="ask", gate="llm")(lambda payload: None)

    def listen(event: jobq.JobStateChanged) -> None:
        if event.state is jobq.JobState.SUCCEEDED:
            free.append(gate.free)

    with jobs.bus.subscribe(jobq.JobStateChanged, listen), jobq.Runner(jobs):
        jobs.enqueue("ask").wait(PATIENCE)
    assert free == [1]


def test_a_retry_is_run_when_it_falls_due(open_real: Open) -> None:
    """Nobody enqueues anything meanwhile: the due time alone wakes a thread."""
    jobs = open_real()

    @jobs.job(retry=jobq.RetryPolicy(base=0.1, jitter=0))
    def again(payload: Any, job: jobq.RunningJob) -> int:
        if job.attempt < 3:
            raise ValueError("again")
        return job.attempt

    with jobq.Runner(jobs):
        assert jobs.enqueue("again").wait(PATIENCE).result == 3


def test_start_cancels_retired_kinds_and_reclaims(jobs: jobq.JobQueue, clock: Any, caplog: Any) -> None:
    """A starting runner cleans up and says how much."""
    jobs.job(name="old")(lambda payload: None)
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue_many([*[jobq.NewJob("old")] * 120, jobq.NewJob("note")])
    jobs.lease(kinds="note", worker="dead")
    clock.advance("2m")
    jobs.handlers.retire("old")

    assert jobq.Runner(jobs).bootstrap() == jobq.Bootstrap(cancelled=120, reclaimed=1)
    assert {job.failure_reason for job in jobs.find(kind="old", limit=None)} == {"retired_kind"}


def test_start_forgets_runners_that_died_long_ago(jobs: jobq.JobQueue, clock: Any) -> None:
    """A killed runner's row is removed a day after its last beat."""
    jobq.Runner(jobs).heartbeat.tick()
    clock.advance("1d")
    jobq.Runner(jobs).bootstrap()
    assert len(jobs.store.runners()) == 1
    clock.advance(1)
    jobq.Runner(jobs).bootstrap()
    assert jobs.store.runners() == []


def test_health_tells_of_threads_and_loops(open_real: Open, changes: Changes) -> None:
    """Before start nothing runs; started, every loop has a good tick; stopped, nothing runs."""
    jobs = open_real()
    runner = jobq.Runner(jobs)
    assert not runner.health().running
    with runner:
        changes.wait_for(lambda: None not in runner.health().loops.values())
        health = runner.health()
        assert (health.running, health.workers, health.beating, health.store_healthy) == (True, 2, True, True)
    assert (runner.health().running, runner.health().workers) == (False, 0)


def test_a_runner_starts_again_after_a_stop(open_real: Open) -> None:
    """Start, stop, start: the second time it works like the first."""
    jobs = open_real()
    jobs.job(name="a")(lambda payload: payload)
    runner = jobq.Runner(jobs)
    for number in range(3):
        with runner:
            assert jobs.enqueue("a", number).wait(PATIENCE).result == number


def test_a_fake_clock_moves_beside_threads(jobs: jobq.JobQueue, clock: Any) -> None:
    """A started runner on a fake clock does not spin, and runs what an advance makes due."""
    jobs.job(name="a")(lambda payload: payload)
    made = jobs.enqueue("a", 1, delay="1h")
    with jobq.Runner(jobs):
        clock.advance("1h")
        assert made.wait(PATIENCE).result == 1


def test_closing_the_job_queue_stops_the_runner(open_real: Open, errors: Any) -> None:
    """The threads end by themselves, with one report."""
    jobs = open_real()
    runner = jobq.Runner(jobs)
    runner.start()
    jobs.close()

    assert runner.wait(PATIENCE)
    assert errors.take() == ["jobq.store.failed"]
