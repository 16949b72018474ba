"""What ``jobq trace tail`` prints: the newest entries of a file, then those that come."""

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from jobq.cli.output import escape, note, say_json, write
from jobq.observe.linereader import LineReader

#: Seconds between two looks at the file.
_LOOK = 0.2


class TraceTail:
    """Prints the entries of a trace, those of one job where it is named."""

    def __init__(self, path: str, *, job: int | None, json: bool) -> None:
        self._reader = LineReader(path)
        self._job = job
        self._json = json
        self._skipped = 0

    def show(self, count: int) -> None:
        """Print the newest."""
        for entry in self._reader.newest(count, self._read):
            self._show(entry)
        self._complain()

    def follow(self) -> None:
        """Print what comes, until interrupted."""
        while True:
            for line in self._reader.more():
                entry = self._read(line)
                if entry is not None:
                    self._show(entry)
            self._complain()
            time.sleep(_LOOK)

    def __enter__(self) -> "TraceTail":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def _read(self, line: str) -> dict[str, Any] | None:
        """Return the entry of a line; None for one that is not wanted, and for a line that is none."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
            self._skipped += 1
            return None
        return entry if self._job in (None, entry.get("job_id")) else None

    def _show(self, entry: dict[str, Any]) -> None:
        if self._json:
            say_json(entry, line=True)
        else:
            write(sys.stdout, _text(entry))

    def _complain(self) -> None:
        if self._skipped:
            note(f"note: lines that are no entries, or were cut short when their process was killed: {self._skipped}")
            self._skipped = 0


def _text(entry: dict[str, Any]) -> str:
    """Return an entry as people read it: a heading, and its text below, line by line."""
    job, kind, attempt, direction = (entry.get(name) for name in ("job_id", "kind", "attempt", "direction"))
    lines = [f"{_moment(entry.get('ts'))} job {job} {kind}, attempt {attempt}, {direction}"]
    lines += (f"  {line}" for line in entry["text"].splitlines() or [""])
    if entry.get("cut"):
        lines.append(f"  ({entry['cut']} more characters were not kept)")
    return "\n".join(map(escape, lines))


def _moment(text: object) -> str:
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + "Z"
    except ValueError:
        return str(text)
