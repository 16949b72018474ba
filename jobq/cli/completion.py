"""``jobq --print-completion SHELL``: what a shell needs to complete commands and options."""

import argparse
from typing import Any

from jobq.cli.exits import Exit, Stop

_INSTALL = "Install jobq with the extra cli: pip install 'jobq[cli]'."


class PrintCompletion(argparse.Action):
    """Prints the completion of one shell and exits."""

    def __call__(self, parser: argparse.ArgumentParser, _: argparse.Namespace, values: Any, *__: object) -> None:
        """Print and exit."""
        try:
            import shtab  # optional extra
        except ImportError:
            raise Stop(Exit.FAILED, "completion needs shtab, which is not installed", fix=_INSTALL) from None
        if values not in shtab.SUPPORTED_SHELLS:
            known = ", ".join(shtab.SUPPORTED_SHELLS)
            parser.error(f"{'/'.join(self.option_strings)}: {values!r} is not one of {known}")
        print(shtab.complete(parser, shell=values))
        parser.exit()
