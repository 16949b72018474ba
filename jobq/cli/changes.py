"""``jobq changes``."""

import argparse
from typing import Any

from jobq.cli.options import Options, whole_number
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Print what was done by hand, or by self-heal, newest first: when, by whom, what, and what it was before and after.
Lines about a job outlive the job."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("changes", run, _fill, help="print what was done by hand", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.add("--job", metavar="ID", type=whole_number, help="only what was done to this job")
    options.add("--subject", metavar="TEXT", help="only what was done to this subject as a whole")
    options.add("--limit", metavar="N", type=whole_number, default=50, help="at most so many; 50 unless told")


def run(arguments: argparse.Namespace) -> int:
    """Print the newest lines of the change log."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        lines = jobs.changes(arguments.job, subject=arguments.subject, limit=arguments.limit)
    if arguments.json:
        say_json(lines)
    else:
        table(("at", "actor", "what", "about", "from", "to"), map(_row, lines), none="nothing was done by hand")
    return Exit.DONE


def _row(line: Any) -> tuple[object, ...]:
    about = f"job {line.job_id}" if line.subject is None else line.subject
    return (line.at, line.actor, line.what, about, _words(line.before), _words(line.after))


def _words(values: Any) -> str | None:
    return " ".join(f"{name}={value}" for name, value in values.items()) or None
