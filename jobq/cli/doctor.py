"""``jobq doctor``."""

import argparse

from jobq.cli.options import Options
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Look for what goes wrong in practice: the SQLite library and the file, handles of another SQLite library, the file
system, permissions, the clock, the sizes of database and write-ahead log, queues and kinds with jobs that no live
runner serves, pauses, leases that ran out, queued jobs of retired kinds, schedules that cannot fire or are
overdue. Each finding says what to do. Nothing is changed. Exit code 1 when something is wrong."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("doctor", run, _fill, help="look for what is wrong", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.flag("--deep", help="read the whole file, and check that it is sound; takes time")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        findings = jobs.doctor(deep=arguments.deep)
    wrong = [finding for finding in findings if not finding.ok]
    if arguments.json:
        say_json({"ok": not wrong, "findings": findings})
    else:
        rows = ((finding.check, "ok" if finding.ok else "WRONG", finding.detail) for finding in findings)
        table(("check", "", "found"), rows, none="nothing to look at")
        for finding in wrong:
            say(f"{finding.check}: {finding.fix or finding.detail}")
    return Exit.FAILED if wrong else Exit.DONE
