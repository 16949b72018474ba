"""Shows what the library logs where the program that runs jobs has not set up logging itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from jobq.cli.output import note

_FORMAT = logging.Formatter()
#: The logger of ``job.log``: what handlers say themselves.
HANDLERS = "jobq.handler"
#: The events that ``jobq work`` tells in its own words.
_ABOUT_JOBS = ("jobq.job.", "jobq.lease.expired")


class _Notes(logging.Handler):
    """Writes warnings and errors to standard error, escaped; those about single jobs only when asked to."""

    def __init__(self, *, about_jobs: bool, of_handlers: bool) -> None:
        super().__init__()
        self._about_jobs = about_jobs
        self._of_handlers = of_handlers

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, and the traceback where the record has one."""
        text, of_handler = record.getMessage(), record.name == HANDLERS
        if record.levelno < logging.WARNING and not (of_handler and self._of_handlers):
            return
        if of_handler or self._about_jobs or not text.startswith(_ABOUT_JOBS):
            trace = _FORMAT.formatException(record.exc_info).split("\n") if record.exc_info else ()
            note(f"{record.levelname.lower()}: {text}", *trace)


def is_configured(logger: logging.Logger) -> bool:
    """Whether the host has said where the lines of a logger go; a handler that drops them says nothing."""
    found: logging.Logger | None = logger
    while found is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in found.handlers):
            return True
        found = found.parent if found.propagate else None
    return False


@contextmanager
def shown_logs(*, about_jobs: bool, of_handlers: bool = False) -> Iterator[None]:
    """Show warnings and errors of the library inside the block, unless a handler of the host's does it.

    With ``of_handlers`` also what the handlers log as information.
    """
    logger, handlers = logging.getLogger("jobq"), logging.getLogger(HANDLERS)
    if is_configured(logger):
        yield
        return
    notes, level = _Notes(about_jobs=about_jobs, of_handlers=of_handlers), handlers.level
    logger.addHandler(notes)
    if of_handlers and level == logging.NOTSET:
        handlers.setLevel(logging.INFO)
    try:
        yield
    finally:
        handlers.setLevel(level)
        logger.removeHandler(notes)
