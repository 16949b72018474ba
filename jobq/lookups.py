"""Looking at jobs, queues and kinds; nothing here writes or waits."""

from jobq.arguments import check_id, check_int, check_kind, check_queue, check_text
from jobq.core import Core
from jobq.errors import ArgumentError, JobNotFound
from jobq.filtering import filter_of
from jobq.model.duration import Duration
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
        older_than: Duration | None = None,
        newer_than: Duration | None = None,
        before: int | None = None,
        limit: int | None = 50,
    ) -> list[JobInfo]:
        """Return the jobs that match all that is named, newest first, without payloads and results.

        ``older_than`` and ``newer_than`` are about the time since a job ended, or since it was made where it has not.
        ``limit`` is taken as it is; None returns all. ``before`` is an id: only older jobs, which is the next page.
        Nothing that matches is an empty list.
        """
        where = {
            "state": state,
            "kind": kind,
            "queue": queue,
            "parent_id": parent_id,
            "tenant_id": tenant_id,
            "subject": subject,
            "dedupe_key": dedupe_key,
            "failure_reason": failure_reason,
            "older_than": older_than,
            "newer_than": newer_than,
            "before": before,
            "limit": limit,
        }
        wanted, most = filter_of(where, now=self.clock.now())
        return self.store.find(wanted, limit=most)

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

    def changes(
        self, job_id: int | None = None, *, subject: str | None = None, limit: int = 50
    ) -> list[LoggedChange]:
        """Return what was done by hand, or by self-heal, to a job, a subject or to all, newest first.

        It outlives the jobs.
        """
        if job_id is not None and subject is not None:
            raise ArgumentError("subject", "name a job or a subject, not both")
        return self.store.changes(
            job_id=None if job_id is None else check_id(job_id),
            subject=None if subject is None else check_text(subject, argument="subject"),
            limit=check_int(limit, argument="limit", least=0),
        )

    def queues(self, *, hidden: bool = False) -> list[QueueInfo]:
        """Return the queues by name, with how many of their jobs wait and run; with ``hidden`` the hidden ones too."""
        return [queue for queue in self.store.queues() if hidden or not queue.hidden]

    def kinds(self) -> list[KindInfo]:
        """Return every kind that was registered or enqueued, by name."""
        return self.store.kinds()
