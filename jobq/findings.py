"""What can be wrong with the work in a job queue: nobody does it, it waits for a pause, or a clock is wrong."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from jobq.core import Core
from jobq.liveness import is_alive
from jobq.model.finding import Finding, judge
from jobq.model.job import JobState
from jobq.model.runner import RunnerRow
from jobq.store.base import Filter

#: A lease that ended this long ago, and a slot that was due then, are overdue: somebody should have seen to it.
_OVERDUE_LEASE, _OVERDUE_SLOT = timedelta(seconds=2), timedelta(seconds=60)
#: What was written further from now than this was written by another clock.
_AHEAD = timedelta(seconds=60)
_MOST_NAMED = 5


def findings_of(jobs: Core) -> Iterator[Finding]:
    """Yield a finding for each check of the work in a job queue and of those who do it."""
    runners, now, lease = jobs.store.runners(), jobs.clock.now(), jobs.config.lease
    dead = [runner for runner in runners if not is_alive(runner, now=now, lease=lease)]
    alive = [runner for runner in runners if runner not in dead]
    yield judge("durability", False, f"{jobs.config.durability}, as configured here", None)
    yield from _service(jobs, alive, dead)
    yield _leases(jobs)
    yield _schedules(jobs)
    yield _row_times(jobs, alive)


def _service(jobs: Core, alive: Sequence[RunnerRow], dead: Sequence[RunnerRow]) -> Iterator[Finding]:
    served = {queue for runner in alive for queue in runner.queues}
    handled = {kind for runner in alive for kind in runner.kinds}
    queues, kinds = jobs.store.queues(), [kind for kind in jobs.store.kinds() if kind.queued]
    waiting = {queue.name for queue in queues if queue.queued and not queue.paused}
    yield judge(
        "runners",
        not alive and bool(waiting),
        (f"{len(alive)} alive" if alive else "none alive") + _dead(dead),
        "Start one: jobq work, or a Runner in your program.",
    )
    yield _unserved("queues", waiting - served, "Start a runner that names them in workers=.")
    unknown = {kind.name for kind in kinds if not kind.retired and not kind.paused} - handled
    yield _unserved("kinds", unknown, "Start a runner in a process that registers their handlers.")
    retired = [kind.name for kind in kinds if kind.retired]
    yield judge(
        "retired kinds",
        bool(retired),
        f"jobs are queued of {_named(retired)}" if retired else "none has jobs queued",
        "Start a runner in a process that retires them; it cancels these jobs.",
    )
    paused = [f"queue {queue.name}" for queue in queues if queue.paused and queue.queued]
    paused += [f"kind {kind.name}" for kind in kinds if kind.paused]
    yield judge(
        "pauses",
        bool(paused),
        f"paused with jobs waiting: {_named(paused)}" if paused else "nothing paused has jobs",
        "Resume them when their cause has passed.",
    )


def _leases(jobs: Core) -> Finding:
    late = jobs.clock.now() - _OVERDUE_LEASE
    running = jobs.store.find(Filter(state=JobState.RUNNING), limit=None)
    expired = [str(job.id) for job in running if job.lease_until is not None and job.lease_until < late]
    return judge(
        "leases",
        bool(expired),
        f"{len(expired)} of {len(running)} ran out: jobs {_named(expired)}"
        if expired
        else f"{len(running)} running, none ran out",
        "The next claim from any queue takes them back: start a worker.",
    )


def _schedules(jobs: Core) -> Finding:
    schedules = jobs.store.schedules()
    broken = [f"{one.name}: {one.error}" for one in schedules if one.error]
    due = jobs.clock.now() - _OVERDUE_SLOT
    late = [one.name for one in schedules if not one.error and not one.paused and one.next_run < due]
    problems = [*broken, *([f"overdue: {_named(late)}"] if late else ())]
    return judge(
        "schedules",
        bool(problems),
        "; ".join(problems[:_MOST_NAMED]) or f"{len(schedules)}, none in error or overdue",
        "Add the schedule again as it should be: jobq schedule add."
        if broken
        else "Start a runner: every runner ticks the schedules.",
    )


def _row_times(jobs: Core, alive: Sequence[RunnerRow]) -> Finding:
    now = jobs.clock.now()
    newest = jobs.store.find(Filter(), limit=1)
    ahead = [f"runner {one.id}" for one in alive if one.beat_at > now + _AHEAD]
    ahead += [f"job {one.id}" for one in newest if one.created_at > now + _AHEAD]
    return judge(
        "rows' times",
        bool(ahead),
        f"written by a clock that is ahead of this one: {_named(ahead)}" if ahead else "none is ahead of the clock",
        "Let all machines and users of the file go by one right clock; a clock that was set back catches up.",
    )


def _dead(dead: Sequence[RunnerRow]) -> str:
    return f"; dead: {', '.join(f'process {one.pid} on {one.host}' for one in dead)}" if dead else ""


def _unserved(check: str, names: set[str], fix: str) -> Finding:
    detail = f"no live runner serves {_named(sorted(names))}" if names else "all that wait are served"
    return judge(check, bool(names), detail, fix)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
