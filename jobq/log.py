"""The library's loggers: structlog where the host configured it, else the standard logger ``jobq``.

jobq never imports structlog itself, because that costs more than importing the rest of jobq: a host that configured it
has imported it. jobq never configures it either; an unconfigured structlog would print to stdout, so an unconfigured
host gets the standard library.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Logger:
    """A logger with structlog's calling convention: an event name and keywords."""

    __slots__ = ("_bound", "_name")

    def __init__(self, name: str, bound: Mapping[str, object] | None = None) -> None:
        self._name = name
        self._bound = dict(bound or {})

    def bind(self, **values: object) -> "Logger":
        """Return a logger that adds these values to each of its lines."""
        return Logger(self._name, {**self._bound, **values})

    def enabled(self, level: str) -> bool:
        """Return whether a line of this level would go anywhere: what a busy loop asks before it builds one."""
        structlog: Any = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            return True
        return logging.getLogger(self._name).isEnabledFor(_LEVELS[level])

    def debug(self, event: str, **values: object) -> None:
        """Log at level debug."""
        self._log("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        """Log at level info."""
        self._log("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log at level warning."""
        self._log("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        """Log at level error."""
        self._log("error", event, values)

    def _log(self, level: str, event: str, values: dict[str, Any]) -> None:
        structlog: Any = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            getattr(structlog.get_logger(self._name), level)(event, **self._bound, **values)
            return
        logger = logging.getLogger(self._name)
        if logger.isEnabledFor(_LEVELS[level]):
            fields = {**self._bound, **values}
            text = " ".join(f"{key}={value!r}" for key, value in fields.items())
            logger.log(_LEVELS[level], "%s %s", event, text, extra={"jobq": fields})


def get_logger(name: str) -> Logger:
    """Return the logger of a module; ``name`` is its ``__name__``."""
    return Logger(name)

