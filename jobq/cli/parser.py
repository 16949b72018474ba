"""The tree of commands. Modules of the nouns add their verbs to it; nothing here opens a database."""

import argparse

from jobq.cli import (
    backup,
    changes,
    config,
    demo,
    doctor,
    enqueue,
    events,
    explain,
    jobs,
    kinds,
    leases,
    listing,
    many,
    mending,
    prune,
    queues,
    schedules,
    settling,
    stats,
    trace,
    watch,
    work,
)
from jobq.cli.completion import PrintCompletion
from jobq.cli.environment import from_environment
from jobq.cli.options import Collect, Options, add_flag
from jobq.cli.verbs import Fill, Run

_EPILOG = """\
exit codes: 0 done, 1 it failed, 2 usage, 3 not found, 4 refused, 75 busy, timed out or nothing to do: try again later,
130 interrupted. A TIME is seconds, or numbers with d, h, m, s and ms, the largest first: 90, 500ms, 1h30m, 2d.
Each option can be given by the environment variable that its help names; NO_COLOR turns colours off.
A setting is what --set says, else its variable, else the --config file, else the default: `jobq config check --help`.
Data goes to standard output, everything else to standard error."""


class Commands:
    """The verbs of one noun, or the verbs that need none."""

    def __init__(self, group: "argparse._SubParsersAction[argparse.ArgumentParser]", *path: str) -> None:
        self._group = group
        self._path = path

    def verb(
        self,
        name: str,
        run: Run,
        fill: Fill,
        *,
        help: str,
        description: str | None = None,
        formatter: type[argparse.HelpFormatter] = argparse.RawDescriptionHelpFormatter,
    ) -> None:
        """Add a verb: ``run`` gets the parsed arguments and returns the exit code."""
        parser = self._group.add_parser(
            name,
            help=help,
            description=description or f"{help[0].upper()}{help[1:]}.",
            epilog=_EPILOG,
            formatter_class=formatter,
            allow_abbrev=False,
        )
        _add_common(parser, default=False)
        fill(Options(parser, *self._path, name))
        parser.set_defaults(run=run)

    def noun(self, name: str, *, help: str) -> "Commands":
        """Add a noun, whose verbs are added to the answer."""
        parser = self._group.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=_EPILOG,
                                        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
        _add_common(parser, default=False)
        verbs = parser.add_subparsers(metavar="VERB", required=True, title="verbs")
        return Commands(verbs, *self._path, name)


class _Version(argparse.Action):
    """Prints the version; looking it up is too slow to be done for each command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit."""
        from importlib.metadata import version  # start-up cost

        print(f"jobq {version('jobq')}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, with the environment's values as defaults."""
    parser = argparse.ArgumentParser(
        prog="jobq",
        description="Durable jobs in one SQLite file: enqueue, run, look at and mend them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument("--print-completion", action=PrintCompletion, metavar="SHELL",
                        help="print what bash, zsh or tcsh needs to complete commands, and exit")
    _add_common(parser, default=True)
    commands = Commands(parser.add_subparsers(metavar="COMMAND", required=True, title="commands"))
    demo.add_to(commands)
    work.add_to(commands)
    job = commands.noun("job", help="enqueue, look at and change jobs")
    enqueue.add_to(job)
    listing.add_to(job)
    explain.add_to(job)
    many.add_to(job)
    mending.add_retriage_to(job)
    jobs.add_to(job)
    queues.add_to(commands.noun("queue", help="look at, pause and resume queues"))
    kinds.add_to(commands.noun("kind", help="look at, pause and resume kinds"))
    schedules.add_to(commands.noun("schedule", help="look at, add, pause and run schedules"))
    lease = commands.noun("lease", help="take jobs and end them, for a worker that can run commands")
    leases.add_to(lease)
    settling.add_to(lease)
    trace.add_to(commands.noun("trace", help="read the trace"))
    events.add_to(commands.noun("events", help="read the event log"))
    config.add_to(commands.noun("config", help="check and print the configuration"))
    stats.add_to(commands)
    changes.add_to(commands)
    mending.add_heal_to(commands)
    watch.add_to(commands)
    prune.add_to(commands)
    backup.add_to(commands)
    doctor.add_to(commands)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, default: bool) -> None:
    """Add the options of every command. They may stand before or after the verb; only the root has their defaults."""

    def of(variable: str) -> str | None:
        return from_environment(variable) if default else argparse.SUPPRESS

    group = parser.add_argument_group("common options")
    group.add_argument("-A", "--app", metavar="MODULE:ATTR", default=of("JOBQ_APP"),
                       help="a JobQueue, or a Handlers together with --db; the directory is importable [JOBQ_APP]")
    group.add_argument("--db", metavar="PATH", default=of("JOBQ_DB"), help="the database file [JOBQ_DB]")
    group.add_argument("--config", metavar="FILE", default=of("JOBQ_CONFIG"),
                       help="read settings from this TOML file [JOBQ_CONFIG]")
    # The verb's own do not replace those before it.
    group.add_argument("--set", metavar="KEY=VALUE", action=Collect, dest="set_first" if default else "set",
                       help="one setting, such as jobs.lease=90s; may be repeated, and each has a variable too")
    add_flag(group, parser, "--json", variable="JOBQ_JSON", default=None if default else argparse.SUPPRESS,
             help="print JSON for programs: one document, or a line each for streams")
