"""``jobq doctor``."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

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


def test_deep_look_reads_the_whole_file(cli: Cli, jobs: jobq.JobQueue) -> None:
    """It is a check of its own."""
    assert found(cli("doctor", "--db", jobs.path, "--json", "--deep"))["integrity"][0]
    assert "integrity" not in found(cli("doctor", "--db", jobs.path, "--json"))


def test_damaged_file_is_wrong(cli: Cli, tmp_path: Path) -> None:
    """A page in the middle: exit code 1, and the backup is named as what to do."""
    with jobq.open(tmp_path / "jobs.db") as jobs:
        jobs.enqueue("k", "x" * 50_000)
    with (tmp_path / "jobs.db").open("r+b") as file:
        file.seek(-3 * 4096, 2)
        file.write(b"\xa5" * 4096)

    answer = cli("doctor", "--db", "jobs.db", "--deep")

    assert answer.code == 1
    assert "integrity: Stop every process" in answer.out
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        pytest.param(None, 3, "no database at", id="missing"),
        pytest.param(b"", 3, "no job queue in", id="empty"),
        pytest.param(b"Dear diary, " * 500, 1, "not a database", id="no database"),
        pytest.param(b"SQLite format 3\0" + b"\xa5" * 5_000, 1, "not a database", id="broken header"),
    ],
)
def test_file_that_is_no_job_queue_gets_a_sentence(
    cli: Cli, tmp_path: Path, content: bytes | None, code: int, says: str
) -> None:
    """With a fix, without a traceback, and its bytes are left as they are."""
    if content is not None:
        (tmp_path / "a.db").write_bytes(content)

    answer = cli("doctor", "--db", "a.db", "--deep")

    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert "fix: " in answer.err
    assert "Traceback" not in answer.err
    assert ((tmp_path / "a.db").read_bytes() if content is not None else None) == content
