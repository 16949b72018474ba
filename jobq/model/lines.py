"""A line of the log: raw as it was written, and as it is kept."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from jobq.model.events import LogLine
from jobq.model.job import JSON
from jobq.model.redact import WINDOW, Redactor, clean

#: The longest event and the longest JSON of the other fields that are kept, in characters.
MOST_EVENT, MOST_FIELDS = 2_000, 8_000


class Line(NamedTuple):
    """A line as it was written, which may hold secrets and lives in memory only."""

    job_id: int
    attempt: int
    at: datetime
    level: str
    event: str
    #: JSON.
    fields: str
    redactor: Redactor

    @property
    def size(self) -> int:
        """How much memory its texts take, about."""
        return len(self.event) + len(self.fields)

    def bounded(self) -> "Line":
        """Return the line without what is never looked at again."""
        return self._replace(event=self.event[: WINDOW + 1], fields=self.fields[: WINDOW + 1])

    def clean(self) -> LogLine:
        """Return it as it is kept: redacted first, then cut; fields that are too many become one text."""
        return LogLine(
            job_id=self.job_id,
            attempt=self.attempt,
            at=self.at,
            level=self.level,
            event=clean(self.event, self.redactor, most=MOST_EVENT),
            fields=self._shown_fields(),
        )

    def _shown_fields(self) -> Mapping[str, JSON]:
        text = clean(self.fields, self.redactor, most=MOST_FIELDS)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            # It was cut, or a redactor of the host's left something that is no JSON.
            return {"text": text}
        return found if isinstance(found, dict) else {"text": text}
