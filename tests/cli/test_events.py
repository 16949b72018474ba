"""``jobq events tail``, and the event log of ``jobq work``."""

import json
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.observe.rotating import RotatedFile
from tests.cli.conftest import Answer, finish, start

Run = Callable[..., Answer]

TASKS = """
import jobq

handlers = jobq.Handlers()

@handlers.job
def hello(payload):
    '''Say nothing.'''
"""


def line(number: int, kind: str = "Shipped", **data: Any) -> str:
    """Return a line of an event log."""
    return json.dumps({"ts": f"2024-01-01T00:00:{number:02}.500+00:00", "kind": kind, "data": {"n": number, **data}})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An event log in several files, with a line that was cut short."""
    path = tmp_path / "jobs.db.events.jsonl"
    file = RotatedFile(path, max_bytes=300, backups=9)
    file.append(line(number, "Odd" if number % 2 else "Even") for number in range(20))
    file.append(['{"ts": "2024', line(20, "Even", at="x", none=None, text="a b\x1b[2J")])
    file.close()
    return path


def test_worker_keeps_an_event_log_beside_the_database(cli: Run, tmp_path: Path) -> None:
    """With every change of its jobs, for its owner only; tail reads it without opening the database."""
    (tmp_path / "tasks.py").write_text(TASKS)
    cli("job", "enqueue", "hello", "--db", "jobs.db")
    cli("work", "--burst", "-A", "tasks:handlers", "--db", "jobs.db")
    log = tmp_path / "jobs.db.events.jsonl"
    Path("jobs.db").write_bytes(b"broken")

    told = cli("events", "tail", "--db", "jobs.db", "--json")

    assert [one["data"]["state"] for one in told.lines] == ["running", "succeeded"]
    assert {(one["kind"], one["data"]["job_id"]) for one in told.lines} == {("JobStateChanged", 1)}
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_worker_keeps_no_log_that_is_turned_off(cli: Run, tmp_path: Path) -> None:
    """By an empty name in the configuration; another name is another file."""
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "off.toml").write_text('[log]\nevents_file = ""\n')
    work = ("work", "--burst", "-A", "tasks:handlers", "--db", "jobs.db")
    assert cli(*work, "--config", "off.toml").code == 0
    assert not list(tmp_path.glob("*.jsonl"))

    asked = cli("events", "tail", "--db", "jobs.db", "--config", "off.toml")
    assert (asked.code, "turned off" in asked.err) == (3, True)

    cli("job", "enqueue", "hello", "--db", "jobs.db")
    assert cli(*work, "--set", "log.events_file=mine.jsonl").code == 0
    assert len((tmp_path / "mine.jsonl").read_text().splitlines()) == 2


def test_worker_refuses_a_log_that_cannot_be_written(cli: Run, tmp_path: Path) -> None:
    """Before it runs anything."""
    (tmp_path / "tasks.py").write_text(TASKS)

    answer = cli("work", "--burst", "-A", "tasks:handlers", "--db", "jobs.db", "--set", "log.events_file=no/a.jsonl")

    assert answer.code == 2
    assert "events_file" in answer.err
    assert "fix: " in answer.err


def test_tail_prints_the_newest_for_people(cli: Run, log: Path) -> None:
    """The oldest of them first, escaped; a line that is no event is passed over and counted."""
    answer = cli("events", "tail", "-n", 2, "--db", "jobs.db")

    assert answer.out.splitlines() == [
        "2024-01-01 00:00:19.500Z Odd n=19",
        "2024-01-01 00:00:20.500Z Even n=20 text=a b\\x1b[2J",
    ]
    assert "no events, or were cut short when their process was killed: 1" in answer.err


def test_tail_reads_rotated_files_and_chooses_kinds(cli: Run, log: Path) -> None:
    """Ten unless told; of the wanted kinds only."""
    assert [one["data"]["n"] for one in cli("events", "tail", "--file", log, "--json").lines] == list(range(11, 21))
    odd = cli("events", "tail", "--file", log, "--json", "--kind", "Odd", "--lines", 9)
    assert [one["data"]["n"] for one in odd.lines] == list(range(3, 21, 2))
    both = cli("events", "tail", "--file", log, "--json", "--kind", "Odd", "--kind", "Even", "-n", 100)
    assert len(both.lines) == 21


def test_tail_passes_over_what_looks_like_an_event(cli: Run, tmp_path: Path) -> None:
    """Whatever somebody wrote into the file: it is counted, or printed as it is."""
    file = tmp_path / "odd.jsonl"
    told = '"kind": "x", "data": {}}'
    file.write_text(f'{{"kind": ["x"], "data": {{}}}}\n[1]\n{{"ts": "\\u001b", {told}\n{{{told}\n')

    answer = cli("events", "tail", "--file", file, "--kind", "x")

    assert (answer.code, answer.out) == (0, "\\x1b x\n- x\n")
    assert "no events, or were cut short when their process was killed: 2" in answer.err


def test_tail_of_none_is_silent(cli: Run, log: Path) -> None:
    """It is for -f, to see only what comes."""
    answer = cli("events", "tail", "--file", log, "-n", 0)

    assert (answer.code, answer.out) == (0, "")


def test_tail_of_a_log_that_is_not_there(cli: Run) -> None:
    """Not found, and what makes one."""
    answer = cli("events", "tail", "--db", "jobs.db")

    assert (answer.code, "jobs.db.events.jsonl" in answer.err, "fix: " in answer.err) == (3, True, True)
    assert cli("events", "tail").code == 2


def test_tail_of_a_programs_job_queue(cli: Run, tmp_path: Path) -> None:
    """It reads the log that the program configures."""
    made = 'jobq.open("own.db", config=jobq.Config(events_file="own.jsonl"))'
    (tmp_path / "owner.py").write_text(f'import jobq\njobs = {made}\njobs.enqueue("k")\n')

    assert [one["data"]["state"] for one in cli("events", "tail", "-A", "owner:jobs", "--json").lines] == ["queued"]


def test_tail_follows_other_processes_over_rotations(tmp_path: Path) -> None:
    """Each event as it comes, until it is interrupted."""
    config = jobq.Config(events_file=str(tmp_path / "a.jsonl"), file_max_bytes=1_024, file_backups=20)
    with jobq.open(tmp_path / "jobs.db", config=config) as jobs:
        jobs.enqueue("k")
        tail = start("events", "tail", "-f", "--json", "--file", "a.jsonl", cwd=tmp_path)
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["data"]["job_id"] == 1
        for _ in range(30):
            jobs.enqueue("k")
        followed = [json.loads(tail.stdout.readline())["data"]["job_id"] for _ in range(30)]
    tail.send_signal(signal.SIGINT)

    assert finish(tail).code == 130
    assert followed == list(range(2, 32))
    assert len(list(tmp_path.glob("a.jsonl.*"))) > 3
