"""How the payload modules report a value that does not fit: the path to it and its type, never the value."""

import json

_KEY_SHOWN = 40


class Misfit(Exception):
    """A value does not fit; the path to it grows from the inside out while this travels up.

    It never leaves the codecs: there it becomes a PayloadError or a ResultError.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        #: The way from the root to the value, without the ``$`` in front.
        self.path = ""

    def under(self, step: str) -> None:
        """Put one more step in front of the path."""
        self.path = step + self.path


def key_step(key: object) -> str:
    """Return the step of a path that leads through a key of an object: ``.name``, or ``["any text"]`` cut short.

    Of a key that is no text, and so not JSON, only the type is shown.
    """
    if not isinstance(key, str):
        return f"[{type_name(key)}]"
    if key.isascii() and key.isidentifier() and len(key) <= _KEY_SHOWN:
        return f".{key}"
    shown = key if len(key) <= _KEY_SHOWN else f"{key[:_KEY_SHOWN]}…"
    return f"[{json.dumps(shown)}]"


def index_step(index: int) -> str:
    """Return the step of a path that leads to an element of a list."""
    return f"[{index}]"


def type_name(value: object) -> str:
    """Return the name of a value's type, for a message that must not show the value."""
    return "null" if value is None else type(value).__name__
