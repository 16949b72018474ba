"""The library's loggers: structlog where the host configured it, else the standard logger ``jobq``.

jobq never imports structlog itself, because that costs more than importing the rest of jobq: a host that configured it
has imported it. jobq never configures it either; an unconfigured structlog would print to stdout, so an unconfigured
host gets the standard library.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


class Logger:
    """A logger with structlog's calling convention: an event name and keywords.

    Positional arguments are formatted into the event, as the standard library does.
    """

    __slots__ = ("_bound", "_name", "_standard")

    def __init__(self, name: str, bound: Mapping[str, object] | None = None) -> None:
        self._name = name
        self._bound = dict(bound or {})
        # Looked up once: each look-up takes the lock of the logging module.
        self._standard = logging.getLogger(name)

    def bind(self, **values: object) -> "Logger":
        """Return a logger that adds these values to each of its lines."""
        return Logger(self._name, {**self._bound, **values})

    def enabled(self, level: str) -> bool:
        """Return whether a line of this level would go anywhere: what a busy loop asks before it builds one."""
        structlog: Any = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            return True
        return self._standard.isEnabledFor(_LEVELS[level])

    def debug(self, event: str, *args: object, **values: object) -> None:
        """Log at level debug."""
        self._log("debug", _formatted(event, args), values)

    def info(self, event: str, *args: object, **values: object) -> None:
        """Log at level info."""
        self._log("info", _formatted(event, args), values)

    def warning(self, event: str, *args: object, **values: object) -> None:
        """Log at level warning."""
        self._log("warning", _formatted(event, args), values)

    def error(self, event: str, *args: object, **values: object) -> None:
        """Log at level error."""
        self._log("error", _formatted(event, args), values)

    def critical(self, event: str, *args: object, **values: object) -> None:
        """Log at level critical."""
        self._log("critical", _formatted(event, args), values)

    def exception(self, event: str, *args: object, **values: object) -> None:
        """Log at level error, with the traceback of the exception being handled."""
        self._log("error", _formatted(event, args), {"exc_info": True, **values})

    def _log(self, level: str, event: str, values: dict[str, Any]) -> None:
        structlog: Any = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            getattr(structlog.get_logger(self._name), level)(event, **self._bound, **values)
            return
        logger = self._standard
        if logger.isEnabledFor(_LEVELS[level]):
            exc_info: Any = values.pop("exc_info", None)
            fields = {**self._bound, **values}
            text = " ".join(f"{key}={_shown(value)}" for key, value in fields.items() if value is not None)
            logger.log(_LEVELS[level], "%s %s", event, text, exc_info=exc_info, extra={"jobq": fields})


def _formatted(event: str, args: tuple[object, ...]) -> str:
    try:
        return event % args if args else event
    except (TypeError, ValueError):  # a slip in a log line must not fail a job
        return f"{event} {args!r}"


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    # str() first: a word of ours is shown as the text it stands for, not as a member of its class.
    return repr(str(value)) if isinstance(value, str) else repr(value)


def get_logger(name: str) -> Logger:
    """Return the logger of a module; ``name`` is its ``__name__``."""
    return Logger(name)



# An unconfigured host sees nothing: without this the standard library prints warnings to standard error.
logging.getLogger("jobq").addHandler(logging.NullHandler())
