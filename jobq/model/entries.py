"""The entries of a schedule: the jobs that each slot makes, as stored values and as JSON text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from jobq.errors import ArgumentError
from jobq.model.job import HIGHEST, JSON, LOWEST, Actor
from jobq.model.names import is_kind, is_queue

#: The most entries of a schedule.
MOST_ENTRIES = 1_000


@attrs.frozen
class Entry:
    """One job that each slot of a schedule makes; what is None is left to the schedule, then to the kind.

    ``payload`` is a JSON value. ``dedupe_key`` replaces the key that names the slot, so that at most one job of the
    entry waits or runs. ``name`` tells entries apart; it is the kind, or the kind and a number, unless given.
    """

    kind: str
    payload: JSON = None
    name: str | None = attrs.field(default=None, kw_only=True)
    queue: str | None = attrs.field(default=None, kw_only=True)
    priority: int | None = attrs.field(default=None, kw_only=True)
    max_attempts: int | None = attrs.field(default=None, kw_only=True)
    dedupe_key: str | None = attrs.field(default=None, kw_only=True)
    actor: str = attrs.field(default=Actor.SYSTEM.value, kw_only=True)
    tenant_id: str | None = attrs.field(default=None, kw_only=True)
    subject: str | None = attrs.field(default=None, kw_only=True)
    meta: Mapping[str, JSON] | None = attrs.field(default=None, kw_only=True)


def write_entries(entries: Sequence[Entry]) -> str:
    """Return the JSON text of entries, each with a name: its own, or the kind and, where that is not enough, a number.

    Two of one name, or of one own dedupe key, raise ArgumentError.
    """
    named = _named(entries)
    _refuse_twins(named)
    fields = [{key: value for key, value in _plain(entry).items() if value is not None} for entry in named]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read_entries(text: str) -> tuple[Entry, ...]:
    """Return stored entries; raises ValueError, which says what is wrong and never quotes, where they are broken."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("the entries are no JSON") from None
    if not isinstance(found, list) or not found:
        raise ValueError("the entries are no list with something in it")
    entries = tuple(_entry(item) for item in found)
    _refuse_twins(entries)
    return entries


def _refuse_twins(entries: Sequence[Entry]) -> None:
    for field in ("name", "dedupe_key"):
        values = [value for entry in entries if (value := getattr(entry, field)) is not None]
        if len(set(values)) < len(values):
            raise ArgumentError("entries", f"two of them have the same {field}", fix="Tell them apart.")


def _named(entries: Sequence[Entry]) -> list[Entry]:
    kinds = [entry.kind for entry in entries]
    seen: dict[str, int] = {}
    named = []
    for entry in entries:
        number = seen[entry.kind] = seen.get(entry.kind, 0) + 1
        default = entry.kind if kinds.count(entry.kind) == 1 else f"{entry.kind}:{number}"
        named.append(attrs.evolve(entry, name=default if entry.name is None else entry.name))
    return named


def _plain(entry: Entry) -> dict[str, Any]:
    return attrs.asdict(entry, recurse=False)


def _storable(text: str) -> bool:
    # JSON can spell a lone surrogate, which no row can hold.
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


#: The type of each field but the payload, and the longest text or the bounds of its numbers.
_FIELDS: Mapping[str, tuple[type, int, int]] = {
    "kind": (str, 1, 200),
    "name": (str, 1, 300),
    "queue": (str, 1, 41),
    "priority": (int, LOWEST, HIGHEST),
    "max_attempts": (int, 1, 1_000_000_000),
    "dedupe_key": (str, 1, 512),
    "actor": (str, 1, 10),
    "tenant_id": (str, 1, 10_000),
    "subject": (str, 1, 10_000),
    "meta": (dict, 0, 1_000_000),
}


def _entry(item: object) -> Entry:
    """Check what the schema of the job table would refuse, which would take the other schedules down as well."""
    if not isinstance(item, dict) or not isinstance(item.get("kind"), str) or not isinstance(item.get("name"), str):
        raise ValueError("an entry is no object with a kind and a name")
    for key, value in item.items():
        if key == "payload" or value is None:
            continue
        if key not in _FIELDS:
            raise ValueError("an entry has an unknown field")
        wanted, least, most = _FIELDS[key]
        size = value if isinstance(value, int) else len(value) if isinstance(value, str | dict) else -1
        odd = isinstance(value, str) and not _storable(value)
        if odd or type(value) is not wanted or not least <= size <= most:
            raise ValueError(f"the {key} of an entry is out of its range")
    if item.get("actor", Actor.SYSTEM.value) not in set(Actor):
        raise ValueError("the actor of an entry is unknown")
    if not is_kind(item["kind"]):
        raise ValueError("the kind of an entry is no name of a kind")
    if item.get("queue") is not None and not is_queue(item["queue"]):
        raise ValueError("the queue of an entry is no name of a queue")
    return Entry(**item)
