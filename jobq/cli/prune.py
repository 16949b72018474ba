"""``jobq prune``."""

import argparse
from typing import Any

from jobq.cli.options import Options, duration, one_of
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Remove jobs that ended long ago: their rows, payloads, results and run histories. Queued and running jobs are never
touched, and a job stays while one of its children has not ended. Without --older-than jobs go by the retention of the
configuration: succeeded and cancelled after 7 days, failed after 30, unless it says otherwise.
Workers go on meanwhile, and the free space is given back to the file system. Runners do the same by themselves."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("prune", run, _fill, help="remove jobs that ended long ago", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.add("--state", metavar="STATE", type=one_of("succeeded", "failed", "cancelled"),
                help="only jobs that ended in this state")
    options.add("--older-than", metavar="TIME", type=duration,
                help="that ended at least so long ago: 12h, 30d; 0 is all")
    options.flag("--dry-run", help="only count them")
    options.flag("--yes", help="do not ask; needed where there is no terminal")


def run(arguments: argparse.Namespace) -> int:
    """Count, ask, remove, and say how many it were."""
    from jobq.cli.consent import require  # start-up cost
    from jobq.cli.exits import Exit
    from jobq.cli.progress import following
    from jobq.cli.target import open_target

    chosen = {"state": arguments.state, "older_than": arguments.older_than}
    with open_target(arguments) as jobs:
        found = jobs.prune(**chosen, dry_run=True)
        if arguments.dry_run:
            _tell(arguments, found)
            return Exit.DONE
        if found.total:
            require(f"Remove {_jobs(found)}?", yes=arguments.yes)
        with following("pruning", unit="jobs", total=found.total, json=arguments.json) as progress:
            gone = jobs.prune(**chosen, progress=progress)
        _tell(arguments, gone)
    return Exit.DONE


def _tell(arguments: argparse.Namespace, answer: Any) -> None:
    from jobq.cli.output import say, say_json  # start-up cost

    if arguments.json:
        say_json({"counts": answer.counts, "total": answer.total, "kept": answer.kept, "dry_run": arguments.dry_run})
        return
    say(f"{_jobs(answer)} {'would be removed' if arguments.dry_run else 'removed'}")
    if answer.kept:
        say(f"{answer.kept:,} kept because of their children")


def _jobs(answer: Any) -> str:
    named = ", ".join(f"{count:,} {state}" for state, count in answer.counts.items() if count)
    return f"{answer.total:,} job{'' if answer.total == 1 else 's'}" + (f" ({named})" if named else "")
