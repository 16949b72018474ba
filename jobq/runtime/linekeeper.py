"""Writes the lines that jobs log where they are kept, and removes old ones."""

from datetime import timedelta

from jobq.errors import JobqError
from jobq.jobqueue import JobQueue
from jobq.log import get_logger
from jobq.model.events import LogLine
from jobq.model.lines import Line
from jobq.observe.jsonline import encode
from jobq.observe.rotating import RotatedFile

logger = get_logger(__name__)

#: Seconds between two looks for lines that are too old, and how many of them go in one transaction.
PRUNE_EVERY, PRUNE_BATCH = 60.0, 1_000


class LineKeeper:
    """What a runner does for the log lines of this process's jobs; its maintenance calls it."""

    def __init__(self, jobs: JobQueue) -> None:
        self._jobs = jobs
        self._told = 0
        self._prune_at = jobs.clock.monotonic()
        config = jobs.config
        self._file = (
            RotatedFile(config.log_file, max_bytes=config.file_max_bytes, backups=config.file_backups)
            if config.log_file
            else None
        )

    def begin(self) -> None:
        """See to it that lines can be kept.

        Raises:
            ConfigError: the configured file cannot be written.
        """
        if self._file is not None:
            self._file.require("log_file")

    def keep(self) -> bool:
        """Write the lines that wait; return whether there were any, of which the bus has to tell.

        Raises:
            StoreError: the database takes none; they go on waiting.
        """
        lines = self._jobs.lines
        waiting = len(lines) > 0
        if waiting:
            lines.drain(self._keep)
        if lines.lost > self._told:
            logger.warning("jobq.logline.dropped", count=lines.lost - self._told)
            self._told = lines.lost
        return waiting

    def prune(self) -> None:
        """Remove lines that are too old: one batch at each call while there are more, else a look now and then."""
        days, now = self._jobs.config.log_keep_days, self._jobs.clock.monotonic()
        if days is None or now < self._prune_at:
            return
        before = self._jobs.clock.now() - timedelta(days=days)
        if self._jobs.store.prune_lines(before=before, limit=PRUNE_BATCH) < PRUNE_BATCH:
            self._prune_at = now + PRUNE_EVERY

    def finish(self) -> None:
        """Write what waits at the end of a runner; what the database does not take waits for another runner here."""
        try:
            self.keep()
        except JobqError as error:
            logger.warning("jobq.logline.left", count=len(self._jobs.lines), error=type(error).__name__)
        finally:
            if self._file is not None:
                self._file.close()

    def _keep(self, batch: list[Line]) -> None:
        lines = [line.clean() for line in batch]
        if self._file is None:
            self._jobs.store.keep_lines(lines)
        else:
            self._file.append(map(_text, lines))
        if self._jobs.bus.wants(LogLine):
            for line in lines:
                self._jobs.bus.post(line)


def _text(line: LogLine) -> str:
    fields = {
        "ts": line.at.isoformat(timespec="milliseconds"),
        "level": line.level,
        "job_id": line.job_id,
        "attempt": line.attempt,
        "event": line.event,
        "fields": dict(line.fields),
    }
    return encode(fields)
