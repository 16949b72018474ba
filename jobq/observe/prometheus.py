"""Metrics for Prometheus, counted when they are scraped; the extra ``jobq[prometheus]``."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client import Counter, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from jobq.errors import JobqError
from jobq.jobqueue import JobQueue
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.model.stats import Stats

_LANE = ("queue", "kind")
_BUCKETS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600)


class JobqCollector(Collector):
    """What a job queue does, and the attempts that ended in this process since it was made.

    Register it: ``REGISTRY.register(JobqCollector(jobs))``. Each scrape reads ``jobs.stats()``, which follows all
    processes and locks nothing. When the database cannot be read, ``jobq_up`` is 0 and what it would say is left out.
    """

    def __init__(self, jobs: JobQueue) -> None:
        self._jobs = jobs
        #: The runs under way in this process: when they were claimed, and as which attempt.
        self._started: dict[int, tuple[datetime, int]] = {}
        self._attempts = Counter(
            "jobq_attempts", "Attempts that ended in this process, by what they ended as.", (*_LANE, "outcome"),
            registry=None,
        )
        self._durations = Histogram(
            "jobq_attempt_duration_seconds", "From the claim of an attempt to its end, in this process.", _LANE,
            registry=None, buckets=_BUCKETS,
        )
        self._unwatch = jobs.bus.watch(self._take)

    def close(self) -> None:
        """Take note of no further attempts."""
        self._unwatch()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the database is not read for the names alone."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        up = GaugeMetricFamily("jobq_up", "Whether the database could be read.")
        try:
            stats = self._jobs.stats(failures=0)
        except JobqError:  # also one that was closed: the host's other metrics are scraped all the same
            up.add_metric((), 0)
        else:
            up.add_metric((), 1)
            yield from _of_stats(stats)
            self._forget(stats)
        yield up
        yield from self._attempts.collect()
        yield from self._durations.collect()

    def _take(self, change: Change) -> None:
        """Note the beginning or the end of a run; quick, because whoever delivers waits for it."""
        if change.state is JobState.RUNNING:
            self._started[change.job_id] = (change.at, change.attempt)
            return
        started = self._started.pop(change.job_id, None)
        if change.previous is not JobState.RUNNING:
            return
        self._attempts.labels(change.queue, change.kind, _outcome(change, started and started[1])).inc()
        if started is not None:
            seconds = (change.at - started[0]).total_seconds()
            self._durations.labels(change.queue, change.kind).observe(max(0.0, seconds))

    def _forget(self, stats: Stats) -> None:
        """Forget runs whose lease another process took back: their end is not told here."""
        running = {job.id for job in stats.running}
        for job_id, (at, _) in list(self._started.items()):
            if at < stats.at and job_id not in running:
                self._started.pop(job_id, None)


def _outcome(change: Change, attempt: int | None) -> str:
    """Return what an attempt ended as; one that was given back or deferred does not count any more."""
    if change.state is not JobState.QUEUED:
        return change.state.value
    if attempt is None:
        return "expired"
    return "retried" if change.attempt >= attempt else "given_back"


def _of_stats(stats: Stats) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("jobq_jobs", "Jobs in the database.", labels=(*_LANE, "state"))
    oldest = GaugeMetricFamily(
        "jobq_oldest_runnable_seconds", "How long the oldest job is due that a free worker could claim; 0 for none.",
        labels=_LANE,
    )
    for lane in stats.lanes:
        for state, number in lane.states.items():
            jobs.add_metric((lane.queue, lane.kind, state.value), number)
        oldest.add_metric((lane.queue, lane.kind), lane.oldest_runnable or 0.0)
    runners = GaugeMetricFamily("jobq_runners", "Live runners that serve a queue.", labels=("queue",))
    workers = GaugeMetricFamily("jobq_workers", "Worker threads of live runners.", labels=("queue",))
    paused = GaugeMetricFamily("jobq_queue_paused", "Whether a queue is paused.", labels=("queue",))
    for queue in stats.queues:
        runners.add_metric((queue.name,), sum(queue.name in runner.queues for runner in stats.runners))
        workers.add_metric((queue.name,), sum(runner.queues.get(queue.name, 0) for runner in stats.runners))
        paused.add_metric((queue.name,), float(queue.paused))
    yield from (jobs, oldest, runners, workers, paused)
