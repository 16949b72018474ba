"""``jobq work --outbox``: the relays of a program's outboxes run beside its workers."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

import jobq
from tests.cli.conftest import finish, start, wait_for

PROGRAM = """
import sqlite3
import jobq

jobs = jobq.open("jobs.db")
outbox = jobq.Outbox(jobs, connect=lambda: sqlite3.connect("host.sqlite"))
elsewhere = jobq.Outbox(jobq.open("other.db"), connect=lambda: sqlite3.connect("host.sqlite"))


@jobs.job
def quick(payload: dict) -> int:
    return payload["n"]
"""


def stage(count: int) -> None:
    """Stage jobs as the program does, in this process."""
    with jobq.open("jobs.db") as jobs, contextlib.closing(sqlite3.connect("host.sqlite")) as connection:
        outbox = jobq.Outbox(jobs, connect=lambda: sqlite3.connect("host.sqlite"))
        outbox.create_table()
        with connection, outbox.joined(connection):
            jobs.enqueue_many([jobq.NewJob("quick", {"n": number}) for number in range(count)])


def states() -> list[str]:
    """Return the states of all jobs."""
    with jobq.open("jobs.db") as jobs:
        return [str(job.state) for job in jobs.find(limit=None)]


@pytest.fixture(autouse=True)
def _program(tmp_path: Path) -> None:
    """A program with an outbox."""
    (tmp_path / "store.py").write_text(PROGRAM)


def test_burst_publishes_first_and_runs_what_was_staged(tmp_path: Path) -> None:
    """More rows than one tick takes are published and run, and the command ends."""
    stage(120)

    answer = finish(start("work", "-A", "store:jobs", "--outbox", "store:outbox", "--burst", cwd=tmp_path))

    assert answer.code == 0, answer.err
    assert states() == ["succeeded"] * 120


def test_burst_gets_past_rows_that_cannot_be_published(tmp_path: Path) -> None:
    """A tick that made no job is not the last one while there is more."""
    stage(101)
    with contextlib.closing(sqlite3.connect("host.sqlite")) as connection, connection:
        connection.execute("UPDATE jobq_outbox SET draft = 'broken' WHERE id <= 100")

    answer = finish(start("work", "-A", "store:jobs", "--outbox", "store:outbox", "--burst", cwd=tmp_path))

    assert (answer.code, states()) == (0, ["succeeded"]), answer.err


def test_a_worker_publishes_while_it_works(tmp_path: Path) -> None:
    """What is staged after its start is published and run; the variable names the outbox as the option does."""
    stage(0)
    process = start("work", "-A", "store:jobs", cwd=tmp_path, env={"JOBQ_WORK_OUTBOX": "store:outbox"})
    stage(3)

    wait_for(lambda: states() == ["succeeded"] * 3)
    process.terminate()
    assert finish(process).code == 0


@pytest.mark.parametrize(
    ("named", "said"),
    [
        pytest.param(
            "store:jobs", "store:jobs is no Outbox\nfix: In store these are: elsewhere, outbox.", id="no-outbox"
        ),
        pytest.param("store", "--outbox store: MODULE:ATTR is needed", id="no-attribute"),
        pytest.param("store:elsewhere", "one of them publishes into another file", id="another-file"),
    ],
)
def test_what_is_no_outbox_of_the_file_is_a_usage_error(tmp_path: Path, named: str, said: str) -> None:
    """The message says what the module has instead, or what to do."""
    answer = finish(start("work", "-A", "store:jobs", "--outbox", named, "--burst", cwd=tmp_path))

    assert answer.code == 2
    assert said in answer.err
