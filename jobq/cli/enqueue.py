"""``jobq job enqueue``."""

import argparse
from typing import Any

from jobq.cli.options import Options, duration, json_value, moment, one_of, priority, queue_name, whole_number
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Enqueue one job and print its id.

PAYLOAD is JSON text, or - to read it from standard input; none means null. The kind need not have a handler here.
With --dedupe-key, a queued or running job that holds the key is the answer and nothing is enqueued."""


def add_to(job: Verbs) -> None:
    """Add the verb to the tree."""
    job.verb("enqueue", run, _fill, help="enqueue one job", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.positional("kind", metavar="KIND", help="the name of the handler")
    options.positional("payload", metavar="PAYLOAD", nargs="?", help="JSON, or - for standard input")
    options.add("--queue", metavar="QUEUE", type=queue_name,
                help="instead of the kind's queue; a new name makes the queue")
    options.add("--priority", metavar="N", type=priority, help="-1000 to 1000, or user, ingest, backfill")
    options.add("--delay", metavar="TIME", type=duration, help="run not before so long from now: 90, 500ms, 1h30m, 2d")
    options.add("--run-at", metavar="WHEN", type=moment, help="run not before this ISO 8601 time with offset")
    options.add("--dedupe-key", metavar="KEY", help="at most one queued or running job holds a key")
    options.add("--max-attempts", metavar="N", type=whole_number, help="instead of the kind's number of attempts")
    options.add("--parent", metavar="ID", type=whole_number, help="the job that this one is a part of")
    options.add("--actor", metavar="WHO", type=one_of("user", "agent", "system"), default="user",
                help="who asked for it: user (the default), agent or system")
    options.add("--tenant", metavar="TEXT", help="the tenant that it is for")
    options.add("--subject", metavar="TEXT", help="what it is about")
    options.add("--meta", metavar="JSON", type=json_value, help="an object that is carried along")


def run(arguments: argparse.Namespace) -> int:
    """Enqueue the job and print its id, or the job that holds its key."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import note, say, say_json
    from jobq.cli.payload import read_payload
    from jobq.cli.target import open_target

    payload = read_payload(arguments.payload)
    with open_target(arguments, create=True) as jobs:
        strange = not is_known(jobs, arguments.kind)
        made = jobs.enqueue(arguments.kind, payload, join=False, **_settings(arguments))
        if arguments.json:
            say_json({"id": made.id, "created": made.created, "job": made.job})
        elif made.created:
            say(f"job {made.id} enqueued in queue {made.job.queue}")
        else:
            say(f"job {made.id} holds the key and is {made.job.state}; nothing enqueued")
    if strange:
        note(f"note: no handler or earlier job knows the kind {arguments.kind}; it waits until a worker does")
    return Exit.DONE


def is_known(jobs: Any, kind: str) -> bool:
    """Return whether a handler here, a registration or an earlier job knows the kind; no jobs are counted."""
    return bool(jobs.handlers.find(kind) or jobs.store.declared(kind) or jobs.find(kind=kind, limit=1))


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    named = {
        "queue": arguments.queue,
        "priority": arguments.priority,
        "delay": arguments.delay,
        "run_at": arguments.run_at,
        "dedupe_key": arguments.dedupe_key,
        "max_attempts": arguments.max_attempts,
        "parent_id": arguments.parent,
        "actor": arguments.actor,
        "tenant_id": arguments.tenant,
        "subject": arguments.subject,
        "meta": arguments.meta,
    }
    return {name: value for name, value in named.items() if value is not None}
