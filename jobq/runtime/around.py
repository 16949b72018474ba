"""What a host enters around each run: with the running job, or without."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from jobq.runtime.context import RunningJob

#: A Flask app context, a database session, a span.
Around = Callable[[], AbstractContextManager[Any]] | Callable[[RunningJob], AbstractContextManager[Any]]


def given_job(around: Around | None) -> Callable[[RunningJob], AbstractContextManager[Any]] | None:
    """Return a factory that takes the job, whether or not this one does; it does if it cannot be called without."""
    if around is None or _takes_job(around):
        return around  # type: ignore[return-value]
    plain: Callable[[], AbstractContextManager[Any]] = around  # type: ignore[assignment]
    return lambda job: plain()


def _takes_job(around: Around) -> bool:
    try:
        signature = inspect.signature(around)
    except (TypeError, ValueError):
        return False
    return _binds(signature, None) and not _binds(signature)


def _binds(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True
