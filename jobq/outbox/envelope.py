"""A draft as text: what a row of the outbox carries, with every option resolved when it was staged."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jobq.arguments import (
    check_id,
    check_int,
    check_key,
    check_kind,
    check_priority,
    check_queue,
    check_run_at,
    check_text,
    check_word,
)
from jobq.errors import ArgumentError, PayloadError
from jobq.model.draft import Draft
from jobq.model.job import Actor
from jobq.model.payload import decode

#: Of the text; a row of another version waits for a relay that knows it.
VERSION = 1

_FIX = "Mend the row of jobq_outbox, or delete it; a row of a newer jobq waits until the relay is upgraded."

#: What an enqueue has made something else of before it is staged: the time and the queue.
_RESOLVED = frozenset({"delay", "queue_of_kind"})

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def write(draft: Draft) -> str:
    """Return the text of a draft, which leaves out what it leaves open."""
    fields = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in draft._asdict().items()
        if value is not None and value is not False and name not in _RESOLVED
    }
    return _encoder.encode({"v": VERSION, **fields})


def read(text: str) -> Draft:
    """Return the draft that a text holds.

    Raises:
        ArgumentError: it is broken, or was written by a jobq that knows more.
        PayloadError: the payload in it is no JSON.
    """
    try:
        fields: Any = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ArgumentError("draft", "the text is no JSON", fix=_FIX) from None
    if not isinstance(fields, dict):
        raise ArgumentError("draft", "the text is no JSON object", fix=_FIX)
    version = fields.pop("v", None)
    if version != VERSION:
        raise ArgumentError("draft", f"its version is not {VERSION}", fix=_FIX)
    unknown = sorted(set(fields) - set(_CHECKS) - _FLAGS)
    missing = sorted({"kind", "payload", "run_at"} - set(fields))
    if unknown or missing:
        raise ArgumentError("draft", f"{len(missing)} fields are missing and {len(unknown)} are unknown", fix=_FIX)
    empty: Any = None
    blank = Draft(empty, None, empty, None, None)
    return blank._replace(**{name: _CHECKS.get(name, _flag)(value) for name, value in fields.items()})


def _payload(value: object) -> str:
    if not isinstance(value, str):
        raise PayloadError("$", "it is no text", fix=_FIX)
    decode(value)
    return value


def _object(value: object) -> str:
    if not isinstance(value, str) or not isinstance(decode(value), dict):
        raise ArgumentError("meta", "it is no JSON object", fix=_FIX)
    return value


def _instant(name: str) -> Callable[[object], datetime]:
    def check(value: object) -> datetime:
        try:
            return check_run_at(datetime.fromisoformat(str(value)), argument=name)
        except ValueError:  # ArgumentError is one
            raise ArgumentError(name, "it is no instant with an offset", fix=_FIX) from None

    return check


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError("draft", "a flag in it is neither true nor false", fix=_FIX)
    return value


#: What each field may be: the same rules as when it was staged, for the host's database is open to everybody's hand.
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "kind": check_kind,
    "queue": check_queue,
    "payload": _payload,
    "priority": check_priority,
    "max_attempts": lambda value: check_int(value, argument="max_attempts", least=1),
    "max_deferrals": lambda value: check_int(value, argument="max_deferrals", least=0),
    "run_at": _instant("run_at"),
    "dedupe_key": check_key,
    "parent_id": lambda value: check_id(value, argument="parent_id"),
    "actor": lambda value: check_word(value, Actor, argument="actor").value,
    "tenant_id": lambda value: check_text(value, argument="tenant_id"),
    "subject": lambda value: check_text(value, argument="subject"),
    "meta": _object,
    "schedule": lambda value: check_text(value, argument="schedule"),
    "slot": _instant("slot"),
}
_FLAGS = {name for name, default in Draft._field_defaults.items() if isinstance(default, bool)}
