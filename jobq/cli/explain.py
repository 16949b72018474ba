"""``jobq job explain``."""

import argparse

from jobq.cli.options import Options, whole_number
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Say why a job is not running: paused, not due, capped, nobody there to run it, behind better ones. Every reason that
holds is given, the most important first, with the command that helps."""


def add_to(job: Verbs) -> None:
    """Add the verb to the tree."""
    job.verb("explain", run, _fill, help="say why a job is not running", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")


def run(arguments: argparse.Namespace) -> int:
    """Print the reasons."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        found = jobs.explain(arguments.id)
    if arguments.json:
        say_json(found)
        return Exit.DONE
    say(f"job {found.job_id}, kind {found.kind}, queue {found.queue}: {found.state}")
    for reason in found.reasons:
        say(f"- {reason.text}")
    return Exit.DONE
