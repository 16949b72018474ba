"""Options and their environment variables, and the types of their values."""

import argparse
import os
from collections.abc import Callable
from typing import Any

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


class Options:
    """Adds options to one command; each can also be given by an environment variable, which its help names.

    The variable of ``--max-jobs`` of ``jobq work`` is ``JOBQ_WORK_MAX_JOBS``. The command line wins over it.
    """

    def __init__(self, parser: argparse.ArgumentParser, *path: str) -> None:
        self._parser = parser
        self._prefix = "_".join(("JOBQ", *path)).upper()

    def add(self, *flags: str, help: str, default: Any = None, **settings: Any) -> None:
        """Add an option that takes a value; a list of values is separated by commas in the environment."""
        variable = self._variable(flags)
        found = os.environ.get(variable)
        if found is not None:
            default = found.split(",") if settings.get("action") == "append" else found
        self._parser.add_argument(*flags, default=default, help=f"{help} [{variable}]", **settings)

    def flag(self, *flags: str, help: str) -> None:
        """Add an option that is there or not."""
        variable = self._variable(flags)
        default = truth(variable, os.environ.get(variable, ""), self._parser)
        self._parser.add_argument(*flags, action="store_true", default=default, help=f"{help} [{variable}]")

    def positional(self, name: str, **settings: Any) -> None:
        """Add an argument that is not an option; it has no environment variable."""
        self._parser.add_argument(name, **settings)

    def _variable(self, flags: tuple[str, ...]) -> str:
        long = next(flag for flag in flags if flag.startswith("--"))
        return f"{self._prefix}_{long.removeprefix('--').replace('-', '_')}".upper()


def truth(variable: str, text: str, parser: argparse.ArgumentParser) -> bool:
    """Read a yes or no from the environment; anything else is a usage error that names the variable."""
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        parser.error(f"{variable}: {text!r} is neither yes nor no; use 1 or 0")
    return word in _TRUE


def one_of(*words: str) -> Callable[[str], str]:
    """Return a type that accepts these words; unlike argparse's choices it also checks the environment."""

    def word(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return word


def whole_number(text: str) -> int:
    """Read an integer that is at least 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def duration(text: str) -> float:
    """Read seconds, or text such as 90s, 5m or 1h30m."""
    from jobq.errors import ArgumentError  # start-up cost
    from jobq.model.duration import to_seconds

    try:
        return to_seconds(float(text) if _is_number(text) else text, argument="duration")
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(error.problem) from None


def moment(text: str) -> Any:
    """Read an ISO 8601 date and time with its offset from UTC, such as 2030-01-31T07:00:00Z."""
    from datetime import datetime  # start-up cost

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2030-01-31T07:00:00Z") from None
    if when.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} names no offset from UTC; add Z or +01:00")
    return when


def priority(text: str) -> int:
    """Read an integer, or one of the names of :class:`jobq.Priority`."""
    from jobq.model.job import Priority  # start-up cost

    if text.upper() in Priority.__members__:
        return Priority[text.upper()].value
    try:
        return int(text)
    except ValueError:
        names = ", ".join(name.lower() for name in Priority.__members__)
        raise argparse.ArgumentTypeError(f"{text!r} is neither an integer nor one of {names}") from None


def json_value(text: str) -> Any:
    """Read a JSON text."""
    import json  # start-up cost

    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
