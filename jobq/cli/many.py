"""``jobq job cancel`` and ``requeue``: the jobs that are named, or all that have something in common."""

import argparse
from typing import Any

from jobq.cli.choosing import add_choice, check_names, chosen
from jobq.cli.options import Options, queue_name
from jobq.cli.verbs import Verbs

_CANCEL = """\
Cancel jobs: those with these ids, or all that fit a filter, of which the queued and the running ones are meant.
A queued job is cancelled at once; a running one is asked to stop, and its handler decides when.
With a filter the number is shown and asked about; off a terminal --yes is needed.
Exit code 4 when one of the ids had ended already, 3 when one is not there; the others are cancelled all the same.
With --children everything below them is cancelled too, and 4 means that nothing was left to cancel."""
_REQUEUE = """\
Let failed, cancelled or queued jobs run again now and from the start, attempts 0, perhaps in another queue: those with
these ids, or all that fit a filter. With a filter the number is shown and asked about; off a terminal --yes is needed.
Exit code 4 when one of them was refused: it is running, has succeeded, or another job holds its dedupe key; 3 when one
is not there; the others are requeued all the same."""
#: So many refusals of a filter are told to people one by one.
_TOLD = 20


def add_to(job: Verbs) -> None:
    """Add the verbs to the tree."""
    job.verb("cancel", run_cancel, _fill_cancel, help="cancel jobs", description=_CANCEL)
    job.verb("requeue", run_requeue, _fill_requeue, help="let jobs run again from the start", description=_REQUEUE)


def _fill_cancel(options: Options) -> None:
    add_choice(options)
    options.flag("--children", help="and everything below them: their parts, and the parts of these")


def _fill_requeue(options: Options) -> None:
    add_choice(options)
    options.add("--queue", metavar="QUEUE", type=queue_name, help="into another queue, which exists")


def run_cancel(arguments: argparse.Namespace) -> int:
    """Cancel each job and say what became of it; one that is not there does not keep the others from it."""
    from jobq.cli.target import open_target  # start-up cost

    where = chosen(arguments)
    with open_target(arguments) as jobs:
        if where is not None:
            return _cancel_fitting(arguments, jobs, where)
        reached = jobs.cancel(arguments.ids, children=arguments.children, dry_run=arguments.dry_run)
        ids = tuple(dict.fromkeys((*arguments.ids, *reached)))
        states = jobs.store.states(ids)
    outcomes = [{"id": number, "reached": number in reached, "state": states.get(number)} for number in ids]
    return _tell_cancelled(arguments, outcomes, reached=len(reached))


def _cancel_fitting(arguments: argparse.Namespace, jobs: Any, where: dict[str, Any]) -> int:
    from jobq.cli.consent import require  # start-up cost
    from jobq.cli.exits import Exit
    from jobq.cli.output import say, say_json
    from jobq.cli.progress import following

    check_names(jobs, where)
    ids = jobs.cancel(where=where, children=arguments.children, dry_run=True)
    if ids and not arguments.dry_run:
        require(f"Cancel {_count(ids)}?", yes=arguments.yes)
        with following("cancelling", unit="jobs", total=len(ids), json=arguments.json) as progress:
            ids = jobs.cancel(where=where, children=arguments.children, progress=progress)
    if arguments.json:
        say_json({"ids": ids, "dry_run": arguments.dry_run})
    else:
        say(f"{_count(ids)} {'would be cancelled' if arguments.dry_run else 'cancelled or asked to stop'}")
    return Exit.DONE


def _tell_cancelled(arguments: argparse.Namespace, outcomes: list[dict[str, Any]], *, reached: int) -> int:
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import note, say, say_json

    if arguments.json:
        say_json(outcomes)
    else:
        for outcome in outcomes:
            (note if outcome["state"] is None else say)(_sentence(**outcome, dry=arguments.dry_run))
    if any(outcome["state"] is None for outcome in outcomes):
        return Exit.NOT_FOUND
    return Exit.DONE if (reached if arguments.children else reached == len(outcomes)) else Exit.REFUSED


def _sentence(id: int, reached: bool, state: str | None, *, dry: bool) -> str:
    if state is None:
        return f"error: no job has the id {id}"
    if not reached:
        return f"job {id} had ended already: {state}"
    done = "asked to stop" if state == "running" else "cancelled"
    return f"job {id} {'would be ' if dry else ''}{done}"


def run_requeue(arguments: argparse.Namespace) -> int:
    """Requeue the jobs and say which were refused, and why."""
    from jobq.cli.target import open_target  # start-up cost

    where = chosen(arguments)
    with open_target(arguments) as jobs:
        if where is not None:
            return _requeue_fitting(arguments, jobs, where)
        # A bare id raises the typed error, which says more than a list of refusals.
        ids = arguments.ids if len(arguments.ids) > 1 else arguments.ids[0]
        answer = jobs.requeue(ids, queue=arguments.queue, dry_run=arguments.dry_run, actor="user")
    done = "would be requeued" if arguments.dry_run else "requeued"
    return _tell_requeued(arguments, answer, [f"job {number} {done}" for number in answer.ids])


def _requeue_fitting(arguments: argparse.Namespace, jobs: Any, where: dict[str, Any]) -> int:
    from jobq.cli.consent import require  # start-up cost
    from jobq.cli.progress import following

    check_names(jobs, where)
    answer = jobs.requeue(where=where, queue=arguments.queue, dry_run=True)
    if answer.ids and not arguments.dry_run:
        require(f"Requeue {_count(answer.ids)}?", yes=arguments.yes)
        total = len(answer.ids) + len(answer.refused)
        with following("requeueing", unit="jobs", total=total, json=arguments.json) as progress:
            answer = jobs.requeue(where=where, queue=arguments.queue, actor="user", progress=progress)
    done = "would be requeued" if arguments.dry_run else "requeued"
    return _tell_requeued(arguments, answer, [f"{_count(answer.ids)} {done}"])


def _tell_requeued(arguments: argparse.Namespace, answer: Any, lines: list[str]) -> int:
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import note, say, say_json
    from jobq.model.job import NOT_FOUND

    if arguments.json:
        refused = [{"id": number, "why": why} for number, why in answer.refused]
        say_json({"ids": answer.ids, "refused": refused, "dry_run": arguments.dry_run})
    else:
        for line in lines:
            say(line)
        for number, why in answer.refused[:_TOLD]:
            note(f"job {number} refused: {why}")
        if len(answer.refused) > _TOLD:
            note(f"{len(answer.refused) - _TOLD:,} more refused; --json lists them all")
    if any(why == NOT_FOUND for _, why in answer.refused):
        return Exit.NOT_FOUND
    return Exit.REFUSED if answer.refused else Exit.DONE


def _count(ids: tuple[int, ...]) -> str:
    return f"{len(ids):,} job{'' if len(ids) == 1 else 's'}"
