"""How many jobs there are, how fast they end, and how long the oldest one waits that could run."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import attrs

from jobq.model.job import JobInfo, JobState, QueueInfo
from jobq.model.runner import RunnerRow

ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@attrs.frozen(kw_only=True)
class Tally:
    """Jobs by state, those that ended within the last minute, and the oldest that could run now."""

    states: Mapping[JobState, int]
    #: Jobs that ended within the last minute, by the state that they ended in.
    last_minute: Mapping[JobState, int]
    #: Since when, in seconds, the oldest job is due that a free worker could claim now. Paused, capped, retired and
    #: future jobs are not waiting for a worker and do not count. None where there is none.
    oldest_runnable: float | None


@attrs.frozen(kw_only=True)
class LaneTally(Tally):
    """The tally of one kind in one queue."""

    queue: str
    kind: str


@attrs.frozen(kw_only=True)
class Stats:
    """What a job queue does now, read from one state of its database."""

    at: datetime
    #: One for each kind in each queue that has jobs.
    lanes: tuple[LaneTally, ...]
    queues: tuple[QueueInfo, ...]
    #: The runners that are alive.
    runners: tuple[RunnerRow, ...]
    #: Those that run longest first.
    running: tuple[JobInfo, ...]
    #: The jobs that failed last, newest first.
    failures: tuple[JobInfo, ...]

    @property
    def total(self) -> Tally:
        """The tally of everything."""
        return together(self.lanes)

    def by_queue(self, *, hidden: bool = False) -> dict[str, Tally]:
        """Return the tally of each queue by name; with ``hidden`` of the hidden ones too."""
        named = [queue.name for queue in self.queues if hidden or not queue.hidden]
        return self._by(lambda lane: lane.queue, named)

    def by_kind(self) -> dict[str, Tally]:
        """Return the tally of each kind that has jobs, by name."""
        return self._by(lambda lane: lane.kind, sorted({lane.kind for lane in self.lanes}))

    def _by(self, key: Callable[[LaneTally], str], names: Iterable[str]) -> dict[str, Tally]:
        return {name: together(lane for lane in self.lanes if key(lane) == name) for name in names}


def together(tallies: Iterable[Tally]) -> Tally:
    """Return the tally of several."""
    found = list(tallies)
    ages = [one.oldest_runnable for one in found if one.oldest_runnable is not None]
    return Tally(
        states={state: sum(one.states.get(state, 0) for one in found) for state in JobState},
        last_minute={state: sum(one.last_minute.get(state, 0) for one in found) for state in ENDED},
        oldest_runnable=max(ages, default=None),
    )
