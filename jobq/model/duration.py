"""Durations at the edge of the library: seconds, timedeltas and text such as "1h30m".

Everything inside computes with seconds as a float; nothing here looks at a clock.
"""

import math
import re
from datetime import timedelta

from jobq.errors import ArgumentError

#: What every verb takes where it asks for a duration: seconds, a timedelta, or text.
Duration = float | int | str | timedelta

#: No duration is longer than this, in seconds: ten thousand years, the range of a datetime.
MAX_SECONDS = 10_000 * 366 * 86_400.0

_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001))
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_TEXT = re.compile(r"([+-]?)" + "".join(f"(?:{_NUMBER}{unit})?" for unit, _ in _UNITS))
_BARE = re.compile(rf"[+-]?{_NUMBER}")
_FIX = 'Use seconds, a timedelta, or text such as "500ms", "90s", "1h30m" or "2d".'


def to_seconds(value: Duration, *, argument: str) -> float:
    """Return a duration in seconds.

    Negative durations are allowed; one further back than ten thousand years is returned as minus ten thousand years,
    because all of them mean "long ago". Text has each unit at most once, largest first; a bare number in text is
    seconds, as on a command line. A bool, NaN, infinity, malformed text, a longer duration and anything else raise
    :class:`ArgumentError` that names ``argument``.
    """
    seconds = _read(value, argument)
    if math.isnan(seconds) or math.isinf(seconds):
        raise ArgumentError(argument, "a duration has to be finite", fix=_FIX)
    if seconds > MAX_SECONDS:
        raise ArgumentError(argument, "a duration is at most ten thousand years", fix=_FIX)
    return max(seconds, -MAX_SECONDS)


def to_text(seconds: float) -> str:
    """Return a finite number of seconds as short text, "1h30m" or "0.5s"; :func:`to_seconds` reads it back.

    It is rounded to microseconds.
    """
    micros = round(abs(seconds) * 1_000_000)
    text = "-" if seconds < 0 and micros else ""
    for unit, size in _UNITS[:3]:
        count, micros = divmod(micros, int(size) * 1_000_000)
        text += f"{count}{unit}" if count else ""
    if micros or text in ("", "-"):
        text += f"{micros // 1_000_000}.{micros % 1_000_000:06}".rstrip("0").rstrip(".") + "s"
    return text


def _read(value: Duration, argument: str) -> float:
    if isinstance(value, str):
        return _parse(value, argument)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(argument, f"a duration cannot be a {type(value).__name__}", fix=_FIX)
    # An int too large for a float is compared before it is converted: float(10**400) raises OverflowError.
    if isinstance(value, int) and abs(value) > MAX_SECONDS:
        return 2 * MAX_SECONDS if value > 0 else -MAX_SECONDS
    return float(value)


def _parse(text: str, argument: str) -> float:
    trimmed = text.strip()
    match = _TEXT.fullmatch(f"{trimmed}s" if _BARE.fullmatch(trimmed) else trimmed)
    if match is None or not any(match.groups()[1:]):
        # The text is shown: a duration is no secret, and whoever mistyped it has to see it.
        raise ArgumentError(argument, f"{text[:40]!r} is not a duration", fix=_FIX)
    sign, *numbers = match.groups()
    total = math.fsum(float(number) * size for number, (_, size) in zip(numbers, _UNITS, strict=True) if number)
    return -total if sign == "-" else total
