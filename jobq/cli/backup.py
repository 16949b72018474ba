"""``jobq backup``."""

import argparse
import os

from jobq.cli.options import Options
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Copy the whole database, as of one instant, to FILE. Workers and producers go on meanwhile. FILE is there as a whole or
not at all, and only its owner may read it. To restore it, stop every process that uses the job queue, remove the
database and its -wal and -shm files, and put FILE in its place. Exit code 4 when FILE exists."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("backup", run, _fill, help="copy the database while it is in use", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.positional("file", metavar="FILE", help="the copy, in a directory that exists")
    options.flag("--force", help="replace FILE if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Copy, and say how large it is."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json
    from jobq.cli.progress import make_bar
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        if arguments.json:
            size = jobs.backup(arguments.file, force=arguments.force)
        else:
            bar = make_bar(json=False, unit="pages")
            try:
                size = jobs.backup(
                    arguments.file,
                    force=arguments.force,
                    progress=lambda done, total: bar.update(done, total, "copying"),
                )
            finally:
                bar.close()
    path = os.path.abspath(arguments.file)
    if arguments.json:
        say_json({"path": path, "bytes": size})
    else:
        say(f"{size:,} bytes in {path}")
    return Exit.DONE
