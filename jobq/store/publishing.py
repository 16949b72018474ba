"""What jobq needs of a database to publish what outboxes staged; a part of :mod:`jobq.store.base`."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from jobq.errors import JobqError
from jobq.model.draft import Draft


class StagedDraft(NamedTuple):
    """One row of an outbox; ``uid`` tells it from every other row of any outbox, ``number`` is for people."""

    uid: str
    number: int
    draft: Draft


class PublishedDraft(NamedTuple):
    """What became of one: the job that it is, and whether that was made for it now; or why it cannot be one."""

    uid: str
    job_id: int | None = None
    new: bool = False
    error: JobqError | None = None


class PublishStore(Protocol):
    """The verbs about outboxes. What is common to all verbs is said in :mod:`jobq.store.base`."""

    def publish(self, staged: Sequence[StagedDraft]) -> list[PublishedDraft]:
        """Insert the job of each row once, together with the record that it was published; always synced.

        A row that was published before is answered with its job, also when that has ended and been pruned. A draft
        whose dedupe key is held answers with the holder. One that is refused, as ``enqueue`` refuses, harms no other
        one. Answers come in the order of the rows, and jobs are made in it.
        """

    def note_marked(self, marks: Sequence[tuple[str, datetime]]) -> None:
        """Take note that outboxes know of these rows (uid, since when) that they were published; the first note counts.

        Unknown rows are left out.
        """

    def forget_published(self) -> int:
        """Remove records of rows that were marked 30 days ago, a bounded number of them, and return how many."""
