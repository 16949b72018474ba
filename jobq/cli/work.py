"""``jobq work``: runs jobs until it is told to stop, or until nothing is left."""

import argparse

from jobq.cli.options import Options, duration, whole_number
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Run jobs in worker threads until stopped. The handlers come from --app. What happens is written to the event log, beside
the database unless log.events_file says otherwise: see `jobq events tail`.

The first SIGTERM or SIGINT stops gracefully: nothing more is claimed, and running handlers get --grace to finish. The
second one asks them to stop at once, the third exits. Exit code 1 with --burst when a job failed for good."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("work", run, _fill, help="run jobs until stopped", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.flag("--burst", help="tick the schedules once, run what is due and exit when nothing is left")
    options.add("--max-jobs", metavar="N", type=whole_number,
                help="stop when so many runs have begun; each further thread may begin one more")
    options.add("--max-runtime", metavar="TIME", type=duration, help="stop after so long: 90, 500ms, 1h30m, 2d")
    options.add("--workers", metavar="QUEUE=N", type=_threads, repeated=True,
                help="serve this queue with N threads, and only queues named so; may be repeated")
    options.add("--outbox", metavar="MODULE:ATTR", repeated=True,
                help="publish the rows of this outbox too; may be repeated")
    options.add("--grace", metavar="TIME", type=duration, help="how long handlers may go on after a stop")
    options.flag("-v", "--verbose",
                 help="a line for each attempt, also when standard error is no terminal, and what handlers log")


def _threads(text: str) -> tuple[str, int]:
    queue, _, number = text.partition("=")
    if not queue or not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not like mail=2")
    return queue, whole_number(number)


def run(arguments: argparse.Namespace) -> int:
    """Work until a signal, a limit, or with --burst until nothing is due."""
    from jobq.cli.shift import Shift  # start-up cost
    from jobq.cli.signals import Signals
    from jobq.cli.target import load_outboxes, open_target
    from jobq.observe.eventlog import file_beside

    with open_target(arguments, create=True, work=True) as jobs, Signals() as signals:
        if jobs.config.events_file is None:
            jobs.log_events(file_beside(jobs.path))
        return Shift(jobs, signals, arguments, outboxes=load_outboxes(arguments)).work()
