"""An event as a line of the event log: ids, states and numbers, and nothing that is private."""

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

import attrs

from jobq.model.events import Event, JobStateChanged, is_private
from jobq.model.redact import Redactor, clean
from jobq.model.secret_values import MARK

#: Returns a text as it is written; it is given the name that the text stands under, too.
Text = Callable[[str, str], str]

#: What a host puts into an event is bounded in the log: items of a collection, and collections inside collections.
_MOST_ITEMS, _DEEPEST = 100, 4
#: JSON readers do not agree on whole numbers beyond 64 bits, and Python refuses to write very long ones.
_BEYOND_NUMBERS = 2**63

_write = json.JSONEncoder(separators=(",", ":")).encode
#: Kinds and queues are few and come again and again.
_quoted = lru_cache(maxsize=1_000)(_write)


class EventLines:
    """Writes events as lines.

    Fields that are marked private are left out. Text of the host's own events is redacted and cut to 500 characters,
    times are written in ISO 8601, durations in seconds, members of an enum as their values, attrs values as objects;
    of a value of any other class only the class is named, because nobody knows what it would say, as of one that cannot
    be written. A field that holds nothing is left out.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        # By class: the fields to write, and how a text in them is written.
        self._plans: dict[type[Event], tuple[tuple[str, ...], Text]] = {}

    def redact_by(self, redactor: Redactor) -> None:
        """Use another redactor from now on."""
        self._redactor = redactor

    def line(self, event: Event, at: datetime) -> str:
        """Return the line of an event that is told at this moment."""
        if type(event) is JobStateChanged:
            return _changed(event, at)
        kind = type(event)
        names, text = self._plans.get(kind) or self._plan(kind)
        data = _fields(event, names, text, _DEEPEST)
        return _write({"ts": at.isoformat(timespec="milliseconds"), "kind": kind.__name__, "data": data})

    def _plan(self, kind: type[Event]) -> tuple[tuple[str, ...], Text]:
        # In jobq's own events texts are names, and what else there is was redacted where it came in.
        ours = kind.__module__.startswith("jobq.")
        plan = self._plans[kind] = (_public(kind), _as_it_is if ours else self._clean)
        return plan

    def _clean(self, name: str, text: str) -> str:
        cleaned, named = clean(text, self._redactor), f"{name}={text}"
        # A field may be called what gives a secret away that looks like any text.
        return MARK if cleaned == text and self._redactor.redact(named) != named else cleaned


def _as_it_is(name: str, text: str) -> str:
    return text


def _changed(event: JobStateChanged, at: datetime) -> str:
    # What a busy worker tells all the time: written by hand it costs a quarter.
    previous = f'"{event.previous}"' if event.previous else "null"
    return (
        f'{{"ts":"{at.isoformat(timespec="milliseconds")}","kind":"JobStateChanged","data":{{"job_id":{event.job_id},'
        f'"kind":{_quoted(event.kind)},"queue":{_quoted(event.queue)},"previous":{previous},"state":"{event.state}",'
        f'"attempt":{event.attempt},"at":"{event.at.isoformat()}"}}}}'
    )


def _public(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind) if not is_private(field))


def _fields(value: object, names: tuple[str, ...], text: Text, depth: int) -> dict[str, Any]:
    found = {}
    for name in names:
        # A class may leave a field for later.
        held = getattr(value, name, attrs.NOTHING)
        if held is not attrs.NOTHING:
            found[name] = _plain(held, name, text, depth)
    return found


def _plain(value: object, name: str, text: Text, depth: int) -> Any:
    """Return a value as JSON can carry it; of one that cannot be read the class is named."""
    try:
        return _read(value, name, text, depth)
    except Exception:  # a set that another thread adds to, a time in a zone of the host's own
        return type(value).__name__


def _read(value: object, name: str, text: Text, depth: int) -> Any:
    # Exact classes only: a subclass may be made to hide what it holds.
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return text(name, value)  # type: ignore[arg-type]
    write = _WRITERS.get(kind)
    if write is not None:
        return write(value)
    if isinstance(value, Enum):
        return _plain(value.value, name, text, depth - 1) if depth else kind.__name__
    if not depth:
        return kind.__name__
    if kind in (list, tuple, set, frozenset):
        return [_plain(item, name, text, depth - 1) for item in list(value)[:_MOST_ITEMS]]  # type: ignore[call-overload]
    if kind is dict:
        pairs = list(value.items())[:_MOST_ITEMS]  # type: ignore[attr-defined]
        return {text("", key): _plain(item, key, text, depth - 1) for key, item in pairs if type(key) is str}
    if attrs.has(kind):
        return _fields(value, _public(kind), text, depth - 1)
    return kind.__name__


def _whole(value: int) -> object:
    return value if -_BEYOND_NUMBERS <= value < _BEYOND_NUMBERS else "int"


def _number(value: float) -> object:
    return value if math.isfinite(value) else str(value)


_WRITERS: Mapping[type, Callable[[Any], object]] = {
    int: _whole,
    float: _number,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    Decimal: str,
    UUID: str,
}
