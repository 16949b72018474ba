"""Waking and excluding threads, so that a KeyboardInterrupt at any moment leaves nothing locked.

Python raises it on the main thread between two bytecodes: after a call, at the start of a function or of a loop's next
round. ``with lock`` on a plain lock is safe, for both of its ends are one call into C. ``lock.acquire()`` ahead of a
``try`` is not, nor are Condition, Event and Semaphore, which are written in Python and may be left with their inner
lock taken.
"""

import threading
from collections.abc import Callable


class Bell:
    """Wakes the one thread that waits for it; rung before the wait it ends that at once, and rings no longer then."""

    __slots__ = ("_silence",)

    def __init__(self) -> None:
        # Held while it does not ring. One call into C rings it, so no interrupt finds it half rung.
        self._silence = threading.Lock()
        self._silence.acquire()

    def ring(self) -> None:
        """End the wait under way, or else the next one; does nothing while it rings already."""
        try:
            self._silence.release()
        except RuntimeError:
            return  # it rings

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it rings, or so many seconds of real time; return whether it rang."""
        if seconds is None:
            return self._silence.acquire()
        return self._silence.acquire(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX)))

    def clear(self) -> None:
        """Stop the ringing that nobody waited for."""
        self._silence.acquire(blocking=False)

    def close(self) -> None:
        """Give up what it is made of; only for the thread that waits, or before there is one. Idempotent."""

    def after_fork(self) -> None:
        """Give up in a forked child what is the parent's; a new one takes its place."""


class Alone:
    """Lets one thread at a time do something; the others go away instead of waiting, as does a call from within."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._who: object | None = None

    @property
    def busy(self) -> bool:
        """Whether somebody is about it."""
        return self._who is not None

    def run(self, work: Callable[[], object]) -> bool:
        """Call ``work`` unless somebody is about it already; return whether it was called. What it raises comes out."""
        me = object()
        try:
            with self._lock:
                if self._who is not None:
                    return False
                self._who = me
            work()
            return True
        finally:
            # Without a call, so that no interrupt can come before it is done. After a fork inside it is another's.
            if self._who is me:
                self._who = None

    def after_fork(self) -> None:
        """Make it usable in a forked child, where nobody is about it."""
        self._lock = threading.Lock()
        self._who = None
