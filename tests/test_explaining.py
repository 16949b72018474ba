"""Explaining jobs in a real database, with the rows of real runners."""

import json
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import jobq
from jobq import Config, Deferred, JobNotFound, JobQueue
from jobq.cli.output import plain
from jobq.model.runner import RunnerRow
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]


def runner(
    jobs: JobQueue, *, queues: tuple[str, ...] = ("default",), kinds: tuple[str, ...] = ("mail",), **row: Any
) -> None:
    """Let a runner of another machine beat."""
    now = jobs.clock.now()
    threads = dict.fromkeys(queues, 1)
    fields = {"id": f"r{len(jobs.store.runners())}", "host": "elsewhere", "pid": 1, "queues": threads, "kinds": kinds}
    times = {"boot_id": "b", "monotonic": 0.0, "started_at": now, "beat_at": now}
    jobs.store.beat_runner(RunnerRow(**{**fields, **times, **row}))  # type: ignore[arg-type]


def codes(jobs: JobQueue, job_id: int) -> list[str]:
    """Return the codes of a job's reasons."""
    return [code.value for code in jobs.explain(job_id).codes]


def test_who_is_there_to_run_it(jobs: JobQueue, clock: FakeClock) -> None:
    """Nobody, somebody for another queue, without a handler, each half elsewhere, then somebody; then all are dead."""
    job_id = jobs.enqueue("mail").id
    assert codes(jobs, job_id) == ["unserved"]
    runner(jobs, queues=("slow",), kinds=("note",))
    assert codes(jobs, job_id) == ["unserved", "no_handler"]
    runner(jobs, kinds=("note",))
    assert codes(jobs, job_id) == ["no_handler"]
    runner(jobs, queues=("slow",))
    assert codes(jobs, job_id) == ["no_handler"]
    runner(jobs)
    assert codes(jobs, job_id) == ["next"]
    clock.advance("121s")
    assert codes(jobs, job_id) == ["unserved"]


def test_a_runner_of_this_machine_whose_process_ended_is_not_there(jobs: JobQueue) -> None:
    """Its row lasts, and is not believed."""
    job_id = jobs.enqueue("mail").id
    runner(jobs, host=socket.gethostname(), pid=2**22 + 12_345)
    assert codes(jobs, job_id) == ["unserved"]


def test_a_pause_and_its_end(jobs: JobQueue) -> None:
    """Of the queue, of the kind, of both; each with its command."""
    runner(jobs)
    job_id = jobs.enqueue("mail").id
    jobs.pause("default", who="ada", why="disk full")
    jobs.pause(kind="mail")

    found = jobs.explain(job_id)

    assert codes(jobs, job_id) == ["queue_paused", "kind_paused"]
    assert "by ada (disk full); `jobq queue resume default`." in found.text
    jobs.resume("default")
    jobs.resume(kind="mail")
    assert codes(jobs, job_id) == ["next"]


def test_caps_of_the_configuration_and_of_the_kind(open_again: Again) -> None:
    """By which jobs; other kinds of the queue are not held up."""
    jobs = open_again(config=Config(kind_limits={"mail": 1}))
    runner(jobs, kinds=("mail", "note"))
    first, second, other = (jobs.enqueue(kind).id for kind in ("mail", "mail", "note"))
    jobs.lease("mail", worker="w")

    assert codes(jobs, first) == ["running"]
    assert jobs.explain(second).reasons[0].data["jobs"] == [first]
    assert codes(jobs, second) == ["capped"]
    assert codes(jobs, other) == ["next"]


def test_times_deferrals_and_retries(jobs: JobQueue, clock: FakeClock) -> None:
    """Not due until, deferred because, waiting for a retry."""

    @jobs.job(name="mail", retry=jobq.RetryPolicy(base=60, jitter=0))
    def mail(payload: str) -> None:
        """Defer or fail."""
        if payload == "defer":
            raise Deferred("smtp down", delay="1h")
        raise ValueError("no luck")

    runner(jobs)
    later = mail.enqueue("", delay="1d").id
    deferred, failed = mail.enqueue("defer").id, mail.enqueue("fail").id
    jobq.Runner(jobs).drain()
    runner(jobs)

    assert codes(jobs, later) == ["not_due"]
    assert codes(jobs, deferred) == ["not_due", "deferred"]
    assert "because: smtp down." in jobs.explain(deferred).text
    assert codes(jobs, failed) == ["not_due", "retrying"]
    assert "attempt 1 of 5 failed: ValueError: no luck" in jobs.explain(failed).text
    clock.advance("1h")
    runner(jobs)
    assert codes(jobs, deferred) == ["behind"]
    assert codes(jobs, failed) == ["next"]


def test_better_jobs_are_counted_where_a_runner_would_take_them(jobs: JobQueue) -> None:
    """Those of kinds that nobody who serves the queue handles are in nobody's way."""
    runner(jobs)
    jobs.enqueue_many([jobq.NewJob("unknown", priority=900)] * 3 + [jobq.NewJob("mail", priority="user")] * 2)
    mine = jobs.enqueue("mail").id

    (reason,) = jobs.explain(mine).reasons
    assert (reason.code, reason.data) == ("behind", {"better": 2, "more": False})


def test_retired_kinds(jobs: JobQueue) -> None:
    """Declared retired by whoever registers."""
    runner(jobs)
    job_id = jobs.enqueue("mail").id
    jobs.handlers.retire("mail")
    jobs.register()

    assert codes(jobs, job_id) == ["retired"]


def test_running_and_ended_jobs(jobs: JobQueue, clock: FakeClock) -> None:
    """By whom, until when, asked to stop; then how it ended."""
    job_id = jobs.enqueue("mail").id
    (lease,) = jobs.lease("mail", worker="agent-7", length="1m")
    jobs.cancel(job_id)
    found = jobs.explain(job_id)
    assert found.state == "running"
    assert found.reasons[0].data["worker"] == "agent-7"
    assert found.reasons[0].data["lease_until"] == clock.now() + timedelta(minutes=1)
    assert "it was asked to stop" in found.text
    jobs.fail(lease, "no luck")
    assert codes(jobs, job_id) == ["ended"]


def test_an_explanation_is_data(jobs: JobQueue) -> None:
    """All of it goes through JSON."""
    runner(jobs)
    job_id = jobs.enqueue("mail", delay="1d").id
    jobs.pause("default")

    told = json.loads(json.dumps(plain(jobs.explain(job_id))))

    assert [reason["code"] for reason in told["reasons"]] == ["queue_paused", "not_due"]


def test_unknown_jobs_are_not_found(jobs: JobQueue) -> None:
    """As everywhere."""
    for job_id in (99, 10**30):
        with pytest.raises(JobNotFound):
            jobs.explain(job_id)
    with pytest.raises(jobq.ArgumentError):
        jobs.explain("7")  # type: ignore[arg-type]


def test_explaining_changes_nothing(jobs: JobQueue) -> None:
    """Neither rows nor the change log, nor what another version of the program has registered."""
    job_id = jobs.enqueue("mail").id
    jobs.job(name="mail", concurrency=1)(lambda payload: None)
    before = jobs.find(), jobs.changes(), jobs.kinds()

    assert codes(jobs, job_id) == ["unserved"]
    jobs.doctor()
    assert (jobs.find(), jobs.changes(), jobs.kinds()) == before
