"""Which runners are alive, as their rows tell."""

import os
import socket
from datetime import datetime, timedelta

from jobq.model.runner import RunnerRow

#: Runners beat each third of a lease; one that missed more than two leases is dead or hangs.
_LEASES_OF_SILENCE = 2


def is_alive(runner: RunnerRow, *, now: datetime, lease: float) -> bool:
    """Whether a runner has beaten within two leases, and its process was not seen to have ended."""
    return runner.beat_at >= now - timedelta(seconds=_LEASES_OF_SILENCE * lease) and not _gone(runner)


def _gone(runner: RunnerRow) -> bool:
    """Whether its process was one of this machine and has ended: it need not be waited for until it is silent."""
    # On Windows the signal 0 is no question.
    if os.name != "posix" or runner.host != socket.gethostname():
        return False
    try:
        os.kill(runner.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
