"""The checks that settings have in common; each refusal is a ConfigError that names the key."""

import os
from collections.abc import Callable
from typing import TypeVar

from jobq.arguments import check_int
from jobq.errors import ArgumentError, ConfigError
from jobq.model.duration import Duration, to_seconds

#: The largest limit of a payload, in bytes.
MOST_BYTES = 512 * 1024 * 1024
#: The longest duration in seconds, some thirty years.
LONGEST = 1e9
_DURATION = 'Use seconds, or text such as "500ms", "90s" or "1h30m".'

T = TypeVar("T")


def checked(key: str, check: Callable[[], T], *, fix: str | None = None) -> T:
    """Return what a check returns; its refusal becomes one that names the key of the configuration."""
    try:
        return check()
    except ArgumentError as error:
        raise ConfigError(f"{key}: {error.problem}", fix=fix) from None


def seconds(key: str, value: Duration, *, least: float, most: float = LONGEST) -> float:
    """Return a duration in seconds that lies within its bounds."""
    found = checked(key, lambda: to_seconds(value, argument=key), fix=_DURATION)
    if not least <= found <= most:
        upper = "" if most == LONGEST else f" and at most {most:g} s"
        raise ConfigError(f"{key}: a duration of at least {least:g} s{upper} is needed", fix=_DURATION)
    return found


def whole(key: str, value: object, *, least: int, most: int) -> int:
    """Return a whole number that lies within its bounds."""
    return checked(key, lambda: check_int(value, argument=key, least=least, most=most))


def optional_path(key: str, value: str | os.PathLike[str] | None) -> str | None:
    """Return the path of a file; None, and "", stand for none."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if text is None or (isinstance(text, str) and "\0" not in text):
        return text or None
    raise ConfigError(f"{key}: the path of a file is needed", fix='Use "" for none.')
