"""What ``jobq events tail`` and ``jobq trace tail`` share: the newest lines of a file, then those that come."""

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from jobq.cli.exits import Exit, Stop
from jobq.cli.output import note, say_json, shown, write
from jobq.observe.linereader import LineReader

#: Seconds between two looks at the file.
_LOOK = 0.2


class Tail(ABC):
    """Prints the objects of a file of JSON lines; a subclass says which, and how people read them."""

    #: What the lines of the file are.
    things: ClassVar[str]

    def __init__(self, path: str, *, json: bool) -> None:
        self._reader = LineReader(path)
        self._json = json
        self._skipped = self._gaps = 0

    @abstractmethod
    def is_one(self, found: dict[str, Any]) -> bool:
        """Whether an object is what the file is for."""

    @abstractmethod
    def wants(self, thing: dict[str, Any]) -> bool:
        """Whether it was asked for."""

    @abstractmethod
    def text(self, thing: dict[str, Any]) -> str:
        """Return it as people read it, escaped."""

    def show(self, count: int) -> None:
        """Print the newest."""
        for thing in self._reader.newest(count, self._read):
            self._show(thing)
        self._complain()

    def follow(self) -> None:
        """Print what comes, until interrupted."""
        while True:
            for line in self._reader.more():
                thing = self._read(line)
                if thing is not None:
                    self._show(thing)
            self._complain()
            time.sleep(_LOOK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def _read(self, line: str) -> dict[str, Any] | None:
        """Return what a line holds; None for what was not asked for, and for a line that is none."""
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not self.is_one(found):
            self._skipped += 1
            return None
        return found if self.wants(found) else None

    def _show(self, thing: dict[str, Any]) -> None:
        if self._json:
            say_json(thing, line=True)
        else:
            write(sys.stdout, self.text(thing))

    def _complain(self) -> None:
        if self._skipped:
            why = "or were cut short when their process was killed"
            note(f"note: lines that are no {self.things}, {why}: {self._skipped}")
            self._skipped = 0
        if self._reader.gaps > self._gaps:
            note(f"note: the file that was read has gone; {self.things} may be missing")
            self._gaps = self._reader.gaps


def require_file(path: str, *, name: str, fix: str) -> None:
    """Stop with "not found" where there is no such file."""
    if not os.path.exists(path):
        raise Stop(Exit.NOT_FOUND, f"no {name} at {path}", fix=fix)


def moment(text: object) -> str:
    """Return the time of a line to the millisecond, in UTC; as it is where it is none."""
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + "Z"
    except ValueError:
        return shown(text)
