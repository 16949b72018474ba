"""Keeps what the jobs of ``jobq work`` log, however their program logs."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobq.cli.logs import HANDLERS, is_configured
from jobq.jobqueue import JobQueue
from jobq.observe.loglines import LogLines


@contextmanager
def kept_lines(jobs: JobQueue) -> Iterator[None]:
    """Keep the lines of runs inside the block: of a configured structlog, else of the standard library.

    Where the program has configured neither it is what ``job.log`` says, from level info. A program that keeps lines
    itself is left alone.
    """
    structlog: Any = sys.modules.get("structlog")
    lines = LogLines(jobs)
    if structlog is not None and structlog.is_configured():
        with _processor(structlog, lines):
            yield
    else:
        with _handler(lines.handler()):
            yield


@contextmanager
def _processor(structlog: Any, lines: LogLines) -> Iterator[None]:
    processors = structlog.get_config()["processors"]
    if any(isinstance(one, LogLines) for one in processors):
        yield
        return
    if not isinstance(processors, list):
        processors = list(processors)
        structlog.configure(processors=processors)
    # Into the list itself, ahead of the renderer: loggers that were bound already hold it.
    processors.insert(max(len(processors) - 1, 0), lines)
    try:
        yield
    finally:
        processors.remove(lines)


@contextmanager
def _handler(handler: logging.Handler) -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger(HANDLERS)
    # With a handler of ours on a root logger without any the program's warnings would not be printed any more.
    logger, level = root if is_configured(root) else own, own.level
    if logger is own and level == logging.NOTSET:
        own.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        own.setLevel(level)
