"""No text that a caller controls reaches a terminal as anything but text, or SQL as anything but a value."""

import json
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]

#: A title of the window, a cleared screen, text that runs backwards, a line of its own, and a bit of SQL.
NASTY = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u2066\x9b31m\r\nroot: ok\u2028'); DROP TABLE jobq_job; --"
#: The same for names, which take no control character.
NAME = "\u202egpj\u2066'); DROP TABLE jobq_job; --\u200b"
#: Format characters, separators of lines, control characters and lone surrogates.
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


@contextmanager
def opened(folder: Path) -> Iterator[jobq.JobQueue]:
    """Open the files of a directory, with a handler in whose every text is the nasty one."""
    files = {f"{name}_file": folder / f"{name}.log" for name in ("events", "trace")}
    with jobq.open(folder / "jobs.db", clock=FakeClock(), config=jobq.Config(**files)) as jobs:  # type: ignore[arg-type]

        @jobs.job(name=NAME, max_attempts=2, retry=jobq.RetryPolicy(base=3600), gate=NAME, intake=True)
        def nasty(payload: Any, job: jobq.RunningJob) -> Any:
            job.progress(1, 2, NASTY)
            job.log.info(NASTY, field=NASTY)
            job.trace("sent", NASTY)
            if payload == "defers":
                raise jobq.Deferred(delay="1h", reason=NASTY)
            if payload == "fails":
                raise jobq.PermanentJobError(NASTY, code=NASTY)
            if payload == "later":
                raise ValueError(NASTY)
            return {NASTY: NASTY}

        yield jobs


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files of a job queue in whose every text is the nasty one: rows, logs, event log, trace."""
    folder = tmp_path_factory.mktemp("originals")
    with opened(folder) as jobs:
        texts = {"tenant_id": NASTY, "subject": NASTY, "meta": {NASTY: NASTY}}
        jobs.labels.set(NASTY, NASTY, NASTY)
        for payload in ("defers", "fails", "later", {NASTY: [NASTY]}):
            jobs.enqueue(NAME, payload, dedupe_key=f"{NASTY}{payload}", **texts)  # type: ignore[arg-type]
        assert jobq.Runner(jobs).drain().failed == 1
        jobs.enqueue(NAME, {NASTY: NASTY}, parent_id=1, **texts)  # type: ignore[arg-type]
        jobs.enqueue("outside", {NASTY: NASTY}, priority=1000, **texts)  # type: ignore[arg-type]
        jobs.lease("outside", worker=NASTY)
        jobs.enqueue("outside", {NASTY: NASTY}, **texts)  # type: ignore[arg-type]
        jobs.pause("default", who=NASTY, why=NASTY)
        jobs.pause(kind=NAME, who=NASTY, why=NASTY)
        jobs.schedules.add(NAME, every="1h", kind=NAME, payload={NASTY: NASTY})
        jobs.schedules.pause(NAME, who=NASTY, why=NASTY)
    return folder


@pytest.fixture
def told(originals: Path, tmp_path: Path) -> Iterator[jobq.JobQueue]:
    """A job queue on copies of them."""
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    with opened(tmp_path) as jobs:
        yield jobs


COMMANDS = [
    "job list", "job list --state failed", "job show 1", "job show 2", "job show 3", "job show 4", "job show 5",
    "job show 6", "job explain 1", "job explain 5", "job explain 7", "job requeue 2",
    "job requeue --kind NAME --dry-run",
    "job cancel 5", "job wait 4", "job wait 2", "job wait 999", "job show 999", "job reschedule 7 --delay 1m",
    "job enqueue NASTY", "job enqueue NAME NASTY", "job enqueue outside --subject NASTY", "job retriage NASTY",
    "job list --state NASTY", "job list --queue NASTY", "job list --kind NASTY", "job show NASTY",
    "queue list", "queue pause NASTY", "queue resume default", "queue pause default --why NASTY", "kind list",
    "kind retries NAME", "kind pause NASTY", "kind pause NAME --why NASTY", "schedule list", "schedule next NAME",
    "schedule next NASTY", "schedule run NAME", "schedule remove NAME", "schedule add NASTY --every 1h --kind outside",
    "schedule add other --every NASTY --kind outside", "schedule add other --cron NASTY --kind outside",
    "schedule pause NASTY", "schedule resume NAME", "lease take --kind outside --worker NASTY", "lease complete NASTY",
    "changes", "changes --job 2", "stats", "events tail", "trace tail", "trace tail --job 4", "prune --dry-run", "heal",
    "doctor", "watch --max-runtime 0", "backup NASTY/NASTY", "config check NASTY", "--set NASTY=1 job list",
    "--set jobs.lease=NASTY job list", "NASTY",
]  # fmt: skip

#: With ``--json`` these print a line for each thing.
STREAMS = ("events", "trace", "watch")


def arguments(command: str) -> list[str]:
    """Return the words of a command, with the texts in their places."""
    return [word.replace("NASTY", NASTY).replace("NAME", NAME) for word in command.split()]


def check(text: str) -> None:
    """Nothing in it moves a cursor, colours, reverses or hides anything."""
    found = {letter for letter in text if letter != "\n" and unicodedata.category(letter) in UNSEEN}
    assert not found
    # A line that somebody else's text began would be one of ours.
    assert not [line for line in text.splitlines() if line.startswith("root: ok")]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_printed_is_text(cli: Cli, told: jobq.JobQueue, command: str) -> None:
    """For people and for programs, whatever a listing shows or a complaint repeats; and the rows are still there."""
    before = len(told.find(limit=None))
    for words in ([], ["--json"]):
        answer = cli("--db", told.path, *words, *arguments(command))
        check(answer.out)
        check(answer.err)
        assert "Traceback" not in answer.err
        if words and answer.out and answer.code == 0:
            documents = answer.out.splitlines() if command.startswith(STREAMS) else [answer.out]
            assert [json.loads(document) for document in documents]
    assert len(told.find(limit=None)) >= before


def test_texts_come_back_as_they_were(told: jobq.JobQueue) -> None:
    """Nothing of them is SQL, and nothing is lost by storing them."""
    job = told.get(4)

    assert job.payload == {NASTY: [NASTY]}
    assert (job.tenant_id, job.subject, job.meta) == (NASTY, NASTY, {NASTY: NASTY})
    assert job.dedupe_key == f"{NASTY}{job.payload}"
    assert [found.id for found in told.find(subject=NASTY, tenant_id=NASTY, kind=NAME)] == [5, 4, 3, 2, 1]
    assert told.labels.get(NASTY) == {NASTY: NASTY}
    assert told.queues()[0].paused_why == NASTY


def test_a_line_of_a_file_is_a_line_whatever_is_in_it(told: jobq.JobQueue, tmp_path: Path) -> None:
    """Event log and trace are JSON, a line each, without anything that moves a cursor or breaks a line."""
    for name in ("events.log", "trace.log"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text
        assert [json.loads(line) for line in text.splitlines()]
        check(text)
