"""The trace: everything, in a file of its own, only where it is asked for."""

import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.observe import trace
from jobq.testing import FakeClock, running_job

PATIENCE = 20.0


def run(jobs: jobq.JobQueue, *entries: tuple[Any, Any]) -> int:
    """Run a job that traces these entries, and return its id."""

    @jobs.job(name="ask", queue="agents")
    def ask(payload: Any, job: jobq.RunningJob) -> None:
        for direction, text in entries:
            job.trace(direction, text)

    made = jobs.enqueue("ask")
    jobq.Runner(jobs).drain()
    assert made.id is not None
    return made.id


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the trace goes."""
    return tmp_path / "trace.log"


@pytest.fixture
def traced(open_again: Callable[..., jobq.JobQueue], file: Path) -> jobq.JobQueue:
    """A job queue with the trace on."""
    return open_again(config=jobq.Config(trace_file=file))


def lines(file: Path) -> list[Any]:
    """Return the entries of the file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_off_unless_asked_for(jobs: jobq.JobQueue) -> None:
    """No file, no event, no look at the arguments."""
    with jobs.bus.stream(jobq.TraceEntry, private=True) as stream:
        run(jobs, ("sent", "x"), (None, None))
        assert stream.get(timeout=0) is None
    assert jobs.tracing is None
    running_job().trace("sent", "by hand")


def test_entries_are_written_in_full(traced: jobq.JobQueue, file: Path, clock: FakeClock) -> None:
    """With the job's id and kind; nothing is redacted, the file is for its owner's eyes only."""
    file.touch(mode=0o644)
    job_id = run(traced, ("sent", "password=hunter2\nnext line"), ("received", "ä\0\ud800"))
    facts = {"ts": "2024-01-01T00:00:00.000+00:00", "job_id": job_id, "kind": "ask", "queue": "agents", "attempt": 1}

    assert lines(file) == [
        {**facts, "direction": "sent", "text": "password=hunter2\nnext line"},
        {**facts, "direction": "received", "text": "ä\0\ud800"},
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_text_that_is_too_long_is_cut_and_says_so(
    traced: jobq.JobQueue, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning stays."""
    monkeypatch.setattr(trace, "MOST_TEXT", 10)
    run(traced, ("sent", "0123456789abc"), ("sent", "0123456789"))
    first, second = lines(file)
    assert (first["text"], first["cut"]) == ("0123456789", 3)
    assert (second["text"], "cut" in second) == ("0123456789", False)


def test_it_is_rotated_by_size(open_again: Callable[..., jobq.JobQueue], file: Path) -> None:
    """With as many older ones as configured, each for its owner's eyes only."""
    jobs = open_again(config=jobq.Config(trace_file=file, trace_max_bytes=1_000, trace_backups=2))
    run(jobs, *(("sent", f"{number} " + "x" * 400) for number in range(20)))

    files = sorted(file.parent.glob("trace.log*"))
    assert [one.name for one in files] == ["trace.log", "trace.log.1", "trace.log.2"]
    assert all(one.stat().st_size <= 1_000 and stat.S_IMODE(one.stat().st_mode) == 0o600 for one in files)
    assert lines(file)[-1]["text"].startswith("19 ")


def test_each_entry_is_a_private_event(traced: jobq.JobQueue, file: Path) -> None:
    """Streams get it where they ask for private ones; listeners of its type always."""
    told: list[jobq.TraceEntry] = []
    traced.bus.subscribe(jobq.TraceEntry, told.append)
    with traced.bus.stream(private=True) as nosy, traced.bus.stream() as discreet:
        job_id = run(traced, ("sent", "hello"))
        kinds = [[type(event) for event in iter(lambda: stream.get(timeout=0), None)] for stream in (nosy, discreet)]  # noqa: B023

    assert [(entry.job_id, entry.direction, entry.text, entry.cut) for entry in told] == [(job_id, "sent", "hello", 0)]
    assert (jobq.TraceEntry in kinds[0], jobq.TraceEntry in kinds[1]) == (True, False)


@pytest.mark.parametrize(
    "entry", [("", "x"), ("s" * 41, "x"), ("a\nb", "x"), (None, "x"), ("sent", None), ("sent", b"x")]
)
def test_a_bad_entry_is_refused(traced: jobq.JobQueue, file: Path, entry: tuple[Any, Any], caplog: Any) -> None:
    """And nothing is written."""
    job_id = run(traced, entry)
    assert str(traced.get(job_id).last_error).startswith("ArgumentError")
    assert not file.exists()


def test_a_file_that_cannot_be_written_fails_no_job(
    open_again: Callable[..., jobq.JobQueue], tmp_path: Path, errors: Any
) -> None:
    """A runner says so when it starts; what a drain cannot write is counted, and told once."""
    jobs = open_again(config=jobq.Config(trace_file=tmp_path / "missing" / "trace.log"))
    with pytest.raises(jobq.ConfigError, match="trace_file"):
        jobq.Runner(jobs).start()

    job_id = run(jobs, ("sent", "x"), ("sent", "y"))

    assert jobs.get(job_id).state == "succeeded"
    assert jobs.tracing is not None
    assert jobs.tracing.file.lost == 2
    assert errors.take() == ["jobq.logfile.failed"]


def test_a_file_that_vanished_is_made_anew(traced: jobq.JobQueue, file: Path) -> None:
    """The next entry is in it."""
    run(traced, ("sent", "before"))
    file.unlink()
    traced.enqueue("ask")
    jobq.Runner(traced).drain()
    assert [line["text"] for line in lines(file)] == ["before"]


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    """Of several runs at once."""
    file = tmp_path / "trace.log"
    with jobq.open(config=jobq.Config(trace_file=file)) as jobs:
        barrier = threading.Barrier(4, timeout=PATIENCE)

        @jobs.job
        def ask(payload: Any, job: jobq.RunningJob) -> None:
            barrier.wait()
            for number in range(50):
                job.trace("sent", f"{payload}-{number} " + "x" * 1_000)

        made = [ask.enqueue(number) for number in range(4)]
        with jobq.Runner(jobs, workers={"default": 4}):
            for one in made:
                one.wait(PATIENCE)

    texts = [line["text"].split()[0] for line in lines(file)]
    assert sorted(texts) == sorted(f"{one}-{number}" for one in range(4) for number in range(50))
