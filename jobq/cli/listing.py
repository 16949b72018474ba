"""``jobq job list`` and ``jobq job show``."""

import argparse
from typing import Any

from jobq.cli.options import Options, one_of, queue_name, whole_number
from jobq.cli.verbs import Verbs

_STATES = ("queued", "running", "succeeded", "failed", "cancelled")
_LIST = """\
List jobs, newest first, without payloads and results. For the next page give --before the lowest id of this one."""
_SHOW = "Show one job: every column, its payload and result, the runs that did not succeed, and what was done by hand."


def add_to(job: Verbs) -> None:
    """Add the verbs to the tree."""
    job.verb("list", run_list, _fill_list, help="list jobs, newest first", description=_LIST)
    job.verb("show", run_show, _fill_show, help="show one job and its runs", description=_SHOW)


def _fill_list(options: Options) -> None:
    options.add("--state", metavar="STATE", type=one_of(*_STATES), help=f"one of {', '.join(_STATES)}")
    options.add("--kind", metavar="KIND", help="only this kind")
    options.add("--queue", metavar="QUEUE", type=queue_name, help="only this queue")
    options.add("--parent", metavar="ID", type=whole_number, help="only parts of this job")
    options.add("--tenant", metavar="TEXT", help="only this tenant")
    options.add("--subject", metavar="TEXT", help="only this subject")
    options.add("--dedupe-key", metavar="KEY", help="only this key; jobs that ended keep theirs for the record")
    options.add("--reason", metavar="CODE", help="only this failure reason, such as timeout")
    options.add("--before", metavar="ID", type=whole_number, help="only jobs with a lower id")
    options.add("--limit", metavar="N", type=whole_number, default=50, help="at most so many; 50 unless told")


def _fill_show(options: Options) -> None:
    options.positional("id", metavar="ID", type=whole_number, help="the job's id")


def run_list(arguments: argparse.Namespace) -> int:
    """Print the jobs that fit."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        found = jobs.find(
            state=arguments.state,
            kind=arguments.kind,
            queue=arguments.queue,
            parent_id=arguments.parent,
            tenant_id=arguments.tenant,
            subject=arguments.subject,
            dedupe_key=arguments.dedupe_key,
            failure_reason=arguments.reason,
            before=arguments.before,
            limit=arguments.limit,
        )
    if arguments.json:
        say_json(found)
    else:
        columns = ("id", "kind", "queue", "state", "prio", "attempts", "due or ended", "about")
        table(columns, map(_row, found), none="no job fits")
    return Exit.DONE


def _row(job: Any) -> tuple[object, ...]:
    attempts = f"{job.attempts}/{job.max_attempts}"
    when = job.finished_at or job.run_at
    about = ": ".join(text for text in (job.subject, job.last_error) if text) or None
    return (job.id, job.kind, job.queue, job.state, job.priority, attempts, when, about)


def run_show(arguments: argparse.Namespace) -> int:
    """Print one job with its history."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import facts, plain, say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        job = jobs.get(arguments.id)
        runs = jobs.history(arguments.id)
        changes = jobs.changes(arguments.id)
    if arguments.json:
        say_json({"job": job, "history": runs, "changes": changes})
        return Exit.DONE
    facts((name, getattr(job, name)) for name in plain(job))
    if runs:
        print("\nruns that did not succeed")
        columns = ("run", "attempt", "worker", "started", "ended", "reason", "class", "error")
        table(columns, map(_run, runs), none="none")
    if changes:
        print("\ndone by hand")
        rows = ((line.at, line.actor, line.what, line.before, line.after) for line in changes)
        table(("at", "actor", "what", "from", "to"), rows, none="none")
    return Exit.DONE


def _run(run: Any) -> tuple[object, ...]:
    when = (run.started_at, run.ended_at)
    return (run.number, run.attempt, run.worker, *when, run.reason, run.failure_class, run.error)
