"""``jobq doctor``."""

import argparse

from jobq.cli.verbs import Verbs, no_options

_DESCRIPTION = """\
Look for what goes wrong in practice: the SQLite library and the file, handles of another SQLite library, the size of
the WAL, queues and kinds with jobs that no live runner serves, paused queues, expired leases, queued jobs of retired
kinds. Each finding says what to do. Nothing is changed. Exit code 1 when something is wrong."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("doctor", run, no_options, help="look for what is wrong", description=_DESCRIPTION)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.findings import more_findings
    from jobq.cli.output import say, say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        findings = [*jobs.doctor(), *more_findings(jobs)]
    wrong = [finding for finding in findings if not finding.ok]
    if arguments.json:
        say_json({"ok": not wrong, "findings": findings})
    else:
        rows = ((finding.check, "ok" if finding.ok else "WRONG", finding.detail) for finding in findings)
        table(("check", "", "found"), rows, none="nothing to look at")
        for finding in wrong:
            say(f"{finding.check}: {finding.fix or finding.detail}")
    return Exit.FAILED if wrong else Exit.DONE
