"""``jobq doctor``."""

import socket
from collections.abc import Callable
from pathlib import Path

import jobq
from tests.cli.conftest import Answer, finish, start, wait_for

Cli = Callable[..., Answer]


def found(answer: Answer) -> dict[str, tuple[bool, str]]:
    """Return what each check of a JSON answer found."""
    return {one["check"]: (one["ok"], one["detail"]) for one in answer.json["findings"]}


def test_healthy_database_is_all_right(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Nothing wrong is exit code 0; library, schema, journal, durability and sizes are told."""
    answer = cli("doctor", "--db", jobs.path, "--json")

    assert (answer.code, answer.json["ok"]) == (0, True)
    checks = found(answer)
    assert {"library", "schema", "foreign handle", "journal", "size", "durability", "leases"} <= set(checks)
    assert checks["journal"] == (True, "journal mode wal")
    assert checks["durability"][1].startswith("balanced")


def test_work_that_nobody_does_is_wrong(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Jobs that no live runner serves end in exit code 1, with what to do for each finding."""
    jobs.enqueue("mail", queue="post")

    answer = cli("doctor", "--db", jobs.path)

    assert answer.code == 1
    assert "no live runner serves post" in answer.out
    assert "no live runner serves mail" in answer.out
    assert "runners: Start one: jobq work" in answer.out


def test_killed_runner_is_dead_at_once(cli: Cli, jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """A runner of this machine whose process is gone serves nothing, however short ago it has beaten."""
    (tmp_path / "tasks.py").write_text(
        "import jobq\nhandlers = jobq.Handlers()\n\n@handlers.job\ndef mail(payload: None) -> None: ...\n"
    )
    process = start("work", "-A", "tasks:handlers", "--db", jobs.path, cwd=tmp_path)
    wait_for(lambda: bool(jobs.store.runners()))
    alive = cli("doctor", "--db", jobs.path, "--json")
    process.kill()
    finish(process)
    jobs.enqueue("mail")

    answer = cli("doctor", "--db", jobs.path, "--json")

    assert found(alive)["runners"] == (True, "1 alive")
    assert answer.code == 1
    assert found(answer)["runners"] == (False, f"none alive; dead: process {process.pid} on {socket.gethostname()}")
    assert found(answer)["kinds"] == (False, "no live runner serves mail")


def test_expired_lease_is_wrong(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A lease that nobody took back is named."""
    job_id = jobs.enqueue("mail").id
    (lease,) = jobs.lease(kinds=["mail"], worker="w", length=0.1)
    while jobs.clock.now() <= lease.until:
        jobs.queues()

    answer = cli("doctor", "--db", jobs.path, "--json")

    assert answer.code == 1
    assert found(answer)["leases"] == (False, f"1 of 1 expired: jobs {job_id}")


def test_queued_jobs_of_a_retired_kind_are_wrong(cli: Cli, jobs: jobq.JobQueue) -> None:
    """They wait for ever until a runner that retires the kind cancels them."""
    jobs.enqueue("mail")
    jobs.handlers.retire("mail")
    jobs.queues()
    jobs.enqueue("other")

    answer = cli("doctor", "--db", jobs.path, "--json")

    assert found(answer)["retired kinds"] == (False, "jobs are queued of mail")


def test_paused_queue_with_jobs_is_wrong(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A forgotten pause is a finding."""
    jobs.enqueue("mail")
    jobs.pause("default")

    assert found(cli("doctor", "--db", jobs.path, "--json"))["pauses"] == (
        False,
        "paused with jobs waiting: default",
    )
