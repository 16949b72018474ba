"""Several processes on one file: each job runs once, and whoever dies costs a lease and no more."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import jobq
from jobq.model.lease import Settlement
from jobq.model.outcome import Succeeded
from tests.crash.conftest import PATIENCE, Program

Open = Callable[..., jobq.JobQueue]
Run = Callable[..., Program]


def test_b01_two_processes_of_four_threads_run_each_job_once(run: Run, real_jobs: Open, tmp_path: Path) -> None:
    """A thousand jobs leave a thousand lines with a thousand ids, and every job has one attempt."""
    jobs, log = real_jobs(), tmp_path / "log"
    programs = [run("work", log=str(log), workers={"default": 4}) for _ in range(2)]
    for program in programs:
        program.hear("working")
    made = jobs.enqueue_many([jobq.NewJob("append", number) for number in range(1_000)])
    ended = [one.wait(PATIENCE) for one in made]
    assert [program.finish() for program in programs] == [0, 0]

    assert {(job.state, job.attempts) for job in ended} == {("succeeded", 1)}
    lines = log.read_text().split()
    assert len(lines) == len(set(lines)) == 1_000


@pytest.mark.parametrize(
    ("programs", "holds"),
    [
        pytest.param(2, [0.3], id="short"),
        pytest.param(4, [0.5, 1.0, 2.0, 4.0] * 4, id="long", marks=pytest.mark.storm),
    ],
)
def test_b03_locks_that_are_held_for_less_than_the_timeout_fail_nothing(
    run: Run, real_jobs: Open, tmp_path: Path, programs: int, holds: list[float]
) -> None:
    """Processes of four threads work and four threads here enqueue while somebody keeps the lock: all is done once."""
    jobs, failed = real_jobs(), []
    working = [run("work", workers={"first": 4}) for _ in range(programs)]
    for program in working:
        program.hear("working")
    stop = threading.Event()

    def produce() -> None:
        while not stop.wait(0.005):
            try:
                jobs.enqueue("ping")
            except jobq.StoreError as error:
                failed.append(error)

    threads = [threading.Thread(target=produce) for _ in range(4)]
    for thread in threads:
        thread.start()
    holder = apsw.Connection(str(tmp_path / "jobs.db"))
    holder.set_busy_timeout(20_000)
    for seconds in holds:
        holder.execute("BEGIN IMMEDIATE")
        assert not stop.wait(seconds)
        holder.execute("ROLLBACK")
        assert not stop.wait(0.2)
    holder.close()
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    ended = [jobs.wait(job.id, PATIENCE) for job in jobs.find(limit=None)]

    assert not failed
    assert {(job.state, job.attempts) for job in ended} == {("succeeded", 1)}
    assert [program.finish() for program in working] == [0] * programs


@pytest.mark.parametrize(
    ("writers", "lease", "needs"),
    [pytest.param(1, 1.0, 3, id="short"), pytest.param(2, 6.0, 20, id="long", marks=pytest.mark.storm)],
)
def test_b04_a_heart_beats_among_writers(run: Run, real_jobs: Open, writers: int, lease: float, needs: int) -> None:
    """A handler of several leases runs once while other processes write back to back, some milliseconds each."""
    jobs = real_jobs(lease=lease)
    jobs.job(name="slow")(lambda payload, job: (job.cancel_token.wait(needs) and "told") or "done")
    writing = [run("write", config={"durability": "relaxed", "busy_timeout": 30}) for _ in range(writers)]
    for writer in writing:
        writer.hear("writing")
    with jobq.Runner(jobs, workers={"default": 1}), jobq.Runner(jobs, workers={"default": 1}):
        job = jobs.enqueue("slow").wait(needs + PATIENCE)
    assert [writer.finish() for writer in writing] == [0] * writers

    assert (job.result, job.attempts, jobs.history(job.id)) == ("done", 1, [])


def test_b09_the_token_fences_and_not_the_name(run: Run, real_jobs: Open) -> None:
    """A killed worker's job is taken over by one of the same name, and the old token writes nothing."""
    jobs = real_jobs(lease=0.5)
    made = jobs.enqueue("ping", queue="default")
    first = run("lease", config={"lease": 0.5})
    _, old_token = first.hear("leased")
    first.kill()
    begun = time.monotonic()
    second = run("work", config={"lease": 0.5}, workers={"default": 1})
    assert made.wait(PATIENCE).result == "pong"
    took = time.monotonic() - begun
    second.finish()

    (settled,) = jobs.store.settle([Settlement(made.id, old_token, Succeeded('"late"'))], durable=False)
    assert settled.verdict == jobq.Verdict.SUPERSEDED
    assert jobs.get(made.id).result == "pong"
    assert took < 15


