"""One hook around ``os.fork()`` for everything of ours that holds handles or locks.

Registered objects are kept weakly and are called as ``pthread_atfork(3)`` calls its handlers: the youngest first before
the fork, the oldest first after it, so that what was built on top is quiet before its foundation is.
"""

import contextlib
import itertools
import os
import threading
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """What is told about a fork; the three calls run on the forking thread."""

    def before_fork(self) -> None:
        """Become quiet: close handles, take locks, within a bounded time."""

    def after_fork_in_parent(self) -> None:
        """Undo what :meth:`before_fork` did."""

    def after_fork_in_child(self) -> None:
        """Replace every lock by a new one and forget the threads, which are gone."""


_numbers = itertools.count()
_registered: dict[int, weakref.ref[ForkAware]] = {}
#: Numbers of those that come before everybody: they keep others from registering meanwhile.
_first: set[int] = set()
_forking = threading.local()


def register(listener: ForkAware, *, first: bool = False) -> None:
    """Tell an object about each fork for as long as somebody else keeps it alive.

    With ``first`` it is told before all others, and after all others once the fork is done.
    """
    number = next(_numbers)
    if first:
        _first.add(number)
    _registered[number] = weakref.ref(listener, lambda _: _registered.pop(number, None))


def _alive(*, first: bool) -> list[ForkAware]:
    # Copied in one step that makes no object between two entries: another thread may register meanwhile, and a garbage
    # collection may take entries away. A dict keeps the order: the oldest first.
    references = [reference for number, reference in _registered.copy().items() if (number in _first) is first]
    return [listener for reference in references if (listener := reference()) is not None]


def _before() -> None:
    # Remembered for the other side of the fork: only who was told before it is told after it.
    told: list[ForkAware] = []
    _forking.told = told
    for first in (True, False):
        # ExitStack runs its callbacks last in, first out, and runs the others when one raises.
        with contextlib.ExitStack() as stack:
            listeners = _alive(first=first)
            told[:0] = listeners
            for listener in listeners:
                stack.callback(listener.before_fork)


def _in_parent() -> None:
    with contextlib.ExitStack() as stack:
        for listener in reversed(_forking.told):
            stack.callback(listener.after_fork_in_parent)
    _forking.told = []


def _in_child() -> None:
    with contextlib.ExitStack() as stack:
        for listener in reversed(_forking.told):
            stack.callback(listener.after_fork_in_child)
    _forking.told = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
