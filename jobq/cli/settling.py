"""``jobq lease complete``, ``fail``, ``defer`` and ``release``."""

import argparse
from collections.abc import Callable
from typing import Any

from jobq.cli.leases import GIVEN, fill_lease
from jobq.cli.options import Options, duration, moment
from jobq.cli.verbs import Verbs

_COMPLETE = """\
End a job as succeeded. RESULT is JSON text, or - to read it from standard input, where nothing at all means null. A
result that is not JSON is exit code 2, and the lease goes on."""
_FAIL = """\
End a run as a failed attempt: the job is tried again later, or has failed for good when no attempt is left. WHY is what
went wrong, or - to read it from standard input; secrets are removed from it and it is cut to 500 characters."""
_DEFER = """\
Give a job back to come again later; the attempt is not counted. Either --delay or --until is needed."""
_RELEASE = """\
Give a job back unfinished, to be taken again at once; the attempt is not counted."""
_BECAME = {
    "succeeded": "succeeded",
    "retried": "failed and is tried again later",
    "failed": "failed for good",
    "deferred": "comes again later",
    "released": "was given back",
    "cancelled": "was cancelled, as somebody had asked",
}


def add_to(lease: Verbs) -> None:
    """Add the verbs to the tree."""
    lease.verb("complete", run_complete, _fill_complete, help="end a job as succeeded", description=_COMPLETE + GIVEN)
    lease.verb("fail", run_fail, _fill_fail, help="end a run as a failed attempt", description=_FAIL + GIVEN)
    lease.verb("defer", run_defer, _fill_defer, help="give a job back for later", description=_DEFER + GIVEN)
    lease.verb("release", run_release, fill_lease, help="give a job back unfinished", description=_RELEASE + GIVEN)


def _fill_complete(options: Options) -> None:
    fill_lease(options)
    options.positional("result", metavar="RESULT", nargs="?", help="JSON, or - for standard input; null unless given")


def _fill_fail(options: Options) -> None:
    fill_lease(options)
    options.positional("why", metavar="WHY", help="what went wrong, or - for standard input")
    options.add("--code", metavar="CODE", help="a word for it, kept as the job's failure reason")
    options.flag("--permanent", help="do not try again")


def _fill_defer(options: Options) -> None:
    fill_lease(options)
    options.add("--delay", metavar="TIME", type=duration, help="so long from now: 90, 500ms, 1h30m, 2d")
    options.add("--until", metavar="WHEN", type=moment, help="at this ISO 8601 time with offset")
    options.add("--reason", metavar="TEXT", help="why, for those who look at the job")


def run_complete(arguments: argparse.Namespace) -> int:
    """End a job as succeeded with the result that was given."""
    from jobq.cli.payload import read_result  # start-up cost

    _refuse_one_input_twice(arguments.lease, arguments.result)
    result = read_result(arguments.result)
    return _settle(arguments, lambda jobs, lease: jobs.complete(lease, result))


def run_fail(arguments: argparse.Namespace) -> int:
    """End a run as a failed attempt."""
    import sys  # start-up cost

    _refuse_one_input_twice(arguments.lease, arguments.why)
    why = sys.stdin.read().strip() if arguments.why == "-" else arguments.why
    return _settle(
        arguments,
        lambda jobs, lease: jobs.fail(lease, why, code=arguments.code, permanent=arguments.permanent),
    )


def run_defer(arguments: argparse.Namespace) -> int:
    """Give a job back for later."""
    from jobq.cli.exits import Exit, Stop  # start-up cost

    if (arguments.delay is None) == (arguments.until is None):
        raise Stop(Exit.USAGE, "when is not said, or said twice", fix="Add either --delay or --until.")
    return _settle(
        arguments,
        lambda jobs, lease: jobs.defer(
            lease, delay=arguments.delay, until=arguments.until, reason=arguments.reason
        ),
    )


def run_release(arguments: argparse.Namespace) -> int:
    """Give a job back unfinished."""
    return _settle(arguments, lambda jobs, lease: jobs.release(lease))


def _refuse_one_input_twice(lease: str, other: str | None) -> None:
    from jobq.cli.exits import Exit, Stop  # start-up cost

    if lease == other == "-":
        raise Stop(Exit.USAGE, "standard input cannot be both", fix="Keep the lease in a file and name that.")


def _settle(arguments: argparse.Namespace, end: Callable[[Any, Any], str]) -> int:
    """End the lease and say what became of its job."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.lease_text import read_lease
    from jobq.cli.output import say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        lease = read_lease(jobs, arguments.lease)
        verdict = end(jobs, lease)
    if arguments.json:
        say_json({"id": lease.id, "outcome": verdict})
    else:
        say(f"job {lease.id} {_BECAME[verdict]}")
    return Exit.DONE
