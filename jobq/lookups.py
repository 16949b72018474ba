"""Looking at jobs, queues and kinds; nothing here writes or waits."""

from jobq.arguments import check_id, check_int, check_key, check_kind, check_queue, check_text, check_word
from jobq.core import Core
from jobq.errors import JobNotFound
from jobq.model.job import Job, JobInfo, JobState, KindInfo, LoggedChange, QueueInfo, Run
from jobq.store.base import Filter


class Lookups(Core):
    """The verbs that read."""

    def get(self, job_id: int) -> Job:
        """Return a job with its payload and result.

        Raises:
            JobNotFound: no job has this id.
        """
        found = self.store.get((check_id(job_id),))
        if job_id not in found:
            raise JobNotFound(job_id)
        return found[job_id]

    def find(
        self,
        *,
        state: JobState | str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        parent_id: int | None = None,
        tenant_id: str | None = None,
        subject: str | None = None,
        dedupe_key: str | None = None,
        failure_reason: str | None = None,
        before: int | None = None,
        limit: int | None = 50,
    ) -> list[JobInfo]:
        """Return the jobs that match all that is named, newest first, without payloads and results.

        ``limit`` is taken as it is; None returns all. ``before`` is an id: only older jobs, which is the next page.
        Nothing that matches is an empty list.
        """
        wanted = Filter(
            state=None if state is None else check_word(state, JobState, argument="state"),
            kind=None if kind is None else check_kind(kind),
            queue=None if queue is None else check_queue(queue),
            parent_id=None if parent_id is None else check_id(parent_id, argument="parent_id"),
            tenant_id=None if tenant_id is None else check_text(tenant_id, argument="tenant_id"),
            subject=None if subject is None else check_text(subject, argument="subject"),
            dedupe_key=None if dedupe_key is None else check_key(dedupe_key),
            failure_reason=None if failure_reason is None else check_text(failure_reason, argument="failure_reason"),
            before=None if before is None else check_id(before, argument="before"),
        )
        return self.store.find(wanted, limit=None if limit is None else check_int(limit, argument="limit", least=0))

    def children(self, job_id: int) -> list[JobInfo]:
        """Return the parts of a job, oldest first: the jobs whose parent it is, without payloads and results.

        ``find(parent_id=...)`` pages through them.

        Raises:
            JobNotFound: no job has this id.
        """
        found = self.store.find(Filter(parent_id=check_id(job_id)), limit=None)
        if not found and not self.store.states((job_id,)):
            raise JobNotFound(job_id)
        return found[::-1]

    def family_progress(self, job_id: int) -> dict[JobState, int]:
        """Count everything below a job by state, its parts and theirs; every state is a key.

        The job itself is not counted.

        Raises:
            JobNotFound: no job has this id.
        """
        counts = self.store.family_progress(check_id(job_id))
        if not any(counts.values()) and not self.store.states((job_id,)):
            raise JobNotFound(job_id)
        return counts

    def counts(self, *, queue: str | None = None, kind: str | None = None) -> dict[JobState, int]:
        """Count jobs by state, of one queue or kind where it is named; every state is a key."""
        wanted = Filter(
            queue=None if queue is None else check_queue(queue), kind=None if kind is None else check_kind(kind)
        )
        return self.store.count(wanted)

    def history(self, job_id: int) -> list[Run]:
        """Return the counted runs of a job that did not succeed, oldest first.

        Raises:
            JobNotFound: no job has this id.
        """
        runs = self.store.history(check_id(job_id))
        if not runs and not self.store.states((job_id,)):
            raise JobNotFound(job_id)
        return runs

    def changes(self, job_id: int | None = None, *, limit: int = 50) -> list[LoggedChange]:
        """Return what was done by hand to one job or to all, newest first; it outlives the jobs."""
        wanted = None if job_id is None else check_id(job_id)
        return self.store.changes(job_id=wanted, limit=check_int(limit, argument="limit", least=0))

    def queues(self, *, hidden: bool = False) -> list[QueueInfo]:
        """Return the queues by name, with how many of their jobs wait and run; with ``hidden`` the hidden ones too."""
        return [queue for queue in self.store.queues() if hidden or not queue.hidden]

    def kinds(self) -> list[KindInfo]:
        """Return every kind that was registered or enqueued, by name."""
        return self.store.kinds()
