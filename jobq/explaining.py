"""Explaining: why a job is not running."""

from collections.abc import Mapping, Sequence

from jobq.arguments import check_id
from jobq.core import Core
from jobq.errors import JobNotFound
from jobq.liveness import is_alive
from jobq.model.circumstances import Staff
from jobq.model.explanation import Explanation
from jobq.model.reasons import explain
from jobq.model.runner import RunnerRow


class Explaining(Core):
    """The verb that says why."""

    def explain(self, job_id: int) -> Explanation:
        """Return why a job is not running, in words and as data: every reason that holds, the most important first.

        It looks at what a claim would look at (pauses, caps with the limits of this job queue's configuration, due
        times, what is better) and at the rows of the live runners; outside workers leave none. Nothing is changed. At
        most 1,000 better jobs are counted.

        Raises:
            JobNotFound: no job has this id.
        """
        now, lease = self.clock.now(), self.config.lease
        runners = [one for one in self.store.runners() if is_alive(one, now=now, lease=lease)]
        seen = self.store.circumstances(check_id(job_id), served=_served(runners), limits=self.config.kind_limits)
        if seen is None:
            raise JobNotFound(job_id)
        staff = _staff(runners, queue=seen.job.queue, kind=seen.job.kind)
        return explain(seen, staff, now=now)


def _served(runners: Sequence[RunnerRow]) -> Mapping[str, tuple[str, ...]]:
    """Return the kinds that are run from each queue."""
    served: dict[str, set[str]] = {}
    for runner in runners:
        for queue in runner.queues:
            served.setdefault(queue, set()).update(runner.kinds)
    return {queue: tuple(sorted(kinds)) for queue, kinds in served.items()}


def _staff(runners: Sequence[RunnerRow], *, queue: str, kind: str) -> Staff:
    serving = [runner for runner in runners if queue in runner.queues]
    return Staff(
        alive=len(runners),
        serving=len(serving),
        handling=sum(kind in runner.kinds for runner in runners),
        both=sum(kind in runner.kinds for runner in serving),
    )
