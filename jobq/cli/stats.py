"""``jobq stats``."""

import argparse
from typing import Any

from jobq.cli.options import Options
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Count jobs by state, by queue and by kind, with those that ended within the last minute, and how long the oldest job
waits that a free worker could claim now; list the live runners. Nothing is locked. `jobq watch` shows the same live."""


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("stats", run, _fill, help="count jobs by state, queue and kind, and list the runners",
                  description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.flag("--all", help="hidden queues, too")


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.figures import figures
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        stats = jobs.stats()
    if arguments.json:
        say_json(figures(stats, hidden=arguments.all))
        return Exit.DONE
    columns = (*stats.total.states, "ended/min", "oldest runnable")
    for title, tallies in (
        ("state", {"all jobs": stats.total}),
        ("queue", stats.by_queue(hidden=arguments.all)),
        ("kind", stats.by_kind()),
    ):
        table((title, *columns), (_row(name, tally) for name, tally in tallies.items()), none=f"no {title} yet")
        print()
    rows = (_runner(runner, beat_age=(stats.at - runner.beat_at).total_seconds()) for runner in stats.runners)
    table(("runner", "host", "pid", "threads", "last beat"), rows, none="no runner")
    return Exit.DONE


def _runner(runner: Any, *, beat_age: float) -> tuple[object, ...]:
    from jobq.cli.figures import age  # start-up cost

    threads = " ".join(f"{queue}={number}" for queue, number in runner.queues.items())
    return runner.id, runner.host, runner.pid, threads, f"{age(beat_age)} ago"


def _row(name: str, tally: Any) -> tuple[object, ...]:
    from jobq.cli.figures import age  # start-up cost

    oldest = None if tally.oldest_runnable is None else age(tally.oldest_runnable)
    return (name, *tally.states.values(), sum(tally.last_minute.values()), oldest)
