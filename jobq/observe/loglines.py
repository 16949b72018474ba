"""Keeps the lines of the log that a job writes with the job; works with structlog and with the standard library.

Neither is configured here, and structlog is not imported: a processor is only a function.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any

from jobq.jobqueue import JobQueue
from jobq.lines import RUN
from jobq.model.lines import Line

#: What a line says of its run, its time and its level is kept in columns.
_COLUMNS = frozenset({"event", "exc_info", "job_id", "kind", "level", "queue", "attempt", "worker", "timestamp"})
#: What a level looks like, also one of the host's own; another value of that name is something else.
_LEVEL = re.compile(r"\w{1,20}")
#: Names of structlog's methods that are no levels.
_LEVELS = {"exception": "error", "warn": "warning", "fatal": "critical", "msg": "info"}
#: How much of a traceback is kept; its end says most.
_TRACE = 4_000


class LogLines:
    """A structlog processor that keeps what is logged inside a run of this job queue, for ``jobs.log_lines(id)``.

    Put it ahead of the renderer, behind ``merge_contextvars``. It passes every line on as it is and never raises. A
    line belongs to the run whose handler it was written in, also on threads that copied its context; one of
    ``job.log`` always does. Lines wait in memory, bounded, until a runner of the process writes them, within a second
    or two; ``lost`` counts those that found no room. They are redacted as errors are.
    """

    def __init__(self, jobs: JobQueue) -> None:
        self._lines = jobs.lines
        self._live = jobs.live
        self._bus = jobs.bus
        self._clock = jobs.clock
        self._redactor = jobs.redactor

    @property
    def lost(self) -> int:
        """How many lines of this database's jobs found no room in this process: exact."""
        return self._lines.lost

    def __call__(
        self, logger: object, method: str, event_dict: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Keep the line if it is one of a run; return it unchanged."""
        event = event_dict.get("event", "")
        run = self._run(event_dict)
        if run is not None:
            level = event_dict.get("level")
            name = level if isinstance(level, str) and _LEVEL.fullmatch(level) else method
            self._put(*run, _LEVELS.get(name, name), event, event_dict)
        return event_dict

    def handler(self, level: int = logging.NOTSET) -> logging.Handler:
        """Return the same for programs that log through the standard library: a handler for their root logger."""
        return _Handler(self, level)

    def record(self, record: logging.LogRecord) -> None:
        """Keep a line of the standard library if it is one of a run."""
        fields: dict[str, Any] = dict(getattr(record, "jobq", ()))
        # A line of jobq's own carries its event ahead of the text of its fields.
        event = record.args[0] if fields and isinstance(record.args, tuple) else record.getMessage()
        run = self._run(fields)
        if run is not None:
            if not fields:
                fields["logger"] = record.name
            fields["exc_info"] = record.exc_info
            self._put(*run, record.levelname.lower(), event, fields)

    def _run(self, fields: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return job id and attempt of the run that a line belongs to, None where it is nobody's or another's."""
        if self._bus.telling:
            # A listener's lines are no job's: one that is told of lines, and logs, would never come to an end.
            return None
        run = RUN.get()
        if run is not None:
            lines, claim = run
            return (claim.id, claim.attempts) if lines is self._lines else None
        job_id = fields.get("job_id")
        if not isinstance(job_id, int):
            return None
        # Of a thread that the handler has started, or about the run: that it is stuck, say.
        live = any(job_id == held for held, _ in self._live.copy())
        attempt = fields.get("attempt")
        return (job_id, attempt if isinstance(attempt, int) else 0) if live else None

    def _put(self, job_id: int, attempt: int, level: str, event: object, fields: Mapping[str, Any]) -> None:
        others = {str(key): value for key, value in fields.items() if key not in _COLUMNS}
        trace = _traceback(fields.get("exc_info"))
        if trace is not None and "exception" not in others:
            others["exception"] = trace
        line = Line(job_id, attempt, self._clock.now(), level, _text(event), _json(others), self._redactor)
        self._lines.put(line)


class _Handler(logging.Handler):
    def __init__(self, lines: LogLines, level: int) -> None:
        super().__init__(level)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        try:
            self._lines.record(record)
        except Exception:  # a message whose arguments do not fit, say: as every handler of the standard library
            self.handleError(record)


def _json(fields: dict[str, Any]) -> str:
    try:
        return json.dumps(fields, default=_text, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # NaN, keys that are no text, a circle
        return json.dumps({key: _text(value) for key, value in fields.items()}, ensure_ascii=False)


def _text(value: object) -> str:
    try:
        return value if isinstance(value, str) else repr(value)
    except Exception:  # the host's repr may raise anything, and a line of a log must not
        return f"({type(value).__name__} that cannot be shown)"


def _traceback(exc_info: Any) -> str | None:
    if not exc_info:
        return None
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    return None if error is None else "".join(traceback.format_exception(error))[-_TRACE:]
