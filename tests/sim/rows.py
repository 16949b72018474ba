"""What the rows say at one instant, read as another process reads them."""

from collections.abc import Mapping
from typing import NamedTuple

import apsw

_COLUMNS = (
    "id, kind, queue, state, priority, run_at, attempts, max_attempts, dedupe_key, token, lease_until, schedule, slot, "
    "subject"
)


class Row(NamedTuple):
    """The columns of a job that the guarantees speak of."""

    id: int
    kind: str
    queue: str
    state: str
    priority: int
    run_at: int
    attempts: int
    max_attempts: int
    dedupe_key: str | None
    token: str | None
    lease_until: int | None
    schedule: str | None
    slot: int | None
    subject: str | None

    @property
    def live(self) -> bool:
        """Whether it is queued or running."""
        return self.state in {"queued", "running"}


Rows = Mapping[int, Row]


class Glass:
    """A window on a database file."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)

    def look(self) -> Rows:
        """Return every job."""
        rows = self._connection.execute(f"SELECT {_COLUMNS} FROM jobq_job").fetchall()
        return {row[0]: Row(*row) for row in rows}

    def close(self) -> None:
        """Close it."""
        self._connection.close()
