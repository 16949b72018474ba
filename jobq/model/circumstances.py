"""What stands around one job at one moment: the facts that explain why it runs or not."""

from datetime import datetime
from typing import NamedTuple

from jobq.model.job import JobInfo

#: So many better jobs are counted; beyond it is "more than".
MOST_BETTER = 1_000
#: So many of the jobs that fill a cap are named.
MOST_NAMED = 20


class Pause(NamedTuple):
    """Since when a queue or a kind is paused, by whom and why."""

    at: datetime
    by: str | None
    why: str | None


class Circumstances(NamedTuple):
    """One job and what a claim would look at, read from one snapshot."""

    job: JobInfo
    queue_pause: Pause | None = None
    kind_pause: Pause | None = None
    retired: bool = False
    #: How many jobs of the kind may run at once; None where there is no cap.
    cap: int | None = None
    #: How many run, and the ids of the first of them.
    running: int = 0
    running_ids: tuple[int, ...] = ()
    #: Whether what it waits for is the end of a deferral, and not of a retry's delay.
    deferred: bool = False
    #: Jobs of its queue that a claim would take before it; one more than :data:`MOST_BETTER` is that or more.
    better: int = 0


class Staff(NamedTuple):
    """The live runners, as far as one job is concerned."""

    #: How many there are.
    alive: int
    #: How many serve its queue, have a handler of its kind, and do both.
    serving: int
    handling: int
    both: int
