"""What jobq needs of a database for those who operate it; a part of :mod:`jobq.store.base`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from jobq.model.circumstances import Circumstances
from jobq.model.filter import Filter
from jobq.model.job import Actor, LoggedChange, Requeued
from jobq.model.label import Label, LabelLayer


class OperatingStore(Protocol):
    """The verbs of people on call. What is common to all verbs is said in :mod:`jobq.store.base`."""

    def pause(self, queue: str, *, who: str | None, why: str | None) -> bool:
        """Stop claims from a queue; return False when it was paused already.

        Raises:
            QueueNotFound: no such queue.
        """

    def resume(self, queue: str) -> bool:
        """Let claims from a queue go on; return False when it was not paused.

        Raises:
            QueueNotFound: no such queue.
        """

    def pause_kind(self, kind: str, *, who: str | None, why: str | None) -> bool:
        """Stop claims of a kind; return False when it was paused already.

        Raises:
            UnknownKind: no row knows it.
        """

    def resume_kind(self, kind: str) -> bool:
        """Let claims of a kind go on; return False when it was not paused.

        Raises:
            UnknownKind: no row knows it.
        """

    def requeue(
        self,
        ids: Sequence[int],
        *,
        wanted: Filter | None = None,
        queue: str | None,
        actor: Actor,
        dry_run: bool,
    ) -> Requeued:
        """Let failed, cancelled and queued jobs run again from the start, perhaps in another queue.

        Those that do not fit ``wanted`` are left out. Running and succeeded jobs, unknown ids, and jobs whose dedupe
        key a newer job holds are refused, each with its reason; the others go on. Each writes a line of the change
        log. A dry run answers the same, on a reader.

        Raises:
            QueueNotFound: ``queue`` does not exist.
        """

    def put_label(self, subject: str, name: str, value: str, *, layer: LabelLayer, actor: Actor) -> bool:
        """Set a label of a subject, with a line of the change log; return False when it was so already."""

    def labels(self, subject: str) -> list[Label]:
        """Return every label of a subject, by name."""

    def route(self, subject: str, kind: str) -> str | None:
        """Return the queue where the label of a subject sends jobs of a kind; None where it sends them nowhere."""

    def clear_labels(
        self, subject: str, name: str | None, *, layers: Sequence[LabelLayer], actor: Actor
    ) -> int:
        """Remove labels of these layers, all or those of one name, with a line of the change log; return how many."""

    def retriage(self, subject: str, *, actor: Actor) -> tuple[Requeued, int]:
        """Remove a subject's machine labels and requeue its jobs of intake kinds; return that and how many labels."""

    def healable(self) -> list[int]:
        """Return failed jobs of the class transient that ended 15 minutes ago and healed less than three times.

        Those whose dedupe key is held, and of retired kinds, are left out. The oldest 500 at most; nothing is written.
        """

    def heal(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Requeue those of the jobs for which :meth:`healable` holds under the lock, and return which."""

    def count_failed(self, *, unrecoverable: bool | None) -> int:
        """Count failed jobs: all, the unrecoverable ones, or the others."""

    def circumstances(
        self, job_id: int, *, served: Mapping[str, tuple[str, ...]], limits: Mapping[str, int]
    ) -> Circumstances | None:
        """Return a job with what a claim would look at, from one snapshot; None where there is no such job.

        Better jobs are counted when it is due: among the kinds that ``served`` names for its queue, or among all where
        it names none. ``limits`` are caps that win over the stored ones. The work grows with the number of lanes, and
        with the better jobs up to 1,001.
        """

    def changes(self, *, job_id: int | None, subject: str | None = None, limit: int) -> list[LoggedChange]:
        """Return lines of the change log, newest first, all or those of a job or a subject."""
