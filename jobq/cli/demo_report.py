"""What ``jobq demo`` says at its end: the totals, what could not be hashed, and what to try next."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator

from jobq.cli.demo_run import DemoRun
from jobq.cli.exits import Exit, Stop
from jobq.cli.output import code, facts, note, say_json
from jobq.examples.filenames import sum_line, to_name, to_text
from jobq.examples.hashing import newest, parts, runs
from jobq.jobqueue import JobQueue
from jobq.model.job import JobInfo, JobState

#: So many problems are listed for people; all of them are in the database.
_SHOWN = 20


def print_report(jobs: JobQueue, demo: DemoRun, *, json: bool, sums: str | None) -> int:
    """Print it and return the exit code: FAILED only when the totals could not be made."""
    parent = demo.parent
    if parent is None or parent.result is None:
        error = parent.last_error if parent else None
        raise Stop(Exit.FAILED, f"the files could not be added up: {error}", fix="Run the same command again.")
    if sums:
        _write_sums(jobs, to_text(demo.directory), sums)
    problems = [*_failed(jobs, to_text(demo.directory)), *((to_text(path), None, why) for path, why in demo.troubles)]
    rate = demo.hashed / demo.seconds if demo.seconds else 0.0
    if json:
        say_json(
            {
                "event": "finished",
                "directory": to_text(demo.directory),
                "database": jobs.path,
                "files": parent.result["files"],
                "bytes": parent.result["size"],
                "failed": parent.result["failed"],
                "jobs": demo.hashed,
                "settled_before": demo.ledger.settled,
                "seconds": round(demo.seconds, 3),
                "jobs_per_second": round(rate, 1),
                "sums": sums,
                "problems": [{"path": path, "job_id": number, "why": why} for path, number, why in problems],
            },
            line=True,
        )
        return Exit.DONE
    _list_problems(problems)
    print()
    facts(
        (
            ("files", f"{parent.result['files']:,}"),
            ("bytes", f"{parent.result['size']:,}"),
            ("not hashed", f"{len(problems):,}"),
            *((("jobs", f"{demo.hashed:,} in {demo.seconds:.1f} s, {rate:,.0f} per second"),) if demo.hashed else ()),
            *((("not repeated", f"{demo.ledger.settled:,} settled by earlier runs"),) if demo.ledger.settled else ()),
            ("database", jobs.path),
            *((("sums", sums),) if sums else ()),
        )
    )
    _suggest(jobs, demo, problems)
    return Exit.DONE


def _write_sums(jobs: JobQueue, subject: str, file: str) -> None:
    try:
        with open(file, "wb") as output:
            for info in newest(jobs, subject):
                if info.state is JobState.SUCCEEDED and info.subject is not None:
                    output.write(sum_line(jobs.get(info.id).result["sha256"], to_name(info.subject)))
    except OSError as error:
        raise Stop(Exit.FAILED, f"writing {file}: {error.strerror}", fix="Name a file that can be written.") from error


def _failed(jobs: JobQueue, subject: str) -> Iterator[tuple[str, int, str]]:
    """Yield the files whose newest job did not succeed."""
    for run in runs(jobs, subject):
        for info in _unsuccessful(jobs, run.id):
            path = info.subject or "?"
            latest = jobs.find(kind="hash_file", subject=path, limit=1)
            if latest and latest[0].id == info.id and os.path.lexists(to_name(path)):
                yield path, info.id, code(info.failure_reason) or info.last_error or info.state


def _unsuccessful(jobs: JobQueue, parent_id: int) -> Iterator[JobInfo]:
    for state in (JobState.FAILED, JobState.CANCELLED):
        yield from parts(jobs, parent_id, state=state)


def _list_problems(problems: list[tuple[str, int | None, str]]) -> None:
    if problems:
        note("not hashed:")
    for path, number, why in problems[:_SHOWN]:
        note(f"  {path}: {why}" + (f" (job {number})" if number else ""))
    if len(problems) > _SHOWN:
        note(f"  and {len(problems) - _SHOWN:,} more")


def _suggest(jobs: JobQueue, demo: DemoRun, problems: list[tuple[str, int | None, str]]) -> None:
    command = f"{_program()} --db {shlex.quote(jobs.path)}"
    assert demo.parent is not None
    note("")
    note("try next:")
    note(f"  {command} stats")
    note(f"  {command} job show {demo.parent.id}")
    note(f"  {command} job list --parent {demo.parent.id} --limit 10")
    if any(number for _, number, _ in problems):
        note(f"  {command} job list --state failed")
    note(f"  {command} kind retries hash_file")


def _program() -> str:
    """Return how this command was called, as a shell takes it."""
    called = sys.argv[0]
    if os.path.basename(called) != "jobq":
        return f"{shlex.quote(sys.executable)} -m jobq"
    found = shutil.which("jobq")
    return "jobq" if found and os.path.realpath(found) == os.path.realpath(called) else shlex.quote(called)
