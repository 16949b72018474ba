"""A line of JSON that is safe to show: what a text holds never moves the cursor of whoever looks at the file."""

import json
from collections.abc import Mapping
from typing import Any


def encode(fields: Mapping[str, Any]) -> str:
    r"""Return the fields as one line of JSON; letters stay as they are, all that does not print is ``\uNNNN``.

    JSON itself escapes neither DEL and the C1 control characters nor marks that reverse a line, and not U+2028, at
    which some readers break lines.
    """
    text = json.dumps(fields, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return json.dumps(letter)[1:-1].replace("\x7f", "\\u007f")
