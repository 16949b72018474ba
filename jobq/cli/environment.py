"""Values from the environment: they stand for options, and an error about one names its variable."""

import argparse
import os
from collections.abc import Callable
from typing import Any

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class FromVariable(str):
    """A default that came from the environment; argparse hands it to the option's type only where it is used."""

    __slots__ = ("variable",)

    def __new__(cls, text: str, variable: str) -> "FromVariable":
        """Keep the text together with the name of its variable."""
        made = super().__new__(cls, text)
        made.variable = variable
        return made

    variable: str


def from_environment(variable: str) -> FromVariable | None:
    """Return the value of a variable; an empty one counts as not set."""
    text = os.environ.get(variable)
    return FromVariable(text, variable) if text else None


def named(option: str, value: object) -> str:
    """Return what an error about a value names: the variable that it came from, else the option."""
    return value.variable if isinstance(value, FromVariable) else option


def reader(
    read: Callable[[str], Any], parser: argparse.ArgumentParser, *, repeated: bool = False
) -> Callable[[str], Any]:
    """Return a type for argparse that reads an option's value, from the command line or from its variable.

    A bad one from a variable is a usage error that names the variable; argparse would name the option.
    """

    def value(text: str) -> Any:
        if not isinstance(text, FromVariable):
            return read(text)
        try:
            return [read(part.strip()) for part in text.split(",") if part.strip()] if repeated else read(str(text))
        except argparse.ArgumentTypeError as error:
            parser.error(f"{text.variable}: {error}")

    return value


def truth(text: str) -> bool:
    """Read a yes or no."""
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no; use 1 or 0")
    return word in _TRUE
