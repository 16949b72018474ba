"""What goes on: what a run tells of itself, and what the whole job queue does."""

import os

import attrs

from jobq import filesettings
from jobq.arguments import check_direction, check_id, check_int, check_string
from jobq.core import Core
from jobq.errors import ConfigError, JobNotFound, QueueClosed
from jobq.liveness import is_alive
from jobq.model.events import LogLine, TraceEntry
from jobq.model.lease import Claim
from jobq.model.progress import Progress
from jobq.model.stats import Stats
from jobq.observe.eventlog import EventLog
from jobq.observe.trace import entry_of


class Observing(Core):
    """The verbs through which runs and the job queue are seen."""

    def stats(self, *, failures: int = 10) -> Stats:
        """Return what the job queue does now: counts, rates, the oldest runnable job, what runs, what failed last.

        All of it is read from one state of the database by a reader, without the write lock, so it follows other
        processes and its numbers fit together. It counts jobs in indexes, which takes a tenth of a second for a million
        that are queued, and some three times that for a million that have ended.
        """
        found = self.store.survey(failures=check_int(failures, argument="failures", least=0))
        now, lease = found.at, self.config.lease
        return attrs.evolve(
            found,
            runners=tuple(runner for runner in found.runners if is_alive(runner, now=now, lease=lease)),
            running=tuple(sorted(found.running, key=lambda job: (job.started_at or now, job.id))),
        )

    def report(self, claim: Claim, progress: Progress) -> bool:
        """Keep how far a run is on its job's row and have it told; return False where its token is old.

        Inside a transaction of this thread it is a part of that. Listeners are told by the next one who delivers.
        """
        if progress.note is not None:
            progress = progress._replace(note=self.clean(progress.note, argument="note"))
        stands = self.store.report(claim.id, claim.token, progress.to_json())
        if stands:
            self.bus.post(progress.event(claim, self.clock.now()))
        return stands

    def trace(self, claim: Claim, direction: str, text: str) -> None:
        """Write one entry to the trace, unredacted, and have it told; does nothing where the trace is off.

        What cannot be written is counted and logged, and raises nothing.

        Raises:
            ArgumentError: the direction is no word of 1 to 40 printable characters, or the text is none.
        """
        if self.tracing is None:
            return
        entry = entry_of(
            claim,
            check_direction(direction),
            check_string(text, argument="text"),
            self.clock.now(),
        )
        self.tracing.write(entry)
        if self.bus.wants(TraceEntry):
            self.bus.publish(entry)

    def log_events(self, path: str | os.PathLike[str]) -> EventLog:
        """Append everything that is told in this process to a file until ``close()``, as ``events_file`` does.

        It takes the place of the event log that this job queue had. Job queues of one database that name the same file
        share it.

        Raises:
            ConfigError: the file cannot be written, or the path is none.
            QueueClosed: after ``close()``.
        """
        if self._store is None:
            raise QueueClosed
        file = filesettings.events_file(path)
        if not file:
            raise ConfigError("events_file: the path of a file is needed", fix='Name one, such as "events.jsonl".')
        logs, old = self._database.event_logs, self.event_log
        self.event_log = logs.open(
            file,
            max_bytes=self.config.file_max_bytes,
            backups=self.config.file_backups,
            now=self.clock.now,
        )
        if old is not None:
            logs.release(old)
        return self.event_log

    def log_lines(self, job_id: int, *, limit: int | None = 100) -> list[LogLine]:
        """Return the newest ``limit`` lines that runs of a job have logged, in their order; None returns all.

        They are there where the program that ran it keeps them, as ``jobq work`` does, a second or two after they were
        written; not where they are configured to go to a file.

        Raises:
            JobNotFound: no job has this id.
        """
        most = None if limit is None else check_int(limit, argument="limit", least=0)
        lines = self.store.lines(check_id(job_id), limit=most)
        if not lines and not self.store.states((job_id,)):
            raise JobNotFound(job_id)
        return lines
