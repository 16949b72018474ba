"""The event log: one more receiver on the bus, which appends each event to a file as a line of JSON."""

import contextlib
from collections import deque
from collections.abc import Callable
from datetime import datetime

from jobq.model.redact import Redactor
from jobq.observe.eventline import EventLines
from jobq.observe.rotating import RotatedFile
from jobq.ring import Told

#: So many lines are written at once, at the latest; what a delivery tells is written at its end.
_AT_ONCE = 256


def file_beside(database: str) -> str:
    """Return where ``jobq work`` keeps the event log of a database, unless it is configured."""
    return f"{database}.events.jsonl"


class EventLog:
    """Writes ``{"ts": ..., "kind": ..., "data": {...}}`` lines, whole ones only; it never raises into a job.

    ``kind`` is the name of the event's class. Private events and private fields are left out. What a full disk, say,
    keeps from being written is counted; the log is told once.
    """

    def __init__(self, file: RotatedFile, *, now: Callable[[], datetime], redactor: Redactor) -> None:
        self._file = file
        self._now = now
        self._lines = EventLines(redactor)
        # Taken from on two threads when the log is closed: a deque, so that no line is in neither or both hands.
        self._waiting: deque[str] = deque()

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return self._file.path

    @property
    def written(self) -> int:
        """How many events this process wrote."""
        return self._file.written

    @property
    def lost(self) -> int:
        """How many it could not write."""
        return self._file.lost

    @property
    def dropped(self) -> int:
        """How many were removed with a file that had become too old; it counts the files that this process removed."""
        return self._file.dropped

    def redact_by(self, redactor: Redactor) -> None:
        """Use another redactor from now on."""
        self._lines.redact_by(redactor)

    def take(self, told: Told) -> None:
        """Take an event; it is written soon."""
        self._waiting.append(self._lines.line(told.event, self._now()))
        if len(self._waiting) >= _AT_ONCE:
            self.rest()

    def rest(self) -> None:
        """Write what was taken."""
        lines: list[str] = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._waiting.popleft())
        self._file.append(lines)

    def close(self) -> None:
        """Write what was taken, and close the file."""
        self.rest()
        self._file.close()

    def after_fork(self) -> None:
        """Forget in a forked child what the parent writes."""
        self._waiting.clear()
