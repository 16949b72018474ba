"""The text of a TOML file: reading it within bounds, and finding the line that a key stands on.

``tomllib`` says where a file is malformed but not where a value stood.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from jobq.errors import ArgumentError, ConfigFileError

#: A configuration has a few kilobytes; whatever is larger is another file.
MOST_BYTES = 64 * 1024
#: So many lines are looked at to find a key; a file in which more lines name it gets no line in its message.
_MOST_CANDIDATES = 200
_MOST_DOTS = 100
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return the text of a file and the TOML document that it is.

    Raises:
        ConfigFileError: it cannot be read, is too large, is no UTF-8, or no TOML; line and column are named.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError("path", f"the path of a file is needed, not a {type(path).__name__}")
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise ConfigFileError(name, problem, fix="Check the path and its permissions.") from error
    if len(raw) > MOST_BYTES:
        raise ConfigFileError(name, f"it has over {MOST_BYTES:,} bytes", fix="Name the TOML file of a configuration.")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigFileError(name, "it is not UTF-8 text", line=line, fix="Save it as UTF-8.") from None
    return text, _parse(name, text)


def _parse(name: str, text: str) -> dict[str, Any]:
    # tomllib's work grows with the square of a dotted key's length.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#") and any(part.count(".") > _MOST_DOTS for part in line.split("=")):
            raise ConfigFileError(name, f"it has over {_MOST_DOTS} dots", line=number, fix="A key needs two levels.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _malformed(name, text, str(error)) from None
    except ValueError:
        # Python's limit on the digits of an integer; nothing else that tomllib says is no TOMLDecodeError.
        raise ConfigFileError(name, "a number has too many digits", fix="Write it with fewer digits.") from None
    except RecursionError:
        raise ConfigFileError(name, "it is nested too deeply", fix="A key needs two levels.") from None


def _malformed(name: str, text: str, problem: str) -> ConfigFileError:
    found = _PLACE.search(problem)
    fix = "It is no TOML there; text needs quotes, and a key is named once: see https://toml.io."
    if found is None or found[1] is None:
        return ConfigFileError(name, _PLACE.sub("", problem), line=text.rstrip().count("\n") + 1, fix=fix)
    return ConfigFileError(name, _PLACE.sub("", problem), line=int(found[1]), column=int(found[2]), fix=fix)


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line on which a key of a valid file is defined, from 1; None where that cannot be told.

    A line defines it if it names it, and what stands above is whole and does not have it yet.
    """
    lines = text.split("\n")
    named = [number for number, line in enumerate(lines) if path[-1] in line]
    found = None
    for number in named[:_MOST_CANDIDATES]:
        try:
            above = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue  # it stands in the middle of a value
        if _has(above, path):
            break
        found = number + 1
    return found


def _has(document: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    inside: object = document
    for part in path:
        if not isinstance(inside, Mapping) or part not in inside:
            return False
        inside = inside[part]
    return True
