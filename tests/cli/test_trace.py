"""``jobq trace tail``."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.model.lease import Claim
from jobq.observe.trace import Trace, entry_of
from jobq.testing import FakeClock, running_job
from tests.cli.conftest import Answer, finish, start

Cli = Callable[..., Answer]


def write(file: Path, *texts: str, job_id: int = 1, **options: Any) -> None:
    """Write entries of a job."""
    claim: Claim = running_job(id=job_id, kind="ask").claim
    trace = Trace(str(file), **options)
    for text in texts:
        trace.write(entry_of(claim, "sent", text, FakeClock().now()))
    trace.file.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a trace."""
    return tmp_path / "trace.log"


def test_the_newest_entries_are_printed_the_oldest_first(cli: Cli, file: Path) -> None:
    """Each with a heading and its text below, escaped line by line."""
    write(file, "first", "second\nline \x1b[31m", "third")

    answer = cli("trace", "tail", "--file", file, "-n", 2)

    heading = "2024-01-01 00:00:00.000Z job 1 ask, attempt 1, sent"
    expected = f"{heading}\n  second\n  line \\x1b[31m\n{heading}\n  third\n"
    assert (answer.code, answer.out, answer.err) == (0, expected, "")


def test_entries_of_one_job_across_rotations(cli: Cli, file: Path) -> None:
    """As JSON lines, unescaped and whole."""
    for number in range(6):
        write(file, f"{number} " + "x" * 700, job_id=number % 2 + 1, max_bytes=1_000, backups=9)
    assert file.with_name("trace.log.2").exists()

    answer = cli("trace", "tail", "--file", file, "--job", 2, "--json")

    assert [(line["job_id"], line["text"][:1]) for line in answer.lines] == [(2, "1"), (2, "3"), (2, "5")]


def test_what_is_no_entry_is_counted(cli: Cli, file: Path) -> None:
    """A torn line, or somebody else's."""
    write(file, "good")
    with file.open("a", encoding="utf-8") as more:
        more.write('[1]\n{"text": 5}\n{"torn')

    answer = cli("trace", "tail", "--file", file)

    assert "good" in answer.out
    assert "2" in answer.err


def test_the_file_comes_from_the_configuration(cli: Cli, file: Path, tmp_path: Path) -> None:
    """Of a file of settings, or of a program."""
    write(file, "hello")
    (tmp_path / "jobq.toml").write_text(f"[trace]\nfile = {json.dumps(str(file))}\n")
    (tmp_path / "asks.py").write_text(
        f"import jobq\njobs = jobq.open('a.db', config=jobq.Config(trace_file={str(file)!r}))\n"
    )
    for arguments in (("--config", "jobq.toml"), ("-A", "asks:jobs")):
        answer = cli("trace", "tail", *arguments)
        assert (answer.code, "hello" in answer.out) == (0, True), answer.err


def test_a_trace_that_is_off_or_not_there_is_not_found(cli: Cli, file: Path) -> None:
    """With what to do about it."""
    off, missing = cli("trace", "tail"), cli("trace", "tail", "--file", file)
    assert (off.code, missing.code) == (3, 3)
    assert "trace.file" in off.err
    assert str(file) in missing.err


def test_follow_goes_on_until_interrupted(file: Path, tmp_path: Path) -> None:
    """With what other processes write, over a rotation."""
    write(file, "before")
    process = start("trace", "tail", "--file", file, "-f", "--json", cwd=tmp_path)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["text"] == "before"
        for number in range(4):
            write(file, f"{number} " + "x" * 600, max_bytes=1_000, backups=5)
            assert json.loads(process.stdout.readline())["text"][:1] == str(number)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130


def test_a_reader_that_was_too_slow_says_so(file: Path, tmp_path: Path) -> None:
    """The file that it had read was rotated away, and perhaps what followed it."""
    write(file, "before")
    process = start("trace", "tail", "--file", file, "-f", "--json", cwd=tmp_path)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["text"] == "before"
    process.send_signal(signal.SIGSTOP)
    for number in range(4):
        write(file, f"{number} " + "x" * 900, max_bytes=1_000, backups=1)
    process.send_signal(signal.SIGCONT)
    while not json.loads(process.stdout.readline())["text"].startswith("3"):
        pass
    # The notes of a look follow its lines: what comes at the next one comes behind them.
    write(file, "after")
    assert json.loads(process.stdout.readline())["text"] == "after"
    process.send_signal(signal.SIGINT)

    assert "the file that was read has gone; entries may be missing" in finish(process).err


def test_a_program_without_trace_prints_nothing_of_it(cli: Cli, jobs: jobq.JobQueue) -> None:
    """The database says nothing of a trace."""
    assert cli("trace", "tail", "--db", jobs.path).code == 3
