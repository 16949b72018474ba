"""A pause that ends when something was committed, by this process or by another one."""

import time

from jobq.core import Core
from jobq.threads import Bell

#: The pause before the first look at the change counter, in seconds; it doubles up to ``Config.poll``.
_FIRST = 0.002


def wait_for_commit(jobs: Core, bell: Bell, seen: int, until: float | None) -> None:
    """Return when the bell rings, when the file's change counter is no longer ``seen``, or at ``until``.

    ``until`` is a time of ``time.monotonic()``, whatever the job queue's clock.
    """
    seconds = _FIRST
    while until is None or time.monotonic() < until:
        left = seconds if until is None else min(seconds, max(0.0, until - time.monotonic()))
        if bell.wait(left) or jobs.store.data_version() != seen:
            return
        seconds = min(2 * seconds, jobs.config.poll)
