"""``jobq queue list``, ``pause`` and ``resume``."""

import argparse

from jobq.cli.options import Options
from jobq.cli.pausing import answer, who_and_why
from jobq.cli.verbs import Verbs

_PAUSE = """\
Stop claims from a queue at once, in every process, until it is resumed. Running jobs finish; jobs may still be
enqueued. The pause outlives restarts."""


def add_to(queue: Verbs) -> None:
    """Add the verbs to the tree."""
    queue.verb("list", run_list, _fill_list, help="list the queues with what waits and runs in them")
    queue.verb("pause", run_pause, _fill_pause, help="stop claims from a queue", description=_PAUSE)
    queue.verb("resume", run_resume, _fill_name, help="let claims from a queue go on")


def _fill_list(options: Options) -> None:
    options.flag("--all", help="hidden queues, too")


def _fill_name(options: Options) -> None:
    options.positional("queue", metavar="QUEUE", help="the queue's name")


def _fill_pause(options: Options) -> None:
    _fill_name(options)
    who_and_why(options)


def run_list(arguments: argparse.Namespace) -> int:
    """Print every queue."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        queues = jobs.queues(hidden=arguments.all)
    if arguments.json:
        say_json([{**_columns(queue), "paused": queue.paused} for queue in queues])
        return Exit.DONE
    rows = ((queue.name, queue.queued, queue.running, "all" if queue.kinds is None else " ".join(queue.kinds) or "none",
             queue.paused_at, queue.paused_by, queue.paused_why) for queue in queues)
    columns = ("queue", "queued", "running", "accepts", "paused since", "by", "why")
    table(columns, rows, none="no queue yet", narrow=("accepts",))
    return Exit.DONE


def _columns(queue: object) -> dict[str, object]:
    from jobq.cli.output import plain  # start-up cost

    return dict(plain(queue))


def run_pause(arguments: argparse.Namespace) -> int:
    """Pause a queue; pausing a paused one changes nothing and is no error."""
    from jobq.cli.target import login_name, open_target  # start-up cost

    who = login_name() if arguments.who is None else arguments.who
    with open_target(arguments) as jobs:
        changed = jobs.pause(arguments.queue, who=who, why=arguments.why)
    return answer(arguments, "queue", changed=changed, paused=True)


def run_resume(arguments: argparse.Namespace) -> int:
    """Resume a queue; resuming one that is not paused changes nothing and is no error."""
    from jobq.cli.target import open_target  # start-up cost

    with open_target(arguments) as jobs:
        changed = jobs.resume(arguments.queue)
    return answer(arguments, "queue", changed=changed, paused=False)
