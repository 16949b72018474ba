"""How far a run has come, as its handler says."""

import json
from datetime import datetime
from typing import NamedTuple

from jobq.model.events import JobProgressed
from jobq.model.lease import Claim


class Progress(NamedTuple):
    """So much done, of how much where that is known, and a few words for people, which are redacted already."""

    done: float
    total: float | None = None
    note: str | None = None

    @property
    def whole(self) -> bool:
        """Whether there is nothing left to do."""
        return self.total is not None and self.done >= self.total

    def to_json(self) -> str:
        """Return it as it is kept on the row of its job."""
        return json.dumps(self._asdict(), ensure_ascii=False)

    def event(self, claim: Claim, at: datetime) -> JobProgressed:
        """Return what the bus tells of it."""
        return JobProgressed(
            job_id=claim.id,
            kind=claim.kind,
            queue=claim.queue,
            attempt=claim.attempts,
            done=self.done,
            total=self.total,
            note=self.note,
            at=at,
        )
