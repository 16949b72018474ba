"""What ``jobq events tail`` prints of an event."""

from collections.abc import Collection
from typing import Any

from jobq.cli.output import escape, shown
from jobq.cli.tail import Tail, moment


class EventTail(Tail):
    """Prints the events of a file; ``kinds`` are the classes that are wanted, none for all."""

    things = "events"

    def __init__(self, path: str, *, kinds: Collection[str], json: bool) -> None:
        super().__init__(path, json=json)
        self._kinds = frozenset(kinds)

    def is_one(self, found: dict[str, Any]) -> bool:
        """Whether it has a class and data."""
        return isinstance(found.get("data"), dict) and isinstance(found.get("kind"), str)

    def wants(self, thing: dict[str, Any]) -> bool:
        """Whether it is of a class that is wanted."""
        return not self._kinds or thing["kind"] in self._kinds

    def text(self, thing: dict[str, Any]) -> str:
        """Return it in a line."""
        # Its own time says nothing that the line's does not.
        data = {name: value for name, value in thing["data"].items() if value is not None and name != "at"}
        words = (f"{name}={shown(value)}" for name, value in data.items())
        return escape(" ".join((moment(thing.get("ts")), thing["kind"], *words)))
