"""``jobq job reschedule`` and ``wait``."""

import argparse

from jobq.cli.options import Options, duration, moment, priority, whole_number
from jobq.cli.verbs import Verbs

_RESCHEDULE = "Change when a queued job runs, or its priority. Exit code 4 when the job is not queued."
_WAIT = """\
Wait until a job has ended. Exit code 0 when it succeeded, 1 when it failed or was cancelled, 75 when it went on for
longer than --timeout."""


def add_to(job: Verbs) -> None:
    """Add the verbs to the tree."""
    job.verb("reschedule", run_reschedule, _fill_reschedule, help="change when a queued job runs",
             description=_RESCHEDULE)
    job.verb("wait", run_wait, _fill_wait, help="wait until a job has ended", description=_WAIT)


def _fill_reschedule(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")
    options.add("--delay", metavar="TIME", type=duration, help="so long from now: 90, 500ms, 1h30m, 2d; 0 is now")
    options.add("--run-at", metavar="WHEN", type=moment, help="at this ISO 8601 time with offset")
    options.add("--priority", metavar="N", type=priority, help="-1000 to 1000, or user, ingest, backfill")


def _fill_wait(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")
    options.add("--timeout", metavar="TIME", type=duration, help="at most so long; without it, as long as it takes")


def run_reschedule(arguments: argparse.Namespace) -> int:
    """Change the due time or the priority of a queued job."""
    from jobq.cli.exits import Exit, Stop  # start-up cost
    from jobq.cli.output import say, say_json, shown
    from jobq.cli.target import open_target

    wanted = {"run_at": arguments.run_at, "delay": arguments.delay, "priority": arguments.priority}
    named = {name: value for name, value in wanted.items() if value is not None}
    if not named:
        raise Stop(Exit.USAGE, "nothing to change", fix="Add --delay, --run-at or --priority.")
    with open_target(arguments) as jobs:
        done = jobs.reschedule(arguments.id, **named)
        job = jobs.get(arguments.id)
    if arguments.json:
        say_json({"rescheduled": done, "job": job})
    elif done:
        say(f"job {job.id} runs at {shown(job.run_at)} with priority {job.priority}")
    if not done:
        raise Stop(Exit.REFUSED, f"job {job.id} is {job.state}, only queued jobs are rescheduled")
    return Exit.DONE


def run_wait(arguments: argparse.Namespace) -> int:
    """Wait for a job and print how it ended."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        job = jobs.wait(arguments.id, timeout=arguments.timeout)
    if arguments.json:
        say_json(job)
    else:
        say(f"job {job.id} {job.state}" + (f": {job.last_error}" if job.last_error else ""))
    return Exit.DONE if job.state == "succeeded" else Exit.FAILED
