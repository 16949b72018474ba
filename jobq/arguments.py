"""The checks at the edge: what a verb may be given, and the errors that say what is allowed.

Everything below the edge trusts what passed here. Pure functions; each returns the value in the form that is stored.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from jobq.errors import ArgumentError, JobNotFound, PayloadError
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import require_aware, shift
from jobq.model.job import HIGHEST, LOWEST, Priority
from jobq.model.names import is_kind, is_queue
from jobq.model.payload import encode

#: A lease or its default is at least this long, in seconds: a shorter one ends before any worker can renew it.
SHORTEST_LEASE = 0.1
#: The largest number of attempts or deferrals, far above what anybody waits for.
MOST = 1_000_000_000

#: SQLite's length() stops at a NUL, so the schema could not tell such a key from an empty one.
_KEY = re.compile(r"[^\x00\ud800-\udfff]{1,512}")
_TEXT = re.compile(r"[^\ud800-\udfff]{1,10000}")
#: Ids are 64-bit integers; a larger number names no job.
_BEYOND_IDS = 2**63
#: A shorter delay, in seconds, cannot leave the years that a datetime can express before the year 9900.
_NEAR = 3e9

Word = TypeVar("Word", bound=StrEnum)


def check_kind(kind: object, *, argument: str = "kind") -> str:
    """Return a kind: 1 to 200 characters without control characters."""
    if isinstance(kind, str) and is_kind(kind):
        return kind
    raise ArgumentError(argument, "a kind is text of 1 to 200 characters without control characters")


def check_queue(name: object, *, argument: str = "queue") -> str:
    """Return the name of a queue: a lower-case letter, then up to 40 of a-z, 0-9, _ and -."""
    if isinstance(name, str) and is_queue(name):
        return name
    raise ArgumentError(argument, "a queue's name is a lower-case letter followed by up to 40 of a-z, 0-9, _ and -")


def check_key(key: object, *, argument: str = "dedupe_key") -> str:
    """Return a dedupe key: 1 to 512 characters, none of them NUL."""
    if isinstance(key, str) and _KEY.fullmatch(key):
        return key
    raise ArgumentError(argument, "a key is text of 1 to 512 characters without NUL", fix="Use None for no key.")


def check_text(value: object, *, argument: str) -> str:
    """Return free text that can be stored: 1 to 10,000 characters."""
    if isinstance(value, str) and _TEXT.fullmatch(value):
        return value
    raise ArgumentError(argument, "text of 1 to 10,000 characters is needed", fix="Use None for none.")


def check_string(value: object, *, argument: str) -> str:
    """Return any text; what cannot be stored in it is replaced where it is cleaned."""
    if isinstance(value, str):
        return value
    raise ArgumentError(argument, f"text is needed, not a {type(value).__name__}")


def check_direction(value: object) -> str:
    """Return the direction of an entry of the trace, such as "sent": 1 to 40 printable characters."""
    if isinstance(value, str) and 1 <= len(value) <= 40 and value.isprintable():
        return value
    raise ArgumentError("direction", "text of 1 to 40 printable characters is needed", fix='Say "sent" or "received".')


def check_int(value: object, *, argument: str, least: int, most: int = MOST) -> int:
    """Return a whole number within its bounds; a bool is none."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    raise ArgumentError(argument, f"a whole number from {least:,} to {most:,} is needed")


def check_amount(value: object, *, argument: str) -> float:
    """Return a number that counts something: finite, at least 0, at most 2**53, which is exact in JSON everywhere."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2**53:
        return value
    raise ArgumentError(argument, "a finite number of at least 0 is needed")


def check_priority(value: object) -> int:
    """Return a priority, an integer from -1000 to 1000, or the name of one in either case."""
    if isinstance(value, str):
        named = Priority.__members__.get(value.upper())
        if named is None:
            names = ", ".join(name.lower() for name in Priority.__members__)
            raise ArgumentError("priority", f"no priority has this name; there are {names}")
        return named.value
    return check_int(value, argument="priority", least=LOWEST, most=HIGHEST)


def check_id(value: object, *, argument: str = "job_id") -> int:
    """Return the id of a job; a number that no database can hold raises JobNotFound."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentError(argument, f"an id is a whole number, not a {type(value).__name__}")
    if not -_BEYOND_IDS <= value < _BEYOND_IDS:
        raise JobNotFound(value)
    return value


def check_ids(values: object) -> tuple[int, ...]:
    """Return the ids of several jobs, each once, in the order given."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ArgumentError("ids", f"an id or several are needed, not a {type(values).__name__}")
    return tuple(dict.fromkeys(check_id(value, argument="ids") for value in values))


def check_word(value: str, words: type[Word], *, argument: str) -> Word:
    """Return a member of an enumeration, given as itself or as its text."""
    try:
        return words(value)
    except ValueError:
        raise ArgumentError(argument, f"one of {', '.join(words)} is needed") from None


def check_delay(value: Duration, now: datetime) -> float:
    """Return a delay in seconds; a negative one means now, one that leaves the year 9999 is refused."""
    seconds = max(0.0, to_seconds(value, argument="delay"))
    if seconds > _NEAR:
        shift(now, seconds, argument="delay")
    return seconds


def check_one_time(delay: object, run_at: object) -> None:
    """Refuse a delay together with a time."""
    if delay is not None and run_at is not None:
        raise ArgumentError("delay", "name either delay or run_at, not both")


def check_run_at(value: datetime, *, argument: str = "run_at") -> datetime:
    """Return an instant in UTC; a naive datetime is refused."""
    return require_aware(value, argument=argument)


def check_meta(meta: object, *, limit: int) -> str:
    """Return the JSON text of a mapping; what is no JSON in it is named by its path."""
    if not isinstance(meta, Mapping):
        raise ArgumentError("meta", f"a mapping is needed, not a {type(meta).__name__}")
    try:
        return encode(dict(meta), limit=limit)
    except PayloadError as error:
        raise ArgumentError("meta", f"at {error.path}: {error.problem}") from None


def check_length(value: Duration, *, argument: str) -> float:
    """Return the length of a lease in seconds, at least a tenth."""
    seconds = to_seconds(value, argument=argument)
    if not SHORTEST_LEASE <= seconds <= _NEAR:
        raise ArgumentError(argument, f"a lease is at least {SHORTEST_LEASE:g} s and at most a century long")
    return seconds


def names(values: str | Iterable[str] | None, *, argument: str) -> tuple[str, ...] | None:
    """Return one name or several as a tuple; None stays None and means all."""
    if values is None:
        return None
    if isinstance(values, str):
        return (values,)
    found = tuple(values) if isinstance(values, Iterable) else (values,)
    for one in found:
        if not isinstance(one, str):
            raise ArgumentError(argument, f"a name or several are needed, not a {type(one).__name__}")
    return tuple(dict.fromkeys(found))

