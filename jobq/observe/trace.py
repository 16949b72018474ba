"""The trace: what a model or an agent was told and what it answered, in full, in a file of its own.

It is the one place that nothing is redacted for, so it is off unless it is configured, and never a part of another log.
"""

from datetime import datetime
from typing import Any

from jobq.model.events import TraceEntry
from jobq.model.lease import Claim
from jobq.observe.jsonline import encode
from jobq.observe.rotating import BACKUPS, MAX_BYTES, RotatedFile

#: The most characters of one text that are kept.
MOST_TEXT = 1_000_000


def entry_of(claim: Claim, direction: str, text: str, at: datetime) -> TraceEntry:
    """Return one entry; of a text that is too long the beginning is kept, and how much is missing."""
    return TraceEntry(
        job_id=claim.id,
        kind=claim.kind,
        queue=claim.queue,
        attempt=claim.attempts,
        direction=direction,
        text=text[:MOST_TEXT],
        cut=max(0, len(text) - MOST_TEXT),
        at=at,
    )


class Trace:
    """The file of the trace: JSON lines for its owner's eyes only, rotated by size, whole over several processes.

    What cannot be written is counted in ``file.lost`` and logged once; it never disturbs a job.
    """

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES, backups: int = BACKUPS) -> None:
        self.file = RotatedFile(path, max_bytes=max_bytes, backups=backups)

    def write(self, entry: TraceEntry) -> None:
        """Append one entry."""
        line: dict[str, Any] = {
            "ts": entry.at.isoformat(timespec="milliseconds"),
            "job_id": entry.job_id,
            "kind": entry.kind,
            "queue": entry.queue,
            "attempt": entry.attempt,
            "direction": entry.direction,
            "text": entry.text,
        }
        if entry.cut:
            line["cut"] = entry.cut
        self.file.append((encode(line),))
