"""What jobq needs of a database for the lines that jobs log; a part of :mod:`jobq.store.base`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from jobq.model.events import LogLine


class LineStore(Protocol):
    """The verbs about log lines. What is common to all verbs is said in :mod:`jobq.store.base`."""

    def keep_lines(self, lines: Sequence[LogLine]) -> None:
        """Keep lines, in order; those of jobs that are gone are left out. Not durable."""

    def lines(self, job_id: int, *, limit: int | None) -> list[LogLine]:
        """Return the newest lines of a job, the oldest of them first."""

    def prune_lines(self, *, before: datetime, limit: int) -> int:
        """Remove up to so many lines that are older, and return how many."""
