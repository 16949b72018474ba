"""Asking before something is destroyed."""

import sys

from jobq.cli.exits import Exit, Stop
from jobq.cli.output import escape


def require(question: str, *, yes: bool) -> None:
    """Return when a person at the terminal agrees, or has agreed with ``--yes``; else stop the command.

    Off a terminal nobody can be asked, so ``--yes`` is needed there.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Stop(Exit.USAGE, f"{question} Nobody can be asked here", fix="Add --yes, or look first with --dry-run.")
    sys.stderr.write(f"{escape(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(Exit.FAILED, "nothing was done")
