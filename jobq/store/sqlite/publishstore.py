"""The part of the SQLite store that is about outboxes; its contract is :mod:`jobq.store.publishing`."""

from collections.abc import Sequence
from datetime import datetime

from jobq.store.publishing import PublishedDraft, StagedDraft
from jobq.store.sqlite import publish
from jobq.store.sqlite.transactions import Transactions


class SqlitePublishing(Transactions):
    """Publishing, and the records of it."""

    def publish(self, staged: Sequence[StagedDraft]) -> list[PublishedDraft]:
        """Make jobs of rows, each once.

        Synced with every durability: the relay then marks the row, the only other trace of the job, in a database that
        may be synced itself.
        """
        return self.engine.write(
            lambda conn, changes: publish.publish(conn, changes, staged, now=self._now()),
            sync=True,
            busy_timeout=self._busy_timeout,
        )

    def note_marked(self, marks: Sequence[tuple[str, datetime]]) -> None:
        """Take note of marks."""
        self._write(lambda conn, _: publish.note_marked(conn, marks), durable=False)

    def forget_published(self) -> int:
        """Remove old records."""
        return self._write(lambda conn, _: publish.forget(conn, now=self._now()), durable=False)
