"""A lock on an open file that excludes other processes, and other handles of this one."""

import time

try:
    import fcntl
except ImportError:  # Windows: lines are appended there too, but nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]

#: Seconds between two tries.
_PAUSE = 0.0005


def lock(descriptor: int, *, patience: float) -> None:
    """Take the lock within so many seconds of real time, or raise TimeoutError.

    It is tried again and again rather than waited for: a process that is stopped while it holds the lock must not stop
    the others. The lock is the handle's, as in ``flock(2)``: closing that, or the end of the process, gives it back.
    """
    if fcntl is None:
        return
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError("another process keeps it locked") from None
            time.sleep(_PAUSE)
        else:
            return


def unlock(descriptor: int) -> None:
    """Give the lock back; one that is not held is left alone."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
