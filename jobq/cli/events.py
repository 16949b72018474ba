"""``jobq events tail``."""

import argparse

from jobq.cli.options import Options, whole_or_zero
from jobq.cli.verbs import Verbs

_TAIL = """\
Print the newest events of the event log, the oldest of them first, also those in files that were rotated. With -f go on
with each event that comes, from whichever process, until interrupted.

The log is the file of --file, else of the setting log.events_file, else PATH.events.jsonl beside the database PATH,
where `jobq work` keeps it. The database is not opened."""


def add_to(events: Verbs) -> None:
    """Add the verb to the tree."""
    events.verb("tail", run_tail, _fill, help="print the newest events", description=_TAIL)


def _fill(options: Options) -> None:
    options.add("-n", "--lines", metavar="N", type=whole_or_zero, default=10, help="how many; 10 unless told")
    options.flag("-f", "--follow", help="go on with those that come")
    options.add("--kind", metavar="CLASS", repeated=True,
                help="only events of this class, such as JobStateChanged; may be repeated")
    options.add("--file", metavar="FILE", help="read this event log; no database is needed then")


def run_tail(arguments: argparse.Namespace) -> int:
    """Print events."""
    from jobq.cli.eventtail import EventTail
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.tail import require_file

    path = _file(arguments)
    if not arguments.follow:
        fix = "Check the path; `jobq work` makes one, and a program that sets log.events_file."
        require_file(path, name="event log", fix=fix)
    with EventTail(path, kinds=arguments.kind or (), json=arguments.json) as tail:
        tail.show(arguments.lines)
        if arguments.follow:
            tail.follow()
    return Exit.DONE


def _file(arguments: argparse.Namespace) -> str:
    from jobq.cli.exits import Exit, Stop
    from jobq.cli.target import find_target
    from jobq.observe.eventlog import file_beside

    if arguments.file:
        return str(arguments.file)
    database, config = find_target(arguments)
    if config.events_file == "":
        raise Stop(Exit.NOT_FOUND, "the event log is turned off", fix="Set log.events_file, or leave it out.")
    return config.events_file or file_beside(database)
