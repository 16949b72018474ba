"""The payload argument of the commands that make jobs."""

import argparse
import sys
from typing import Any

from jobq.cli.exits import Exit, Stop
from jobq.cli.options import json_value


def read_payload(text: str | None) -> Any:
    """Return the JSON value of a text, of standard input for ``-``, and None for none; what is no JSON is usage."""
    if text is None:
        return None
    try:
        return json_value(sys.stdin.read() if text == "-" else text)
    except (argparse.ArgumentTypeError, UnicodeDecodeError) as error:
        raise Stop(Exit.USAGE, f"the payload is {error}", fix="""Quote it for the shell: '{"to": "ada"}'.""") from None
