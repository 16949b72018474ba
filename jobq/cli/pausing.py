"""What the verbs pause and resume of queues, kinds and schedules have in common."""

import argparse

from jobq.cli.options import Options


def who_and_why(options: Options) -> None:
    """Add the options of a pause."""
    options.add("--who", metavar="NAME", help="who paused it; your login name unless told")
    options.add("--why", metavar="TEXT", help="the reason, for those who find it paused")


def answer(arguments: argparse.Namespace, noun: str, *, changed: bool, paused: bool) -> int:
    """Say what became of it; what was so already is no error."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json

    name, state = getattr(arguments, noun), "paused" if paused else "resumed"
    if arguments.json:
        say_json({noun: name, "paused": paused, "changed": changed})
    elif changed:
        say(f"{noun} {name} {state}")
    else:
        say(f"{noun} {name} {'was paused already' if paused else 'was not paused'}")
    return Exit.DONE
