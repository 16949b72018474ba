"""JSON values that commands are given: the payload of a job to be made, the result of one that ends."""

import argparse
import sys
from typing import Any

from jobq.cli.exits import Exit, Stop
from jobq.cli.options import json_value


def read_payload(text: str | None) -> Any:
    """Return the JSON value of a text, of standard input for ``-``, and None for none; what is no JSON is usage."""
    if text is None:
        return None
    return _read(_given(text), name="payload")


def read_result(text: str | None) -> Any:
    """Do the same for a result, where an empty standard input is None too: a program may have nothing to say."""
    given = "" if text is None else _given(text)
    return _read(given, name="result") if given.strip() or text not in (None, "-") else None


def _given(text: str) -> str:
    if text != "-":
        return text
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise Stop(Exit.USAGE, f"standard input is no text: {error}") from None


def _read(text: str, *, name: str) -> Any:
    try:
        return json_value(text)
    except argparse.ArgumentTypeError as error:
        raise Stop(Exit.USAGE, f"the {name} is {error}", fix="""Quote it for the shell: '{"to": "ada"}'.""") from None
