"""``jobq work``: in processes of its own, because it is about signals and threads."""

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jobq
from tests.cli.conftest import Answer, finish, start, wait_for
from tests.ready import ready_file

TASKS = """
import pathlib, threading
import jobq

handlers = jobq.Handlers()


@handlers.job
def quick(payload: dict) -> int:
    return payload["n"]


@handlers.job(max_attempts=2, retry=jobq.RetryPolicy(base=3600))
def broken(payload: dict) -> None:
    raise ValueError("no \\x1b[31m colour")


@handlers.job
def refused(payload: dict) -> None:
    raise jobq.PermanentJobError("never", code="no_way")


@handlers.job(queue="chain")
def chain(payload: dict, job: jobq.RunningJob) -> None:
    if payload["n"]:
        job.enqueue("chain", {"n": payload["n"] - 1})


@handlers.job
def patient(payload: dict, job: jobq.RunningJob) -> str:
    pathlib.Path("patient").touch()
    job.cancel_token.wait(payload["seconds"])
    job.cancel_token.raise_if_requested()
    return "done"


@handlers.job
def wordy(payload: dict, job: jobq.RunningJob) -> None:
    job.log.info("page.rendered", page=payload["n"])
    job.log.debug("page.measured")


@handlers.job
def deaf(payload: dict) -> None:
    pathlib.Path("deaf").touch()
    threading.Event().wait(60)
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[jobq.JobQueue]:
    """A job queue in ``jobs.db`` beside a module ``tasks`` with its handlers."""
    (tmp_path / "tasks.py").write_text(TASKS)
    with jobq.open(ready_file(tmp_path / "jobs.db")) as jobs:
        jobs.queues()
        yield jobs


def work(cwd: Path, *arguments: object, **settings: object) -> "subprocess.Popen[str]":
    """Start a worker process on that job queue."""
    return start("work", "-A", "tasks:handlers", "--db", "jobs.db", *arguments, cwd=cwd, **settings)


def started(process: "subprocess.Popen[str]") -> str:
    """Wait until the worker says that it works, and return that line."""
    assert process.stderr is not None
    return process.stderr.readline()


def test_burst_runs_what_is_due_and_what_that_enqueues(app: jobq.JobQueue, tmp_path: Path) -> None:
    """It drains, follows children, leaves future jobs alone and exits 0."""
    app.enqueue("chain", {"n": 5})
    app.enqueue_many([jobq.NewJob("quick", {"n": n}) for n in range(50)])
    app.enqueue("quick", {"n": 1}, delay="1h")

    answer = finish(work(tmp_path, "--burst"))

    assert answer.code == 0, answer.err
    assert (app.counts()["succeeded"], app.counts()["queued"]) == (56, 1)
    assert answer.out == ""
    assert f"working on default, chain of {app.path}: " in answer.err


def test_burst_ticks_the_schedules_once_before_it_works(app: jobq.JobQueue, tmp_path: Path) -> None:
    """Those that the code declares too; beside the workers nothing is added, so that it ends."""
    tasks = tmp_path / "tasks.py"
    declared = "handlers.schedule('declared', every='1h', kind='quick', payload={'n': 1})"
    tasks.write_text(f"{tasks.read_text()}\n\n{declared}\n")
    app.schedules.add("fast", every="1ms", kind="patient", payload={"seconds": 1.5}, catch_up="all", max_catch_up=1)
    answer = finish(work(tmp_path, "--burst"))

    assert answer.code == 0, answer.err
    assert [job.state for job in app.find()] == ["succeeded"]
    assert [one.name for one in app.schedules.list()] == ["declared", "fast"]


def test_burst_exits_1_when_a_job_failed(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A failure for good is a failure; --json gives a line for each attempt."""
    failed, retried = app.enqueue("refused", {}).id, app.enqueue("broken", {}).id

    answer = finish(work(tmp_path, "--burst", "--json"))

    assert answer.code == 1
    lines = {line["job_id"]: line for line in answer.lines}
    assert (lines[failed]["outcome"], lines[failed]["error"]) == ("failed", "PermanentJobError: never")
    assert (lines[retried]["outcome"], lines[retried]["state"]) == ("retried", "queued")
    assert lines[retried]["due"] is not None


