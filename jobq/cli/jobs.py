"""``jobq job cancel``, ``requeue``, ``reschedule`` and ``wait``."""

import argparse

from jobq.cli.options import Options, duration, moment, priority, queue_name, whole_number
from jobq.cli.verbs import Verbs

_CANCEL = """\
Cancel jobs. A queued job is cancelled at once; a running one is asked to stop, and its handler decides when.
Exit code 4 when one of them had ended already, 3 when one is not there; the others are cancelled all the same.
With --children everything below them is cancelled too, and 4 means that nothing was left to cancel."""
_REQUEUE = """\
Let failed, cancelled or queued jobs run again now and from the start, attempts 0.
Exit code 4 when one of them was refused: it is running, has succeeded, or another job holds its dedupe key."""
_RESCHEDULE = "Change when a queued job runs, or its priority. Exit code 4 when the job is not queued."
_WAIT = """\
Wait until a job has ended. Exit code 0 when it succeeded, 1 when it failed or was cancelled, 75 when it went on for
longer than --timeout."""


def add_to(job: Verbs) -> None:
    """Add the verbs to the tree."""
    job.verb("cancel", run_cancel, _fill_cancel, help="cancel jobs", description=_CANCEL)
    job.verb("requeue", run_requeue, _fill_requeue, help="let jobs run again from the start", description=_REQUEUE)
    job.verb("reschedule", run_reschedule, _fill_reschedule, help="change when a queued job runs",
             description=_RESCHEDULE)
    job.verb("wait", run_wait, _fill_wait, help="wait until a job has ended", description=_WAIT)


def _fill_ids(options: Options) -> None:
    options.positional("ids", metavar="ID", nargs="+", type=whole_number, help="the jobs' ids")


def _fill_cancel(options: Options) -> None:
    _fill_ids(options)
    options.flag("--children", help="and everything below them: their parts, and the parts of these")


def _fill_requeue(options: Options) -> None:
    _fill_ids(options)
    options.add("--queue", metavar="QUEUE", type=queue_name, help="into another queue, which exists")
    options.flag("--dry-run", help="only say what would be done")


def _fill_reschedule(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")
    options.add("--delay", metavar="TIME", type=duration, help="so long from now: 90, 500ms, 1h30m, 2d; 0 is now")
    options.add("--run-at", metavar="WHEN", type=moment, help="at this ISO 8601 time with offset")
    options.add("--priority", metavar="N", type=priority, help="-1000 to 1000, or user, ingest, backfill")


def _fill_wait(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")
    options.add("--timeout", metavar="TIME", type=duration, help="at most so long; without it, as long as it takes")


def run_cancel(arguments: argparse.Namespace) -> int:
    """Cancel the jobs and say what became of each; one that is not there does not keep the others from it."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import note, say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        reached = dict.fromkeys(jobs.cancel(arguments.ids, children=arguments.children))
        ids = tuple(dict.fromkeys((*arguments.ids, *reached)))
        states = jobs.store.states(ids)
    outcomes = [{"id": number, "reached": number in reached, "state": states.get(number)} for number in ids]
    if arguments.json:
        say_json(outcomes)
    else:
        for outcome in outcomes:
            (note if outcome["state"] is None else say)(_sentence(**outcome))
    if len(states) < len(ids):
        return Exit.NOT_FOUND
    return Exit.DONE if (reached if arguments.children else len(reached) == len(ids)) else Exit.REFUSED


def _sentence(id: int, reached: bool, state: str | None) -> str:
    if state is None:
        return f"error: no job has the id {id}"
    if not reached:
        return f"job {id} had ended already: {state}"
    return f"job {id} {'cancelled' if state == 'cancelled' else 'asked to stop'}"


def run_requeue(arguments: argparse.Namespace) -> int:
    """Requeue the jobs and say which were refused, and why."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import note, say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        # A bare id raises the typed error, which says more than a list of refusals.
        ids = arguments.ids if len(arguments.ids) > 1 else arguments.ids[0]
        answer = jobs.requeue(ids, queue=arguments.queue, dry_run=arguments.dry_run, actor="user")
    if arguments.json:
        refused = [{"id": number, "why": why} for number, why in answer.refused]
        say_json({"ids": answer.ids, "refused": refused, "dry_run": arguments.dry_run})
    else:
        for number in answer.ids:
            say(f"job {number} {'would be requeued' if arguments.dry_run else 'requeued'}")
        for number, why in answer.refused:
            note(f"job {number} refused: {why}")
    return Exit.REFUSED if answer.refused else Exit.DONE


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
