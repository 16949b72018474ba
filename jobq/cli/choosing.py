"""Which jobs a verb is about: ids, or what they have in common."""

import argparse
from typing import Any

from jobq.cli.options import Options, duration, one_of, queue_name, whole_number

STATES = ("queued", "running", "succeeded", "failed", "cancelled")


def add_filter(options: Options, *, queue: str = "--queue") -> None:
    """Add the options that narrow a search; ``queue`` is the flag of the queue."""
    options.add("--state", metavar="STATE", type=one_of(*STATES), help=f"one of {', '.join(STATES)}")
    options.add("--kind", metavar="KIND", help="only this kind")
    options.add(queue, metavar="QUEUE", type=queue_name, help="only this queue")
    options.add("--parent", metavar="ID", type=whole_number, help="only parts of this job")
    options.add("--tenant", metavar="TEXT", help="only this tenant")
    options.add("--subject", metavar="TEXT", help="only this subject")
    options.add("--dedupe-key", metavar="KEY", help="only this key; jobs that ended keep theirs for the record")
    options.add("--reason", metavar="CODE", help="only this failure reason, such as timeout")
    options.add("--older-than", metavar="TIME", type=duration, help="only what ended, or was made, so long ago")
    options.add("--newer-than", metavar="TIME", type=duration, help="only what ended, or was made, since then")
    options.add("--before", metavar="ID", type=whole_number, help="only jobs with a lower id")


def add_choice(options: Options) -> None:
    """Add ids, the filter that may stand for them, and what a verb that changes many jobs needs."""
    options.positional("ids", metavar="ID", nargs="*", type=whole_number, help="the jobs' ids, or a filter instead")
    add_filter(options, queue="--in-queue")
    options.add("--limit", metavar="N", type=whole_number, help="at most the newest so many")
    options.flag("--dry-run", help="only say what would be done")
    options.flag("--yes", help="do not ask; needed where there is no terminal")


def filter_of(arguments: argparse.Namespace, *, queue: str = "queue") -> dict[str, Any]:
    """Return the keywords of ``find`` that the options say."""
    named = {
        "state": arguments.state,
        "kind": arguments.kind,
        "queue": getattr(arguments, queue),
        "parent_id": arguments.parent,
        "tenant_id": arguments.tenant,
        "subject": arguments.subject,
        "dedupe_key": arguments.dedupe_key,
        "failure_reason": arguments.reason,
        "older_than": arguments.older_than,
        "newer_than": arguments.newer_than,
        "before": arguments.before,
        "limit": arguments.limit,
    }
    return {name: value for name, value in named.items() if value is not None}


def chosen(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the filter, or None where ids are named; neither or both is a usage error."""
    from jobq.cli.exits import Exit, Stop  # start-up cost

    where = filter_of(arguments, queue="in_queue")
    if arguments.ids and where:
        raise Stop(Exit.USAGE, "ids and a filter were named", fix="Leave one of them out.")
    if not arguments.ids and not where:
        raise Stop(Exit.USAGE, "no job is named", fix="Give ids, or a filter such as --state failed --kind KIND.")
    return where or None


def check_names(jobs: Any, where: dict[str, Any]) -> None:
    """Refuse a kind, a queue or a parent that is not there: mistyped, it would look like nothing to do."""
    from jobq.cli.enqueue import is_known  # start-up cost
    from jobq.errors import JobNotFound, QueueNotFound, UnknownKind
    from jobq.model.nearest import suggestion

    kind, queue, parent = where.get("kind"), where.get("queue"), where.get("parent_id")
    if kind is not None and not is_known(jobs, kind):
        raise UnknownKind(kind, fix=suggestion(kind, (one.name for one in jobs.kinds())))
    queues = () if queue is None else tuple(one.name for one in jobs.queues(hidden=True))
    if queue is not None and queue not in queues:
        raise QueueNotFound(queue, known=queues)
    if parent is not None and not jobs.store.states((parent,)):
        raise JobNotFound(parent)