@pytest.mark.parametrize("how", ["stopped", "keeping-the-gil"])
def test_b11_a_process_that_stood_still_learns_that_it_lost(run: Run, real_jobs: Open, how: str) -> None:
    """The second run's result stands; the first one's token says LEASE_LOST and its thread is usable."""
    jobs, pause = real_jobs(lease=0.5), threading.Event()
    kind = "hold" if how == "stopped" else "keep_gil"
    first = run("work", config={"lease": 0.5}, workers={"first": 1})
    first.hear("working")
    made = jobs.enqueue(kind, 1.6, queue="first")
    first.hear("started")
    begun = time.monotonic()
    if how == "stopped":
        first.send(signal.SIGSTOP)
    jobs.job(name=kind)(lambda payload: "second")
    with jobq.Runner(jobs, workers={"first": 1}):
        job = made.wait(PATIENCE)
    assert (job.result, job.attempts) == ("second", 2)
    if how == "stopped":
        # Three leases in all.
        pause.wait(begun + 1.5 - time.monotonic())
        first.send(signal.SIGCONT)

    assert first.hear("stopped") == ["lease_lost"]
    assert jobs.enqueue("ping", queue="first").wait(PATIENCE).result == "pong"
    assert jobs.get(made.id).result == "second"
    assert first.finish() == 0


def test_b11_a_worker_that_stood_still_is_not_the_one_that_took_over_under_its_name(run: Run, real_jobs: Open) -> None:
    """Stopped for three leases, it comes back to a job that another holds under the same name: its end is refused."""
    jobs = real_jobs(lease=0.3)
    made = jobs.enqueue("ping")
    first = run("lease_and_complete", config={"lease": 0.3})
    first.hear("leased")
    first.send(signal.SIGSTOP)
    taken = jobs.lease(worker="A", wait=PATIENCE)
    for _ in range(6):
        threading.Event().wait(0.15)
        taken = [jobs.extend(lease) for lease in taken]
    first.send(signal.SIGCONT)
    first.go()

    assert first.hear("ended") == ["LeaseLost"]
    jobs.complete(taken[0], "second")
    assert (jobs.get(made.id).result, jobs.get(made.id).attempts) == ("second", 2)


@pytest.mark.parametrize("most", [3, 1])
def test_b12_a_job_that_kills_its_process_ends_as_failed(run: Run, real_jobs: Open, most: int) -> None:
    """Exactly ``max_attempts`` starts; then it has failed because its lease expired, and other jobs proceed."""
    jobs = real_jobs(lease=0.3)
    killer = jobs.enqueue("die", priority=100, max_attempts=most)
    other = jobs.enqueue("ping", queue="default")
    settings = {"config": {"lease": 0.3}, "workers": {"default": 1}}
    for _ in range(most):
        program = run("work", **settings)
        assert program.hear("started") == [killer.id]
        assert program.wait() == 9
    survivor = run("work", **settings)
    job = killer.wait(PATIENCE)

    assert (job.state, job.attempts, job.failure_reason) == ("failed", most, "lease_expired")
    assert job.last_error == "lease expired"
    assert other.wait(PATIENCE).result == "pong"
    assert survivor.finish() == 0


