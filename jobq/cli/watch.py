"""``jobq watch``: what the job queue does now, until it is interrupted."""

import argparse
from collections.abc import Callable
from typing import Any

from jobq.cli.options import Options, duration, whole_number
from jobq.cli.verbs import Verbs

_DESCRIPTION = """\
Show what goes on, whichever process does it: queues, running jobs and how far they are, rates, how long the oldest job
waits that a free worker could claim now, and what failed last. Only rows are read; nothing is locked.

On a terminal it is a live view (with the extra jobq[cli]), elsewhere a line each time that something has changed; with
--json a line for each look. Leave it with Ctrl-C."""

#: A look that takes long, because millions of jobs are counted, is taken so many times its own time apart.
_SPARING = 10


def add_to(commands: Verbs) -> None:
    """Add the verb to the tree."""
    commands.verb("watch", run, _fill, help="show live what goes on", description=_DESCRIPTION)


def _fill(options: Options) -> None:
    options.add("--interval", metavar="TIME", type=duration, default="1", help="between two looks; 1 s unless told")
    options.add("--count", metavar="N", type=whole_number, help="leave after so many looks")
    options.flag("--all", help="hidden queues, too")


def run(arguments: argparse.Namespace) -> int:
    """Look again and again."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.signals import Signals
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs, Signals() as signals:
        view = _view(arguments, jobs.path)
        try:
            _look(jobs, view.show, signals, arguments)
        finally:
            view.close()
    return Exit.DONE


def _look(jobs: Any, show: Callable[[Any], None], signals: Any, arguments: argparse.Namespace) -> None:
    import time  # start-up cost

    looks = 0
    while not signals.count:
        started = time.monotonic()
        show(jobs.stats())
        looks += 1
        if looks == arguments.count:
            return
        took = time.monotonic() - started
        signals.wait(max(arguments.interval, _SPARING * took))


def _view(arguments: argparse.Namespace, path: str) -> Any:
    """Return what fits where the output goes."""
    import os  # start-up cost
    import sys

    from jobq.cli.output import note

    if arguments.json:
        return _Json(hidden=arguments.all)
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return _Lines()
    try:
        from jobq.cli.screen import Screen

        return Screen(path, hidden=arguments.all)
    except ImportError:
        note("install jobq[cli] for a live view")
        return _Lines()


class _Json:
    """A JSON line for each look."""

    def __init__(self, *, hidden: bool) -> None:
        self._hidden = hidden

    def show(self, stats: Any) -> None:
        from jobq.cli.figures import figures  # start-up cost
        from jobq.cli.output import say_json

        say_json(figures(stats, hidden=self._hidden), line=True)

    def close(self) -> None:
        """Leave the output as it is."""


class _Lines:
    """A line when something has changed."""

    def __init__(self) -> None:
        self._told = ""

    def show(self, stats: Any) -> None:
        import sys  # start-up cost

        from jobq.cli.figures import sentence
        from jobq.cli.output import write

        at, _, text = sentence(stats).partition(" ")
        if text != self._told:
            self._told = text
            write(sys.stdout, f"{at} {text}")

    def close(self) -> None:
        """Leave the output as it is."""
