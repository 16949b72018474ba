"""``jobq stats``."""

import argparse
from typing import Any

from jobq.cli.verbs import Verbs, no_options


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("stats", run, no_options, help="count jobs by state, queue and kind, and list the runners",
                  description="Count jobs by state, by queue and by kind, and list the runners with their last beat.")


def run(arguments: argparse.Namespace) -> int:
    """Print the counts."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        states = jobs.counts()
        queues = {queue.name: jobs.counts(queue=queue.name) for queue in jobs.queues()}
        kinds = {kind.name: jobs.counts(kind=kind.name) for kind in jobs.kinds()}
        runners = jobs.store.runners()
        now = jobs.clock.now()
    if arguments.json:
        listed = [_runner(row, now) for row in runners]
        say_json({"states": states, "queues": queues, "kinds": kinds, "runners": listed})
        return Exit.DONE
    for title, rows in (("state", {"all jobs": states}), ("queue", queues), ("kind", kinds)):
        table((title, *states), ((name, *counts.values()) for name, counts in rows.items()), none=f"no {title} yet")
        print()
    columns = ("runner", "host", "pid", "queues", "last beat")
    rows_ = ((r.id, r.host, r.pid, " ".join(r.queues), f"{(now - r.beat_at).total_seconds():.0f} s ago")
             for r in runners)
    table(columns, rows_, none="no runner")
    return Exit.DONE


def _runner(row: Any, now: Any) -> dict[str, object]:
    return {**row._asdict(), "beat_age": (now - row.beat_at).total_seconds()}
