"""The numbers of ``jobq stats`` and ``jobq watch``, as JSON and in a line."""

from typing import Any

from jobq.model.job import JobInfo, JobState, QueueInfo
from jobq.model.stats import Stats, Tally


def figures(stats: Stats, *, hidden: bool = False) -> dict[str, Any]:
    """Return the document for programs; ages are seconds."""
    queues = {queue.name: queue for queue in stats.queues}
    return {
        "at": stats.at,
        "states": stats.total.states,
        "last_minute": stats.total.last_minute,
        "oldest_runnable": stats.total.oldest_runnable,
        "queues": {name: _tally(tally, queues[name]) for name, tally in stats.by_queue(hidden=hidden).items()},
        "kinds": {name: _tally(tally) for name, tally in stats.by_kind().items()},
        "runners": [{**row._asdict(), "beat_age": (stats.at - row.beat_at).total_seconds()} for row in stats.runners],
        "running": [_of_job(job, "attempts", "max_attempts", "worker", "started_at", "progress")
                    for job in stats.running],
        "failures": [_of_job(job, "attempts", "failure_reason", "last_error", "finished_at") for job in stats.failures],
    }


def sentence(stats: Stats) -> str:
    """Return what a person wants to read of it where there is no terminal: one line."""
    total = stats.total
    states = ", ".join(f"{total.states[state]:,} {state}" for state in JobState)
    return f"{stats.at:%H:%M:%S}Z {states}; {rate(total)}; {waiting(total)}; {alive(stats)}"


def rate(tally: Tally) -> str:
    """Return what ended within the last minute, in words."""
    ended = sum(tally.last_minute.values())
    speed = f" ({ended / 60:,.1f}/s)" if ended >= 60 else ""
    return f"last minute: {ended:,} ended{speed}, {tally.last_minute[JobState.FAILED]:,} of them failed"


def waiting(tally: Tally) -> str:
    """Return how long the oldest job waits that could run, in words."""
    oldest = tally.oldest_runnable
    return "no runnable job waits" if oldest is None else f"the oldest runnable job waits {age(oldest)}"


def alive(stats: Stats) -> str:
    """Return how many runners are alive, in words."""
    number = len(stats.runners)
    return f"{number or 'no'} runner{'' if number == 1 else 's'} alive"


def age(seconds: float) -> str:
    """Return a duration with its two largest units: 12s, 3m05s, 2h00m, 3d04h."""
    whole = max(0, int(seconds))
    for large, size, small, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size}{large}{whole % size // part:02}{small}"
    return f"{whole}s"


def _tally(tally: Tally, queue: QueueInfo | None = None) -> dict[str, Any]:
    figures: dict[str, Any] = {state.value: number for state, number in tally.states.items()}
    figures |= {"last_minute": tally.last_minute, "oldest_runnable": tally.oldest_runnable}
    return figures if queue is None else figures | {"paused": queue.paused, "hidden": queue.hidden}


def _of_job(job: JobInfo, *names: str) -> dict[str, Any]:
    return {name: getattr(job, name) for name in ("id", "kind", "queue", *names)}
