"""Commands and logs on a disk that is full, or for reading only: a sentence, and nothing half done."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

import jobq
from jobq.cli import main
from tests.conftest import ErrorLog
from tests.crash.conftest import ROOT
from tests.crash.verbs import prepare
from tests.failing_files import OPEN, SYNC, TRUNCATE, WRITE, FailingFiles

FULL, READ_ONLY = apsw.SQLITE_FULL, apsw.SQLITE_READONLY
LOOKS = {
    "stats": ["stats"],
    "list": ["job", "list"],
    "explain": ["job", "explain", "1"],
    "doctor": ["doctor", "--deep"],
    "watch": ["watch", "--count", "1"],
    "changes": ["changes"],
}
WRITES = {
    "prune": ["prune", "--older-than", "0", "--yes"],
    "heal": ["heal"],
    "pause": ["queue", "pause", "default"],
    "cancel": ["job", "cancel", "1"],
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed file with something for each command."""
    path = tmp_path_factory.mktemp("template") / "jobs.db"
    prepare(path)
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(template, tmp_path / "jobs.db"))


def rows(path: Path) -> list[object]:
    """Return what jobs and changes there are."""
    with jobq.open(path) as jobs:
        return [jobs.find(limit=None), jobs.changes(), [queue.paused for queue in jobs.queues()]]


@pytest.mark.parametrize("code", [pytest.param(FULL, id="full"), pytest.param(READ_ONLY, id="read-only")])
@pytest.mark.parametrize("command", [*LOOKS.values(), *WRITES.values()], ids=[*LOOKS, *WRITES])
def test_a_command_on_a_bad_disk_says_so_and_leaves_the_rows_alone(
    failing: FailingFiles,
    path: Path,
    capsys: pytest.CaptureFixture[str],
    errors: ErrorLog,
    code: int,
    command: list[str],
) -> None:
    """From the first write on, and from the fourth: done, or refused with a sentence and a fix; never a traceback."""
    before = rows(path)
    for step in (1, 4):
        failing.arm(step, code, at=(WRITE, SYNC, TRUNCATE, OPEN), forever=True)
        answer = main([*command, "--db", str(path)])
        failing.disarm()
        told = capsys.readouterr()
        errors.take()
        assert "Traceback" not in told.err
        assert answer in (0, 1)
        if answer:
            assert str(path) in told.err or "doctor" in command
            assert rows(path) == before
    assert main([*command, "--db", str(path)]) in (0, 1 if "doctor" in command else 0)
    capsys.readouterr()


@pytest.mark.parametrize("code", [pytest.param(FULL, id="full"), pytest.param(READ_ONLY, id="read-only")])
def test_a_backup_on_a_bad_disk_leaves_no_file(
    failing: FailingFiles, path: Path, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    """Whichever write is the first that fails; and the backup that was there stays."""
    target = path.with_name("copy.db")
    for step in (1, 2, 3, 5, 8, 13, 21, 34, 55):
        target.write_text("old")
        failing.arm(step, code, at=(WRITE, SYNC, TRUNCATE, OPEN), forever=True)
        answer = main(["backup", str(target), "--force", "--db", str(path)])
        met = failing.disarm()
        assert "Traceback" not in capsys.readouterr().err
        assert sorted(one.name for one in path.parent.iterdir() if not one.name.startswith("jobs.db")) == ["copy.db"]
        if answer:
            assert target.read_text() == "old"
        if not met:
            assert answer == 0
            return
    raise AssertionError("the backup never passed")


READ_ONLY_LOG = """
import json, os, sys
import logging, structlog, jobq                        # while everything can be read
place, database = sys.argv[1:]
logging.basicConfig(level="ERROR")
log = os.path.join(place, "events.jsonl")

def writable(yes):
    if os.getuid() == 0:
        os.seteuid(0)                                   # root may write everywhere
        os.chown(place, 65534, 65534)
        os.chown(log, 65534, 65534)
    os.chmod(place, 0o755 if yes else 0o555)
    if os.getuid() == 0:
        os.seteuid(65534)

config = jobq.Config(events_file=log, file_max_bytes=4_000, file_backups=3)
with jobq.open(database, config=config) as jobs:
    jobs.enqueue("first")
    if os.getuid() == 0:
        os.chmod(os.path.dirname(database), 0o777)
        for end in ("", "-wal", "-shm"):
            os.chmod(database + end, 0o666)
    writable(False)
    for _ in range(40):
        jobs.enqueue("told")
    print("lost some", 0 < jobs.event_log.lost < 40, flush=True)
    print("no larger", os.path.getsize(log) <= 4_000, sorted(os.listdir(place)), flush=True)
    writable(True)
    for _ in range(10):
        jobs.enqueue("again")
    written, lost = jobs.event_log.written, jobs.event_log.lost
    print("counted", written + lost, jobs.counts()["queued"], flush=True)
lines = [line for name in os.listdir(place) for line in open(os.path.join(place, name))]
print("whole", len(lines) == written, all(json.loads(line)["kind"] for line in lines), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="the system has no users in this sense")
def test_an_event_log_in_a_directory_for_reading_only_costs_counted_events_and_no_job(tmp_path: Path) -> None:
    """It is not rotated and grows no further; what it could not take is counted; then it goes on, with whole lines."""
    (tmp_path / "script.py").write_text(READ_ONLY_LOG)
    with tempfile.TemporaryDirectory() as logs, tempfile.TemporaryDirectory() as place:
        command = [sys.executable, str(tmp_path / "script.py"), logs, os.path.join(place, "jobs.db")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.stdout.split("\n") == [
        "lost some True", "no larger True ['events.jsonl']", "counted 51 51", "whole True True", "",
    ], done.stderr  # fmt: skip
    assert done.stderr.count("jobq.logfile.failed") == 1
