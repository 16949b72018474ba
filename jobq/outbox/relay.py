"""The relay: publishes what an outbox has staged, then marks it.

A crash between the two publishes again, and finds in jobq's file that the job is there. The host's database is read and
marked in short transactions; nothing in it is locked while jobq's file is written.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from jobq import fork
from jobq.core import Core
from jobq.errors import JobqError, OutboxTableMissing, OutboxUnavailable
from jobq.log import get_logger
from jobq.model.events import HealthChanged
from jobq.model.instant import from_ms, to_ms
from jobq.model.retry import RetryPolicy
from jobq.outbox import envelope
from jobq.outbox.contact import Contact
from jobq.outbox.forkgap import ForkGap
from jobq.outbox.host import Host
from jobq.outbox.table import Mark, Refusal, Row
from jobq.service import Service
from jobq.store.publishing import PublishedDraft, StagedDraft
from jobq.trouble import FIRST_PAUSE, LONGEST_PAUSE, Trouble

logger = get_logger(__name__)

#: Rows of one tick, which are published in one transaction.
BATCH = 100
#: Seconds between ticks, unless there is more to do.
EVERY = 0.2
#: Seconds between two looks for what is to be forgotten, and how many rows of the host's go in one tick.
TIDY_EVERY, TIDIED = 60.0, 500
#: The pauses of a row that cannot be published.
PAUSES = RetryPolicy(base=1.0, maximum=300.0, jitter=0.0)
#: The longest of them, in milliseconds.
LONGEST_WAIT = round(PAUSES.maximum * 1000)


class Relay(Service):
    """Publishes the rows of one outbox; several of them, in any processes, do no harm to each other.

    ``tick()`` does it here and now, ``start()`` on a thread of its own until ``stop()``. Trouble with the host's
    database, or with jobq's, makes the rows wait, with growing pauses and one report; a row that cannot be published
    waits alone.
    """

    name = "relay"

    def __init__(self, jobs: Core, *, contact: Contact, keep: float) -> None:
        super().__init__(clock=jobs.clock, trouble=Trouble(jobs.bus.post, on_fatal=self.stop))
        self._jobs = jobs
        self._contact = contact
        self._keep = keep
        # Kept between ticks by a thread of the loop, which may be the only one that can use it: after a stop that was
        # not waited out there are two for a moment.
        self._kept: dict[threading.Thread, Host] = {}
        self._full = False
        self._tidy_at = -math.inf
        # The next pause while the host's database is in trouble; None while it is not.
        self._host_pause: float | None = None
        self._gap = ForkGap()
        fork.register(self)

    def tick(self) -> int:
        """Publish up to 100 rows that are due, in staged order, mark them, and return how many jobs that made.

        A row that was published before and not marked is only marked, and one whose dedupe key is held makes no job.
        Nothing staged returns 0.

        Raises:
            OutboxUnavailable: the host's database cannot be reached, or fails.
            OutboxTableMissing: it has no outbox table.
            ForeignHandle: ``connect()`` has opened jobq's own file.
            InsideTransaction: this thread has a ``jobs.transaction()`` open.
            StoreError: trouble with jobq's file; the rows wait.
        """
        # Rolled back, it would take the jobs along, whose rows are marked by then.
        self._jobs.blocks.refuse("relay.tick")
        if threading.current_thread() is self.thread:
            self._gap.keep(self._drop)
        with self._host() as host:
            rows = self._contact.ask(host.waiting, to_ms(self.clock.now()), LONGEST_WAIT, BATCH)
            self._full = len(rows) == BATCH
            count = self._relay(host, rows) if rows else 0
            if self.clock.monotonic() >= self._tidy_at and not self._tidy(host):
                self._tidy_at = self.clock.monotonic() + TIDY_EVERY
        self._host_works()
        return count

    def catch_up(self) -> int:
        """Tick until nothing more is due, and return how many jobs that made."""
        count = self.tick()
        while self._full:
            count += self.tick()
        return count

    def next_due(self) -> datetime | None:
        """Return when the first of the rows that could not be published is tried again; None where there is none."""
        with self._host() as host:
            found = self._contact.ask(host.next_retry)
        return None if found is None else from_ms(found)

    @property
    def host_healthy(self) -> bool:
        """Whether the host's database worked when the thread last used it."""
        return self._host_pause is None

    def pause(self) -> float:
        """Return the seconds until the next tick: none while there is more to publish."""
        return 0.0 if self._full else EVERY

    def end(self) -> None:
        """Close the connection of the thread, on the thread."""
        self._drop()

    def before_fork(self) -> None:
        """Let the thread close its connection, which a child must not inherit; waits for it for a bounded time."""
        if self._kept and self.alive and threading.current_thread() is not self.thread:
            self._gap.open(self.poke)

    def after_fork_in_parent(self) -> None:
        """Let the thread go on; it connects anew."""
        self._gap.close()

    def after_fork_in_child(self) -> None:
        """Be as before a start: the thread is the parent's."""
        self._gap = ForkGap()
        self.after_fork()

    def after_fork(self) -> None:
        """Forget the thread, and its connection where it was not closed in time: it is the parent's."""
        super().after_fork()
        self._contact.abandon(list(self._kept.values()))
        self._kept.clear()

    def recover(self, error: BaseException) -> float:
        """Report trouble with the host's database once; everything else is as for every service."""
        self._drop()
        if not isinstance(error, OutboxUnavailable | OutboxTableMissing):
            seconds = super().recover(error)
            self._jobs.deliver()
            return seconds
        if isinstance(error, OutboxUnavailable) and error.busy:
            logger.debug("jobq.outbox.busy", loop=self.name)
            return FIRST_PAUSE
        pause = self._host_pause or FIRST_PAUSE
        if self._host_pause is None:
            detail = _detail(error)
            logger.error("jobq.outbox.failed", loop=self.name, error=detail)
            self._tell(HealthChanged(component="outbox", healthy=False, detail=detail))
        self._host_pause = min(2 * pause, LONGEST_PAUSE)
        return pause

    def _host_works(self) -> None:
        if self._host_pause is not None:
            self._host_pause = None
            logger.info("jobq.outbox.recovered", loop=self.name)
            self._tell(HealthChanged(component="outbox", healthy=True, detail=""))

    def _tell(self, event: HealthChanged) -> None:
        self._jobs.bus.post(event)
        self._jobs.deliver()

    @contextmanager
    def _host(self) -> Iterator[Host]:
        """Yield a connection: the thread's own, or one for this call."""
        thread = threading.current_thread()
        if thread is self.thread:
            if thread not in self._kept:
                self._kept[thread] = self._contact.open()
            yield self._kept[thread]
            return
        host = self._contact.open()
        try:
            yield host
        finally:
            self._contact.close(host)

    def _drop(self) -> None:
        kept = self._kept.pop(threading.current_thread(), None)
        if kept is not None:
            self._contact.close(kept)

    def _relay(self, host: Host, rows: Sequence[Row]) -> int:
        staged, answers = self._read(rows)
        self._jobs.register()
        if staged:
            answers += self._jobs.store.publish(staged)
            self._jobs.deliver()
        now = self.clock.now()
        by_uid = {row.uid: row for row in rows}
        marks = [Mark(one.uid, one.job_id, to_ms(now)) for one in answers if one.job_id is not None]
        refusals = [self._refuse(by_uid[one.uid], one.error, now) for one in answers if one.error is not None]
        self._contact.ask(host.note, marks, refusals)
        if marks:
            self._jobs.store.note_marked([(mark.uid, now) for mark in marks])
        new = sum(one.new for one in answers)
        if marks:
            logger.info("jobq.outbox.relayed", count=len(marks), created=new)
        return new

    def _read(self, rows: Sequence[Row]) -> tuple[list[StagedDraft], list[PublishedDraft]]:
        """Return the drafts of the rows, and an answer already for each row that holds none."""
        staged: list[StagedDraft] = []
        unreadable: list[PublishedDraft] = []
        for row in rows:
            try:
                staged.append(StagedDraft(row.uid, row.id, envelope.read(row.draft)))
            except JobqError as error:
                unreadable.append(PublishedDraft(row.uid, error=error))
        return staged, unreadable

    def _refuse(self, row: Row, error: JobqError, now: datetime) -> Refusal:
        text = self._jobs.clean(f"{type(error).__name__}: {error}", argument="error")
        if text != row.error:
            logger.warning(
                "jobq.outbox.publish_failed", outbox_id=row.id, kind=row.kind, error=text, attempt=row.attempts + 1
            )
        seconds = PAUSES.delay(row.attempts + 1, 0.0)
        return Refusal(row.uid, text, to_ms(now) + round(seconds * 1000))

    def _tidy(self, host: Host) -> bool:
        """Delete rows that were published long ago, and what jobq's file says of those that nobody asks about.

        Some of them, for what is staged waits meanwhile; the answer says whether there may be more.
        """
        until = to_ms(self.clock.now()) - round(self._keep * 1000)
        done = self._contact.ask(host.done, until, TIDIED)
        if done:
            # Told before they are gone: after a crash between mark and note there would be nobody to say it.
            self._jobs.store.note_marked([(uid, from_ms(at)) for uid, at in done])
            self._contact.ask(host.delete, [uid for uid, _ in done])
        forgotten = self._jobs.store.forget_published()
        return len(done) == TIDIED or forgotten > 0


def _detail(error: JobqError) -> str:
    return f"{type(error).__name__}: {error}"
