"""What ``jobq events tail`` prints: the newest events of a file, then those that come."""

import json
import os
import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from jobq.cli.exits import Exit, Stop
from jobq.cli.output import escape, note, say_json, shown, write
from jobq.observe.linereader import LineReader

#: Seconds between two looks at the file.
_LOOK = 0.2


class Tail:
    """Prints the events of a file; ``kinds`` are the classes that are wanted, none for all."""

    def __init__(self, path: str, *, kinds: Collection[str], json: bool) -> None:
        self._reader = LineReader(path)
        self._kinds = frozenset(kinds)
        self._json = json
        self._skipped = self._gaps = 0

    def show(self, count: int) -> None:
        """Print the newest."""
        for event in self._reader.newest(count, self._read):
            self._show(event)
        self._complain()

    def follow(self) -> None:
        """Print what comes, until interrupted."""
        while True:
            for line in self._reader.more():
                event = self._read(line)
                if event is not None:
                    self._show(event)
            self._complain()
            time.sleep(_LOOK)

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def _read(self, line: str) -> dict[str, Any] | None:
        """Return the event of a line; None for one that is not wanted, and for a line that is none."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("data"), dict) or "kind" not in event:
            self._skipped += 1
            return None
        return event if not self._kinds or event["kind"] in self._kinds else None

    def _show(self, event: dict[str, Any]) -> None:
        if self._json:
            say_json(event, line=True)
            return
        # Its own time says nothing that the line's does not.
        data = {name: value for name, value in event["data"].items() if value is not None and name != "at"}
        words = (f"{name}={shown(value)}" for name, value in data.items())
        write(sys.stdout, escape(" ".join((_moment(event.get("ts")), str(event["kind"]), *words))))

    def _complain(self) -> None:
        if self._skipped:
            note(f"note: lines that are no events, or were cut short when their process was killed: {self._skipped}")
            self._skipped = 0
        if self._reader.gaps > self._gaps:
            note("note: the file that was read has gone; events may be missing")
            self._gaps = self._reader.gaps


def require_file(path: str) -> None:
    """Stop with "not found" where there is no such file."""
    if not os.path.exists(path):
        fix = "Check the path; `jobq work` makes one, and a program that sets log.events_file."
        raise Stop(Exit.NOT_FOUND, f"no event log at {path}", fix=fix)


def _moment(text: object) -> str:
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + "Z"
    except ValueError:
        return str(text)
