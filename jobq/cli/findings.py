"""What ``jobq doctor`` looks at besides the checks of the library."""

from collections.abc import Iterator

from jobq.jobqueue import JobQueue
from jobq.model.finding import Finding
from jobq.model.job import JobState


def more_findings(jobs: JobQueue) -> Iterator[Finding]:
    """Yield a finding for the durability, the expired leases, and the queued jobs of retired kinds."""
    yield Finding(check="durability", ok=True, detail=f"{jobs.config.durability}, of this command")
    yield _leases(jobs)
    yield _retired(jobs)


def _leases(jobs: JobQueue) -> Finding:
    now = jobs.clock.now()
    running = jobs.find(state=JobState.RUNNING, limit=None)
    expired = [job.id for job in running if job.lease_until is not None and job.lease_until < now]
    if not expired:
        return Finding(check="leases", ok=True, detail=f"{len(running)} running, none expired")
    named = ", ".join(map(str, expired[:5])) + (", ..." if len(expired) > 5 else "")
    return Finding(
        check="leases",
        ok=False,
        detail=f"{len(expired)} of {len(running)} expired: jobs {named}",
        fix="The next claim from any queue takes them back: start a worker.",
    )


def _retired(jobs: JobQueue) -> Finding:
    kinds = [kind.name for kind in jobs.kinds() if kind.retired and kind.queued]
    if not kinds:
        return Finding(check="retired kinds", ok=True, detail="none has jobs queued")
    return Finding(
        check="retired kinds",
        ok=False,
        detail=f"jobs are queued of {', '.join(kinds)}",
        fix="Start a runner in a process that retires them; it cancels these jobs.",
    )
