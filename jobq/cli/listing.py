"""``jobq job list`` and ``jobq job show``."""

import argparse
from typing import Any

from jobq.cli.choosing import add_filter, check_names, filter_of
from jobq.cli.options import Options, whole_number
from jobq.cli.verbs import Verbs

#: The columns of a list that fit where there is no terminal.
_WIDE = ("prio", "attempts", "due or ended")
_CODES = ("failure_reason", "reason")
_OF_A_RUN = ("worker", "started_at", "ended_at", "reason", "failure_class", "error")
_LIST = """\
List jobs, newest first, without payloads and results. For the next page give --before the lowest id of this one.
Exit code 3 when a kind, queue or parent is named that is not there."""
_SHOW = """\
Show one job: every column that says something, its payload and result, the runs that did not succeed, what was done
by hand, and what it logged. --json shows the empty columns as well."""


def add_to(job: Verbs) -> None:
    """Add the verbs to the tree."""
    job.verb("list", run_list, _fill_list, help="list jobs, newest first", description=_LIST)
    job.verb("show", run_show, _fill_show, help="show one job and its runs", description=_SHOW)


def _fill_list(options: Options) -> None:
    add_filter(options)
    options.add("--limit", metavar="N", type=whole_number, default=50, help="at most so many; 50 unless told")


def _fill_show(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")
    options.add("--lines", metavar="N", type=whole_number, default=50,
                help="at most so many of the newest lines that it logged; 50 unless told")


def run_list(arguments: argparse.Namespace) -> int:
    """Print the jobs that fit."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table, width
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        where = filter_of(arguments)
        found = jobs.find(**where)
        if not found:
            check_names(jobs, where)
    if arguments.json:
        say_json(found)
    else:
        narrow = width() is not None
        columns = ("id", "kind", "queue", "state", *(("tries", "when") if narrow else _WIDE), "about")
        table(columns, (_row(job, narrow=narrow) for job in found), none="no job fits", narrow=("kind", "queue"))
    return Exit.DONE


def _row(job: Any, *, narrow: bool) -> tuple[object, ...]:
    from jobq.cli.howfar import howfar  # start-up cost

    tries = f"{job.attempts}/{job.max_attempts}"
    when = job.finished_at or job.run_at
    far = howfar(job.progress) if job.state == "running" else None
    about = ": ".join(text for text in (job.subject, far, job.last_error) if text) or None
    rest = (tries, _short(when)) if narrow else (job.priority, tries, when)
    return (job.id, job.kind, job.queue, job.state, *rest, about)


def _short(when: Any) -> str:
    """Return an instant in the space that a terminal has: the time if it is today, else the day."""
    from datetime import UTC, datetime  # start-up cost

    return f"{when:%H:%M:%S}Z" if when.date() == datetime.now(UTC).date() else f"{when:%Y-%m-%d}"


def run_show(arguments: argparse.Namespace) -> int:
    """Print one job with its history."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import facts, say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        job = jobs.get(arguments.id)
        runs = jobs.history(arguments.id)
        changes = jobs.changes(arguments.id)
        lines = jobs.log_lines(arguments.id, limit=arguments.lines)
    if arguments.json:
        say_json({"job": job, "history": runs, "changes": changes, "lines": lines})
        return Exit.DONE
    facts(_filled(job))
    for run in runs:
        print(f"\nrun {run.number}, attempt {run.attempt}, did not succeed")
        facts(_filled(run, *_OF_A_RUN), indent="  ")
    if changes:
        print("\ndone by hand")
        rows = ((line.at, line.actor, line.what, line.before, line.after) for line in changes)
        table(("at", "actor", "what", "from", "to"), rows, none="none")
    if lines:
        print(f"\nlogged, the newest {len(lines)} lines" if len(lines) == arguments.lines else "\nlogged")
        said = ((line.at, line.attempt, line.level, _said(line)) for line in lines)
        table(("at", "attempt", "level", "event"), said, none="none")
    return Exit.DONE


def _said(line: Any) -> str:
    """Return a line of the log with its fields, but for a traceback, of which the last line says most."""
    fields = dict(line.fields)
    trace = fields.pop("exception", None)
    if isinstance(trace, str):
        fields["exception"] = trace.rstrip().rpartition("\n")[2]
    return " ".join((line.event, *(f"{name}={value}" for name, value in fields.items())))


def _filled(value: Any, *names: str) -> list[tuple[str, Any]]:
    """Return the columns that say something, all unless some are named; the payload does also when it is null."""
    pairs = ((name, getattr(value, name)) for name in names or [field.name for field in value.__attrs_attrs__])
    return [
        (name, _shown(name, item)) for name, item in pairs if name == "payload" or (item is not None and item != {})
    ]


def _shown(name: str, item: Any) -> Any:
    from jobq.cli.howfar import howfar  # start-up cost
    from jobq.cli.output import code

    if name == "progress":
        return howfar(item) or item
    return code(item) if name in _CODES else item
