"""What the modules of the nouns share with the tree of commands."""

import argparse
from collections.abc import Callable
from typing import Protocol

from jobq.cli.options import Options

#: Fills in the options of a verb.
Fill = Callable[[Options], None]
#: Carries a verb out and returns the exit code.
Run = Callable[[argparse.Namespace], int]


class Verbs(Protocol):
    """The verbs of one noun, or those that need none."""

    def verb(
        self,
        name: str,
        run: Run,
        fill: Fill,
        *,
        help: str,
        description: str | None = None,
        formatter: type[argparse.HelpFormatter] = argparse.RawDescriptionHelpFormatter,
    ) -> None:
        """Add a verb; its formatter is made when the help is wanted."""


def no_options(options: Options) -> None:
    """Fill in nothing: the verb has only the common options."""