def test_b30_a_dead_job_counts_against_its_cap_until_its_lease_ends(run: Run, real_jobs: Open) -> None:
    """After a kill nothing of the kind runs until the dead lease expires; then exactly one at a time."""
    jobs = real_jobs(lease=1.0)
    running, most, starts = threading.Semaphore(0), [], []
    made = [jobs.enqueue("capped") for _ in range(3)]
    first = run("work", config={"lease": 1.0}, workers={"default": 2})
    first.hear("started")
    first.kill()
    (dead,) = jobs.find(state="running")
    lock = threading.Lock()

    @jobs.job(concurrency=1)
    def capped(payload: Any) -> None:
        starts.append(jobs.clock.now())
        most.append(lock.acquire(blocking=False))
        lock.release()
        running.release()

    with jobq.Runner(jobs, workers={"default": 3}):
        for one in made:
            one.wait(PATIENCE)

    assert dead.lease_until is not None
    assert min(starts) >= dead.lease_until
    assert most == [True] * 3


def test_b69_a_job_of_another_process_starts_at_once(run: Run, real_jobs: Open) -> None:
    """An idle runner notices what another process commits within a poll."""
    jobs = real_jobs()
    jobs.job(name="ping")(lambda payload: "here")
    with jobq.Runner(jobs, workers={"default": 1}):
        (job_id,) = run("enqueue").hear("enqueued")
        job = jobs.wait(job_id, PATIENCE)
    assert job.started_at is not None
    assert (job.started_at - job.created_at).total_seconds() < 10


def test_a_cancel_reaches_another_process(run: Run, real_jobs: Open) -> None:
    """The owner's token says USER, and a normal return still counts as success."""
    jobs = real_jobs()
    program = run("work", workers={"default": 1})
    program.hear("working")
    made = jobs.enqueue("hold")
    program.hear("started")
    begun = time.monotonic()
    assert jobs.cancel(made.id) is True
    assert program.hear("stopped") == ["user"]
    assert time.monotonic() - begun < 10
    assert made.wait(PATIENCE).state == "succeeded"
    assert program.finish() == 0


def test_a_fork_leaves_the_workers_in_the_parent(run: Run, real_jobs: Open) -> None:
    """The child has no threads and says so, enqueues, may start its own; the parent goes on."""
    program = run("fork")

    assert program.hear("child") == [False, True, 0]
    assert program.hear("ran") == ["succeeded", 1]
    assert program.hear("parent") == [0, 1, "succeeded"]
    assert program.wait() == 0


def test_a_handler_that_forks_is_settled_by_the_parent(run: Run, real_jobs: Open) -> None:
    """The child that comes back from the handler is no worker: it settles nothing and claims nothing."""
    jobs = real_jobs()
    program = run("work", workers={"default": 1})
    program.hear("working")
    made = jobs.enqueue("split")
    program.hear("reaped")

    assert made.wait(PATIENCE).result == "parent"
    assert jobs.enqueue("ping", queue="default").wait(PATIENCE).result == "pong"
    assert program.finish() == 0


def test_b29_a_stubborn_handler_does_not_keep_the_process(run: Run, real_jobs: Open) -> None:
    """stop() is back in time, the job waits for the end of its old lease, and the process is gone at once."""
    jobs = real_jobs()
    program = run("stop_stubborn")
    made = jobs.enqueue("ignore")
    program.hear("started")
    until = jobs.get(made.id).lease_until
    code = program.finish()
    (took,) = program.hear("stopped")
    job = jobs.get(made.id)

    assert code == 0
    assert took < 10
    assert until is not None
    assert (job.state, job.attempts, job.run_at >= until) == ("queued", 0, True)


@pytest.mark.parametrize("at_exit", [True, False])
def test_the_interpreter_ends_while_a_handler_runs(run: Run, real_jobs: Open, at_exit: bool) -> None:
    """Worker threads keep no process alive, with a stop at exit or with none."""
    jobs = real_jobs()
    program = run("leave", at_exit=at_exit)
    made = jobs.enqueue("hold")
    program.hear("started")

    assert program.finish() == 0
    assert jobs.get(made.id).state == ("succeeded" if at_exit else "running")
