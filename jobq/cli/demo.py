"""``jobq demo``: hashes every file of a directory through durable jobs."""

import argparse
import os

from jobq.cli.options import Options, whole_number
from jobq.cli.verbs import Verbs

#: Where the standard library is, as sysconfig says, too, but without importing that.
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
_DESCRIPTION = f"""\
Hash every file of a directory through durable jobs: one job per file computes its SHA-256 and size, a parent job adds
them up. Kill it whenever you like, with kill -9 too, and start it again: it continues, and a file that was hashed and
has not changed since is not hashed again. Links to files are followed, links to directories are not; what cannot be
read is reported at the end.

DIRECTORY is the standard library of the running Python unless named, with the site-packages inside it:
{_LIBRARY}
The database is ./jobq-demo.db unless --db says otherwise. --app is not used."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("demo", run, _fill, help="see it work: hash the files of a directory", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.positional("directory", metavar="DIRECTORY", nargs="?", help="what to hash")
    options.add("--workers", metavar="N", type=whole_number, help="worker threads; as many as processors, at most 4")
    options.add("--sums", metavar="FILE", help="write the sums to a file that `sha256sum -c` reads")


def run(arguments: argparse.Namespace) -> int:
    """Hash what is left to hash and print the totals."""
    import attrs  # start-up cost

    from jobq.cli.configuration import read_configuration
    from jobq.cli.demo_report import print_report
    from jobq.cli.demo_run import DemoRun
    from jobq.cli.exits import Exit, Stop
    from jobq.cli.output import note
    from jobq.cli.signals import Signals
    from jobq.examples.hashing import handlers
    from jobq.opening import open as open_queue

    directory = os.path.abspath(arguments.directory or _LIBRARY)
    if not os.path.isdir(directory):
        raise Stop(Exit.NOT_FOUND, f"no directory at {directory}", fix="Name one, or none for the standard library.")
    database = os.path.abspath(arguments.db or "jobq-demo.db")
    known = os.path.exists(database)
    loaded = read_configuration(arguments)
    # A short lease unless one is configured, so that the jobs of a killed run are taken back soon.
    config = loaded.value() if ("jobs", "lease") in loaded.sources else attrs.evolve(loaded.value(), lease=5)
    with open_queue(database, handlers=handlers, config=config) as jobs, Signals() as signals:
        told = "" if arguments.directory else ": the standard library, with the site-packages inside it"
        note(f"hashing {directory}{told}")
        note(f"{'continuing with' if known else 'making'} the database {database}")
        demo = DemoRun(jobs, signals, directory, workers=arguments.workers or min(4, os.cpu_count() or 1))
        if not demo.run(json=arguments.json):
            note("stopped; the same command continues where this one ended")
            return Exit.INTERRUPTED
        return print_report(jobs, demo, json=arguments.json, sums=arguments.sums)
