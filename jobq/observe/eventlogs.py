"""The event logs of one file's bus in one process: job queues that name the same file share its log."""

import os
import threading
from collections.abc import Callable
from datetime import datetime

import attrs

from jobq.bus import Bus
from jobq.model.events import Event
from jobq.model.redact import Redactor, together
from jobq.observe.eventlog import EventLog
from jobq.observe.rotating import RotatedFile


@attrs.define
class _Use:
    log: EventLog
    end: Callable[[], None]
    users: int = 0


class EventLogs:
    """Opens event logs, and closes each with its last user: two of one file would write everything twice.

    They use the redactors of all job queues on the bus: one may publish a secret that only its own knows.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._uses: dict[str, _Use] = {}
        self._redactors: list[Redactor] = []

    def join(self, redactor: Redactor) -> None:
        """Ask one more redactor."""
        with self._lock:
            self._redactors.append(redactor)
            self._redact()

    def leave(self, redactor: Redactor) -> None:
        """Ask it no more."""
        with self._lock:
            self._redactors = [kept for kept in self._redactors if kept is not redactor]
            self._redact()

    def open(self, path: str, *, max_bytes: int, backups: int, now: Callable[[], datetime]) -> EventLog:
        """Return the log in this file; the first one to open it says how it is kept.

        Raises:
            ConfigError: the file cannot be written.
        """
        key = os.path.realpath(path)
        with self._lock:
            use = self._uses.get(key)
            if use is None:
                file = RotatedFile(path, max_bytes=max_bytes, backups=backups)
                file.require("events_file")
                log = EventLog(file, now=now, redactor=together(self._redactors))
                use = self._uses[key] = _Use(log, self._bus.attach(log, Event, rest=log.rest).close)
            use.users += 1
            return use.log

    def release(self, log: EventLog) -> None:
        """Give back one use; the last one closes the file."""
        with self._lock:
            key, use = next((key, use) for key, use in self._uses.items() if use.log is log)
            use.users -= 1
            if use.users:
                return
            del self._uses[key]
        use.end()
        log.close()

    def _redact(self) -> None:
        redactor = together(self._redactors)
        for use in self._uses.values():
            use.log.redact_by(redactor)

    def after_fork(self) -> None:
        """Make them usable in a forked child, which writes to the same files."""
        self._lock = threading.Lock()
