"""``jobq trace tail``."""

import argparse

from jobq.cli.options import Options, whole_number, whole_or_zero
from jobq.cli.verbs import Verbs

_TAIL = """\
Print the newest entries of the trace, the oldest of them first, also those in files that were rotated. With -f go on
with each entry that comes, from whichever process, until interrupted. Nothing in it is redacted.

The trace is the file of --file, else of the setting trace.file. The database is not opened."""


def add_to(trace: Verbs) -> None:
    """Add the verb to the tree."""
    trace.verb("tail", run_tail, _fill, help="print the newest entries", description=_TAIL)


def _fill(options: Options) -> None:
    options.add("-n", "--lines", metavar="N", type=whole_or_zero, default=10, help="how many; 10 unless told")
    options.flag("-f", "--follow", help="go on with those that come")
    options.add("--job", metavar="ID", type=whole_number, help="only entries of this job")
    options.add("--file", metavar="FILE", help="read this trace; no database is needed then")


def run_tail(arguments: argparse.Namespace) -> int:
    """Print entries."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.tail import require_file
    from jobq.cli.tracetail import TraceTail

    path = _file(arguments)
    if not arguments.follow:
        fix = "Check the path; the first entry of a program that has the trace on makes the file."
        require_file(path, name="trace", fix=fix)
    with TraceTail(path, job=arguments.job, json=arguments.json) as tail:
        tail.show(arguments.lines)
        if arguments.follow:
            tail.follow()
    return Exit.DONE


def _file(arguments: argparse.Namespace) -> str:
    from jobq.cli.configuration import read_configuration  # start-up cost
    from jobq.cli.exits import Exit, Stop
    from jobq.cli.target import open_target

    if arguments.file:
        return str(arguments.file)
    if arguments.app:
        with open_target(arguments) as jobs:
            file = jobs.config.trace_file
    else:
        file = read_configuration(arguments).value().trace_file
    if not file:
        fix = "Set trace.file in the configuration of the program that runs the jobs, or name a --file."
        raise Stop(Exit.NOT_FOUND, "the trace is off", fix=fix)
    return file
