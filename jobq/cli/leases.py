"""``jobq lease take`` and ``extend``: work for whatever can run a command."""

import argparse
import contextlib
from typing import Any

from jobq.cli.options import Options, duration, queue_name, whole_number
from jobq.cli.verbs import Verbs

_TAKE = """\
Take the best jobs for a worker that is no jobq process, and print each lease as a line of JSON: its id, its token, its
end ("until"), and the job with its payload. Keep what is printed: the other verbs are given it.
Exit code 75 when there is nothing to take, with --wait when that was so until the end of it."""
_EXTEND = """\
Let a lease last longer, counted from now, and print it anew: "cancel_requested" says whether somebody wants the work to
stop."""
#: What the descriptions of all verbs that are given a lease end with.
GIVEN = """
LEASE is a file with what `jobq lease take` printed, - for standard input, or the JSON text itself; its id and its token
are all that counts. With a lease that was lost, because another worker has taken the job over or the job has ended,
nothing is changed and the exit code is 4."""


def add_to(lease: Verbs) -> None:
    """Add the verbs to the tree."""
    lease.verb("take", run_take, _fill_take, help="take jobs and print their leases", description=_TAKE)
    lease.verb("extend", run_extend, _fill_extend, help="let a lease last longer", description=_EXTEND + GIVEN)


def fill_lease(options: Options) -> None:
    """Add the argument that names the lease."""
    options.positional("lease", metavar="LEASE", help="a file, - for standard input, or JSON text")


def _fill_take(options: Options) -> None:
    options.add("--kind", metavar="KIND", repeated=True, help="only jobs of this kind; may be repeated")
    options.add("--queue", metavar="QUEUE", type=queue_name, repeated=True,
                help="only jobs in this queue; may be repeated")
    options.add("--worker", metavar="NAME",
                help="who takes them, for people; host and process of the caller unless told")
    options.add("--limit", metavar="N", type=whole_number, default=1, help="at most so many; 1 unless told")
    options.add("--length", metavar="TIME", type=duration, help="how long the leases last; as configured unless told")
    options.add("--wait", metavar="TIME", type=duration, help="wait at most so long for something to take")
    options.add("--payload", metavar="FILE", help="write the payload of the one job into this file, as JSON")


def _fill_extend(options: Options) -> None:
    fill_lease(options)
    options.add("--length", metavar="TIME", type=duration, help="so long from now; as long as before unless told")


def run_take(arguments: argparse.Namespace) -> int:
    """Take jobs and print their leases; those that could not be handed over are given back at once."""
    from jobq.cli.exits import Exit, Stop  # start-up cost
    from jobq.cli.target import open_target
    from jobq.errors import JobqError

    if arguments.payload is not None and arguments.limit > 1:
        raise Stop(Exit.USAGE, "one file holds one payload", fix="Leave out --limit or --payload.")
    with open_target(arguments) as jobs:
        leases = jobs.lease(
            arguments.kind,
            arguments.queue,
            worker=arguments.worker or _caller(),
            limit=arguments.limit,
            length=arguments.length,
            wait=arguments.wait,
        )
        if not leases:
            _note_nothing(jobs, arguments)
            return Exit.BUSY
        try:
            _hand_over(leases, arguments.payload)
        except BaseException:
            # Nobody has them, so nobody should have to wait until they expire.
            for lease in leases:
                with contextlib.suppress(JobqError):
                    jobs.release(lease)
            raise
    return Exit.DONE


def run_extend(arguments: argparse.Namespace) -> int:
    """Renew a lease and print it."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.lease_text import print_lease, read_lease
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        print_lease(jobs.extend(read_lease(jobs, arguments.lease), arguments.length))
    return Exit.DONE


def _caller() -> str:
    """Return the name of the process that holds the lease: this one ends at once."""
    import os  # start-up cost
    import socket

    return f"{socket.gethostname()}:{os.getppid()}:lease"


def _note_nothing(jobs: Any, arguments: argparse.Namespace) -> None:
    from jobq.cli.enqueue import is_known  # start-up cost
    from jobq.cli.output import note

    for kind in arguments.kind or ():
        if not is_known(jobs, kind):
            note(f"note: no handler or job knows the kind {kind}")
    if not arguments.wait:
        note("nothing to take")


def _hand_over(leases: list[Any], payload: str | None) -> None:
    from jobq.cli.lease_text import print_lease  # start-up cost

    if payload is not None:
        _write(payload, leases[0].job.payload)
    for lease in leases:
        print_lease(lease)


def _write(path: str, payload: Any) -> None:
    import json  # start-up cost

    from jobq.cli.exits import Exit, Stop

    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{json.dumps(payload)}\n")
    except OSError as error:
        raise Stop(Exit.FAILED, f"the payload cannot be written into {path}: {error.strerror}") from error
