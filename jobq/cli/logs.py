"""Shows what the library logs where the program that runs jobs has not set up logging itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from jobq.cli.output import note


class _Notes(logging.Handler):
    """Writes warnings and errors to standard error, escaped; those about single jobs only when asked to."""

    def __init__(self, *, about_jobs: bool) -> None:
        super().__init__(logging.WARNING)
        self._about_jobs = about_jobs

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        text = record.getMessage()
        if self._about_jobs or not text.startswith("jobq.job."):
            note(f"{record.levelname.lower()}: {text}")


@contextmanager
def shown_logs(*, about_jobs: bool) -> Iterator[None]:
    """Show warnings and errors of the library inside the block, unless a handler of the host's does it."""
    logger = logging.getLogger("jobq")
    if logger.hasHandlers():
        yield
        return
    handler = _Notes(about_jobs=about_jobs)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
