"""Ctrl-C in a drain, and listeners that raise it elsewhere: no job is orphaned, no permit and no thread is lost."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import jobq
from tests.interrupts import strikes
from tests.runtime.conftest import PATIENCE

Open = Callable[..., jobq.JobQueue]


def test_a_drain_interrupted_at_any_moment_holds_nothing(jobs: jobq.JobQueue) -> None:
    """Wherever Ctrl-C strikes, no job stays running, its permit is back, and the next drain does what is left."""
    gate = jobs.gate("llm", permits=1)
    jobs.job(name="ask", gate="llm")(lambda payload: None)
    runner, struck = jobq.Runner(jobs), 0

    def drain() -> None:
        jobs.enqueue("ask")
        runner.drain()

    drain()
    for number in strikes(drain, part="runtime/"):
        struck += 1
        assert not jobs.find(state="running"), number
        assert (len(runner._parts.held), len(jobs.live), gate.free) == (0, 0, 1), number
        runner.drain()
        assert not jobs.find(state="queued"), number

    assert struck > 50


@pytest.mark.parametrize("part", ["runtime/parts", "service"])
def test_a_drain_interrupted_at_any_moment_leaves_no_thread(open_real: Open, part: str) -> None:
    """The services that look after a drain end with it, wherever Ctrl-C strikes."""
    runner, struck = jobq.Runner(open_real()), 0
    for number in strikes(runner.drain, part=part):
        struck += 1
        for service in runner._parts.services:
            if service.thread is not None and service.alive:
                service.thread.join(PATIENCE)
        assert not [service.name for service in runner._parts.services if service.alive], number

    assert struck > 10


def test_an_interrupt_between_claim_and_run_gives_the_job_back(jobs: jobq.JobQueue) -> None:
    """A listener that hears of the claim is interrupted: the job is queued again, uncounted, and can be run."""
    jobs.job(name="note")(lambda payload: None)
    made, runner = jobs.enqueue("note"), jobq.Runner(jobs)

    def interrupt(event: jobq.JobStateChanged) -> None:
        if event.state is jobq.JobState.RUNNING:
            raise KeyboardInterrupt

    with jobs.bus.subscribe(jobq.JobStateChanged, interrupt), pytest.raises(KeyboardInterrupt):
        runner.drain()

    assert (jobs.get(made.id).state, jobs.get(made.id).attempts) == ("queued", 0)
    assert len(runner._parts.held) == 0
    assert runner.drain().succeeded == 1


def test_what_a_drain_could_not_settle_the_threads_settle(open_real: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that an earlier drain owes is written down after a start, and its lease not renewed for ever."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)
    made, runner = jobs.enqueue("note"), jobq.Runner(jobs)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise jobq.StoreBusy("f", "locked")

    def fail_from_now_on(event: jobq.JobStateChanged) -> None:
        if event.state is jobq.JobState.RUNNING:
            monkeypatch.setattr(jobs.store, "settle", fail)
            monkeypatch.setattr(jobs.store, "settle_and_claim", fail)

    with jobs.bus.subscribe(jobq.JobStateChanged, fail_from_now_on), pytest.raises(jobq.StoreBusy):
        runner.drain()
    monkeypatch.undo()
    with runner:
        assert made.wait(PATIENCE).state == "succeeded"


def test_a_start_beside_a_drain_is_refused(jobs: jobq.JobQueue) -> None:
    """The end of the drain would stop the services under the threads."""
    refused: list[jobq.RunnerBusy] = []

    @jobs.job
    def starts(payload: Any) -> None:
        try:
            runner.start()
        except jobq.RunnerBusy as error:
            refused.append(error)

    starts.enqueue()
    runner = jobq.Runner(jobs)
    assert runner.drain().succeeded == 1
    assert len(refused) == 1
    assert not runner.health().running


def test_a_listener_that_raises_keyboard_interrupt_costs_no_thread(open_real: Open, errors: Any) -> None:
    """On the runner's threads it is one more listener that raised."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)

    def interrupt(event: jobq.JobStateChanged) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise KeyboardInterrupt

    with jobq.Runner(jobs, workers={"default": 2}) as runner:
        with jobs.bus.subscribe(jobq.JobStateChanged, interrupt):
            made = jobs.enqueue_many([jobq.NewJob("note") for _ in range(20)])
            assert {one.wait(PATIENCE).state for one in made} == {"succeeded"}
        assert runner.health().workers == 2
        assert jobs.enqueue("note").wait(PATIENCE).state == "succeeded"
    assert set(errors.take()) == {"jobq.bus.listener_failed"}


def test_what_escapes_a_workers_round_costs_no_thread(
    open_real: Open, errors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even what is raised where nobody catches it: after a pause the thread goes on."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)
    runner = jobq.Runner(jobs, workers={"default": 1})
    raised, worked = [SystemExit], runner._parts.trouble.worked

    def raise_once(loop: str) -> None:
        if raised and ":" in loop:
            raise raised.pop()
        worked(loop)

    monkeypatch.setattr(runner._parts.trouble, "worked", raise_once)
    with runner:
        assert jobs.enqueue("note").wait(PATIENCE).state == "succeeded"
        assert not raised
        assert runner.health().workers == 1
    assert errors.take() == ["jobq.worker.crashed"]
