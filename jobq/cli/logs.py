"""Shows what the library logs where the program that runs jobs has not set up logging itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from jobq.cli.output import note

_FORMAT = logging.Formatter()
#: The logger of ``job.log``: what handlers say themselves.
_HANDLERS = "jobq.handler"
#: The events that ``jobq work`` tells in its own words.
_ABOUT_JOBS = ("jobq.job.", "jobq.lease.expired")


class _Notes(logging.Handler):
    """Writes warnings and errors to standard error, escaped; those about single jobs only when asked to."""

    def __init__(self, *, about_jobs: bool) -> None:
        super().__init__()
        self._about_jobs = about_jobs

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, and the traceback where the record has one."""
        text, of_handler = record.getMessage(), record.name == _HANDLERS
        if record.levelno < logging.WARNING and not of_handler:
            return
        if of_handler or self._about_jobs or not text.startswith(_ABOUT_JOBS):
            trace = _FORMAT.formatException(record.exc_info).split("\n") if record.exc_info else ()
            note(f"{record.levelname.lower()}: {text}", *trace)


@contextmanager
def shown_logs(*, about_jobs: bool, of_handlers: bool = False) -> Iterator[None]:
    """Show warnings and errors of the library inside the block, unless a handler of the host's does it.

    With ``of_handlers`` also what the handlers log as information.
    """
    logger, handlers = logging.getLogger("jobq"), logging.getLogger(_HANDLERS)
    if logger.hasHandlers():
        yield
        return
    notes, level = _Notes(about_jobs=about_jobs), handlers.level
    logger.addHandler(notes)
    if of_handlers and level == logging.NOTSET:
        handlers.setLevel(logging.INFO)
    try:
        yield
    finally:
        handlers.setLevel(level)
        logger.removeHandler(notes)
