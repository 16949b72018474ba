"""The order of a stop, and from where it may be asked for."""

import threading
import time
from collections.abc import Callable
from typing import Any

import jobq
from tests.runtime.conftest import PATIENCE, Changes

Open = Callable[..., jobq.JobQueue]


class Blocking:
    """A handler that says when it has begun and ends when it may."""

    def __init__(self, jobs: jobq.JobQueue, **options: Any) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.token: jobq.CancelToken | None = None
        self.handler = jobs.job(name="blocking", **options)(self)
        self.__name__ = "blocking"

    def __call__(self, payload: Any, job: jobq.RunningJob) -> str:
        self.token = job.cancel_token
        self.begun.set()
        assert self.may_end.wait(PATIENCE)
        return "done"


def test_a_stop_lets_handlers_end(open_real: Open) -> None:
    """Within the grace period a handler returns normally and its job succeeds."""
    jobs = open_real()
    handler = Blocking(jobs)
    made = jobs.enqueue("blocking")
    runner = jobq.Runner(jobs)
    runner.start()
    assert handler.begun.wait(PATIENCE)
    stopping = threading.Thread(target=runner.stop, args=(PATIENCE,))
    stopping.start()
    handler.may_end.set()
    stopping.join(PATIENCE)

    assert jobs.get(made.id).result == "done"
    assert not runner.health().running
    assert handler.token is not None
    assert handler.token.reason is None


def test_b06_the_heart_beats_until_the_last_job_has_ended(open_real: Open, changes: Changes) -> None:
    """A handler that needs several leases of the grace period is never taken over."""
    jobs = open_real(lease=0.4)
    handler = Blocking(jobs)
    made = jobs.enqueue("blocking")
    runner, other = jobq.Runner(jobs), jobq.Runner(jobs, workers={"default": 1})
    runner.start()
    assert handler.begun.wait(PATIENCE)
    other.start()
    stopping = threading.Thread(target=runner.stop, args=(PATIENCE,))
    begun = time.monotonic()
    stopping.start()
    changes.wait_for(lambda: time.monotonic() - begun > 1.5)
    handler.may_end.set()
    stopping.join(PATIENCE)
    other.stop()

    job = jobs.get(made.id)
    assert (job.state, job.attempts, jobs.history(made.id)) == ("succeeded", 1, [])


def test_after_the_grace_tokens_say_shutdown_and_the_job_is_released(open_real: Open) -> None:
    """A handler that heeds its token gives the job back, uncounted."""
    jobs = open_real()
    begun = threading.Event()

    @jobs.job
    def heeds(payload: Any, job: jobq.RunningJob) -> None:
        begun.set()
        assert job.cancel_token.wait(PATIENCE)
        job.cancel_token.raise_if_requested()

    made = jobs.enqueue("heeds")
    runner = jobq.Runner(jobs)
    runner.start()
    assert begun.wait(PATIENCE)
    runner.stop(grace=0)

    assert (jobs.get(made.id).state, jobs.get(made.id).attempts) == ("queued", 0)


def test_b29_what_will_not_stop_is_voided(open_real: Open, monkeypatch: Any, caplog: Any) -> None:
    """The job is queued, uncounted, not before its lease would have ended; its late end changes nothing."""
    monkeypatch.setattr("jobq.runtime.shutdown.NOTICE", 0.1)
    jobs = open_real()
    handler = Blocking(jobs)
    made = jobs.enqueue("blocking")
    runner = jobq.Runner(jobs)
    runner.start()
    assert handler.begun.wait(PATIENCE)
    until = jobs.get(made.id).lease_until
    begun = time.monotonic()
    runner.stop(grace=0.1)
    took = time.monotonic() - begun
    runner.stop()

    job = jobs.get(made.id)
    assert (job.state, job.attempts, job.token) == ("queued", 0, None)
    assert until is not None
    assert job.run_at >= until
    assert took < 10
    assert handler.token is not None
    assert handler.token.reason is jobq.CancelReason.SHUTDOWN
    handler.may_end.set()
    for thread in threading.enumerate():
        if thread.name.startswith("jobq-default"):
            thread.join(PATIENCE)
    assert jobs.get(made.id).state == "queued"


def test_a_stop_is_idempotent_and_safe_before_start(open_real: Open) -> None:
    """Nothing happens before the start, and nothing more after the first stop."""
    runner = jobq.Runner(open_real())
    runner.stop()
    runner.start()
    runner.stop()
    runner.stop()
    assert runner.wait(0)


def test_a_second_stop_shortens_the_grace(open_real: Open) -> None:
    """Whoever loses patience asks again with less of it."""
    jobs = open_real()
    begun = threading.Event()

    @jobs.job
    def heeds(payload: Any, job: jobq.RunningJob) -> None:
        begun.set()
        assert job.cancel_token.wait(PATIENCE)

    made = jobs.enqueue("heeds")
    runner = jobq.Runner(jobs)
    runner.start()
    assert begun.wait(PATIENCE)
    patient = threading.Thread(target=runner.stop, args=(600,))
    patient.start()
    runner.stop(grace=0)
    patient.join(PATIENCE)

    assert not patient.is_alive()
    assert jobs.get(made.id).state == "succeeded"


def test_a_handler_may_stop_its_own_runner(open_real: Open) -> None:
    """The call returns, the handler ends normally, and the runner stops after it."""
    jobs = open_real()
    runner = jobq.Runner(jobs)

    @jobs.job
    def last(payload: Any) -> str:
        runner.stop()
        return "done"

    made = jobs.enqueue("last")
    runner.start()
    assert runner.wait(PATIENCE)
    assert jobs.get(made.id).result == "done"


def test_a_listener_may_stop_the_runner(open_real: Open) -> None:
    """A listener on one of the runner's threads begins the stop and does not wait for itself."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)
    runner = jobq.Runner(jobs)

    def listen(event: jobq.JobStateChanged) -> None:
        if event.state is jobq.JobState.SUCCEEDED:
            runner.stop()

    with jobs.bus.subscribe(jobq.JobStateChanged, listen):
        made = jobs.enqueue("note")
        runner.start()
        assert runner.wait(PATIENCE)
    assert jobs.get(made.id).state == "succeeded"


def test_nothing_is_claimed_after_the_stop_began(open_real: Open, changes: Changes) -> None:
    """Jobs that wait stay queued, and unstarted ones in a hand go back with no attempt."""
    jobs = open_real()
    handler = Blocking(jobs)
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("blocking")
    runner = jobq.Runner(jobs, workers={"default": 1})
    runner.start()
    assert handler.begun.wait(PATIENCE)
    made = jobs.enqueue_many([jobq.NewJob("note") for _ in range(10)])
    stopping = threading.Thread(target=runner.stop, args=(PATIENCE,))
    stopping.start()
    changes.wait_for(lambda: all(pool.closed for pool in runner._parts.watch.pools()))
    handler.may_end.set()
    stopping.join(PATIENCE)

    assert {(jobs.get(one.id).state.value, jobs.get(one.id).attempts) for one in made} == {("queued", 0)}


def test_the_runners_row_is_gone_after_the_stop(open_real: Open, changes: Changes) -> None:
    """A runner that stops in order takes its row with it."""
    jobs = open_real()
    with jobq.Runner(jobs):
        changes.wait_for(lambda: len(jobs.store.runners()) == 1)
    assert jobs.store.runners() == []
