"""Blocks that end by an exception."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")


class Abort(Exception):
    """What ends a block."""


@contextmanager
def aborted(block: AbstractContextManager[T], error: BaseException | None = None) -> Iterator[T]:
    """Run a block and end it by an exception, which must come out as it is."""
    reason = error or Abort()
    try:
        with block as opened:
            yield opened
            raise reason
    except BaseException as raised:
        if raised is not reason:
            raise
        return
    raise AssertionError("the block swallowed the exception")


@contextmanager
def failing(block: AbstractContextManager[T], *expected: type[BaseException]) -> Iterator[T]:
    """Run a block that must raise one of these errors."""
    try:
        with block as opened:
            yield opened
    except expected:
        return
    raise AssertionError("the block did not fail")