def test_retry_is_no_failure(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A job that will be tried again has not failed; -v shows its error escaped."""
    app.enqueue("broken", {})

    answer = finish(work(tmp_path, "--burst", "-v"))

    assert answer.code == 0
    assert "broken retried, attempt 1" in answer.err
    assert "no \\x1b[31m colour" in answer.err


def test_max_jobs_stops_early(app: jobq.JobQueue, tmp_path: Path) -> None:
    """With one thread exactly so many jobs run; the others stay queued, uncounted."""
    app.enqueue_many([jobq.NewJob("quick", {"n": n}) for n in range(40)])

    answer = finish(work(tmp_path, "--max-jobs", 3, "--workers", "default=1"))

    assert answer.code == 0, answer.err
    assert app.counts()["succeeded"] == 3
    assert {job.attempts for job in app.find(state="queued", limit=None)} == {0}


def test_max_jobs_counts_payloads_that_do_not_fit(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A run that ends before its handler is called is a run."""
    app.enqueue("quick", [])
    app.enqueue("quick", {"n": 1}, delay="1h")

    assert finish(work(tmp_path, "--max-jobs", 1)).code == 0


def test_max_runtime_stops_an_idle_worker(app: jobq.JobQueue, tmp_path: Path) -> None:
    """Without jobs it waits until the time is over."""
    before = time.monotonic()

    answer = finish(work(tmp_path, "--max-runtime", "0.3"))

    assert answer.code == 0
    assert time.monotonic() - before >= 0.3


def test_workers_names_the_queues(app: jobq.JobQueue, tmp_path: Path) -> None:
    """Only queues that are named are served."""
    app.enqueue("quick", {"n": 1})
    app.enqueue("chain", {"n": 0}, queue="chain")

    assert finish(work(tmp_path, "--burst", "--workers", "chain=1")).code == 0
    assert [job.queue for job in app.find(state="queued")] == ["default"]


def test_without_handlers_is_a_usage_error(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A database alone has nothing to run, and is not made for it."""
    (tmp_path / "empty.py").write_text("import jobq\nhandlers = jobq.Handlers()\n")
    for app_option in ((), ("-A", "empty:handlers")):
        answer = finish(start("work", "--db", "new.db", *app_option, cwd=tmp_path))

        assert answer.code == 2
        assert "-A" in answer.err
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_lets_handlers_finish(app: jobq.JobQueue, tmp_path: Path, number: signal.Signals) -> None:
    """A graceful stop loses nothing."""
    job_id = app.enqueue("patient", {"seconds": 0.5}).id
    process = work(tmp_path)
    wait_for((tmp_path / "patient").exists)

    process.send_signal(number)

    assert finish(process).code == 0
    assert app.get(job_id).result == "done"


def test_second_signal_cancels(app: jobq.JobQueue, tmp_path: Path) -> None:
    """The handler is asked to stop, and its job is queued again, uncounted."""
    job_id = app.enqueue("patient", {"seconds": 60}).id
    process = work(tmp_path)
    wait_for((tmp_path / "patient").exists)

    process.send_signal(signal.SIGTERM)
    assert "working on" in started(process)
    assert "stopping" in started(process)
    process.send_signal(signal.SIGTERM)

    assert finish(process, timeout=10).code == 0
    assert (app.get(job_id).state, app.get(job_id).attempts) == ("queued", 0)


def test_third_signal_exits_at_once(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A handler that hears nothing is left to the end of its lease."""
    job_id = app.enqueue("deaf", {}).id
    process = work(tmp_path)
    wait_for((tmp_path / "deaf").exists)
    assert "working on" in started(process)

    process.send_signal(signal.SIGINT)
    assert "stopping" in started(process)
    process.send_signal(signal.SIGINT)
    assert "asked again" in started(process)
    process.send_signal(signal.SIGINT)

    assert finish(process, timeout=30).code == 130
    assert app.get(job_id).state == "running"


def test_b28_sigterm_at_random_moments_ends_an_idle_worker(app: jobq.JobQueue, tmp_path: Path) -> None:
    """Four programs, interpreter and all: whenever the signal comes after the start, they are gone soon.

    ``test_work_signals`` does the same with many, without starting an interpreter for each.
    """
    roll, pause = random.Random(28), threading.Event()
    processes = [work(tmp_path) for _ in range(4)]
    for process in processes:
        started(process)
    for process in processes:
        pause.wait(roll.random() * 0.05)
        process.send_signal(signal.SIGTERM)
        assert finish(process).code == 0


def expire(app: jobq.JobQueue, kind: str, **options: Any) -> int:
    """Leave a job behind as a worker that died does: running, and its lease has expired."""
    job_id = app.enqueue(kind, {"n": 1}, **options).id
    (lease,) = app.lease(kinds=[kind], worker="agent-9", length=0.1)
    wait_for(lambda: app.clock.now() > lease.until)
    return job_id


def test_lease_of_a_dead_worker_is_told(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A job that is taken back gets a line with the worker that had it, also as JSON, and then runs."""
    first = expire(app, "quick")
    people = finish(work(tmp_path, "--burst", "-v"))
    second = expire(app, "quick")
    programs = finish(work(tmp_path, "--burst", "--json"))

    assert people.code == programs.code == 0
    assert f"job {first} quick queued again: lease expired, was on agent-9\n" in people.err
    assert "jobq.lease.expired" not in people.err
    assert people.err.endswith("stopped after 1 runs: 1 succeeded; expired leases of other workers: 1 queued\n")
    expired, ran = programs.lines
    assert (expired["job_id"], expired["outcome"], expired["state"]) == (second, "expired", "queued")
    assert (expired["worker"], expired["attempt"], expired["error"]) == ("agent-9", 1, "lease expired")
    assert (ran["job_id"], ran["outcome"], ran["attempt"]) == (second, "succeeded", 2)


def test_burst_exits_1_when_a_job_died_with_its_worker(app: jobq.JobQueue, tmp_path: Path) -> None:
    """A job whose last attempt ended with its lease has failed, though nothing of it ran here."""
    job_id = expire(app, "quick", max_attempts=1)

    answer = finish(work(tmp_path, "--burst", "-v"))

    assert answer.code == 1
    assert f"job {job_id} quick failed: lease expired, was on agent-9\n" in answer.err


def test_banner_names_what_is_served_and_queues_that_nobody_uses(app: jobq.JobQueue, tmp_path: Path) -> None:
    """Kinds of queues that are not served are not in it; a misspelt queue is noted, one with jobs is not."""
    app.enqueue("by_name", queue="other")
    queues = ("--workers", "chain=1", "--workers", "chian=1", "--workers", "other=1")

    lines = finish(work(tmp_path, "--max-runtime", "0", *queues)).err.splitlines()

    assert lines[0] == f"working on chain, chian, other of {app.path}: chain"
    assert lines[1] == "note: no kind of this program belongs to the queue chian, and no job is in it"
    assert lines[2].startswith("stopped after")


def test_verbose_shows_what_handlers_log(app: jobq.JobQueue, tmp_path: Path) -> None:
    """With -v the information of ``job.log`` is shown; without it, only warnings and errors are."""
    app.enqueue("wordy", {"n": 7})
    verbose = finish(work(tmp_path, "--burst", "-v"))
    app.enqueue("wordy", {"n": 7})
    plain = finish(work(tmp_path, "--burst"))

    (line,) = (line for line in verbose.err.splitlines() if "page" in line)
    assert line.startswith("info: page.rendered ")
    assert "page=7" in line
    assert "kind='wordy'" in line
    assert "page" not in plain.err


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "moved-away"])
def test_corrupt_database_ends_the_worker(app: jobq.JobQueue, tmp_path: Path, replaced: bool) -> None:
    """A file that lost its name while it was open stops the runner with exit code 1; nothing is made in its place."""
    app.enqueue("patient", {"seconds": 0})
    process = work(tmp_path)
    wait_for((tmp_path / "patient").exists)
    os.rename(tmp_path / "jobs.db", tmp_path / "kept.db")
    if replaced:
        os.rename(tmp_path / "tasks.py", tmp_path / "jobs.db")

    answer: Answer = finish(process)

    assert answer.code == 1
    assert answer.err.count("jobq.store.failed") == 1
    assert (tmp_path / "jobs.db").exists() is replaced
