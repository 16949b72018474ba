"""``jobq job retriage`` and ``jobq heal``."""

import argparse

from jobq.cli.options import Options
from jobq.cli.verbs import Verbs, no_options

_RETRIAGE = """\
Forget what machines said of a subject and let its intake jobs run again, in one transaction. Intake jobs are those of
kinds that are registered with intake=True. Labels that people set stay.
Exit code 3 when there is nothing to do for the subject, 4 when one of its jobs was refused: it is running or has
succeeded, say."""
_HEAL = """\
Requeue the failed jobs whose class is transient and that have rested for 15 minutes, each at most three times, as
runners do with self_heal = true in the configuration. Unrecoverable ones stay as they are; their number is shown."""


def add_retriage_to(job: Verbs) -> None:
    """Add the verb to those of jobs."""
    job.verb("retriage", run_retriage, _fill, help="sort a subject anew", description=_RETRIAGE)


def add_heal_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("heal", run_heal, no_options, help="requeue what failed for a cause that passes", description=_HEAL)


def _fill(options: Options) -> None:
    options.positional("subject", metavar="SUBJECT", help="the subject's text")


def run_retriage(arguments: argparse.Namespace) -> int:
    """Retriage one subject and say what came of it."""
    from jobq.cli.exits import Exit, Stop  # start-up cost
    from jobq.cli.output import note, say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        machine = jobs.labels.get(arguments.subject, layer="machine")
        answer = jobs.retriage(arguments.subject, actor="user")
    if not machine and not answer.ids and not answer.refused:
        raise Stop(Exit.NOT_FOUND, f"{arguments.subject!r} has no machine label and no intake job")
    if arguments.json:
        refused = [{"id": number, "why": why} for number, why in answer.refused]
        say_json({"subject": arguments.subject, "labels": machine, "ids": answer.ids, "refused": refused})
    else:
        for name, value in machine.items():
            say(f"label {name}={value} forgotten")
        for number in answer.ids:
            say(f"job {number} requeued")
        for number, why in answer.refused:
            note(f"job {number} refused: {why}")
    return Exit.REFUSED if answer.refused else Exit.DONE


def run_heal(arguments: argparse.Namespace) -> int:
    """Heal what can be, and say what is left."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json
    from jobq.cli.progress import following
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        transient = jobs.count_failed(unrecoverable=False)
        with following("healing", unit="jobs", total=transient, json=arguments.json) as progress:
            ids = jobs.self_heal(progress=progress)
        failed, unrecoverable = jobs.count_failed(), jobs.count_failed(unrecoverable=True)
    if arguments.json:
        say_json({"ids": ids, "failed": failed, "unrecoverable": unrecoverable})
    else:
        say(f"{len(ids):,} healed; {failed:,} failed are left, of which {unrecoverable:,} are unrecoverable")
    return Exit.DONE
