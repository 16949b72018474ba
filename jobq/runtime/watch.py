"""The watch: notices what other processes did, and what falls due, while worker threads are idle."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from jobq.cancellation import CancelReason
from jobq.jobqueue import JobQueue
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.runtime.ear import Ear, listen
from jobq.runtime.exchange import Exchange
from jobq.runtime.held import Held
from jobq.runtime.pool import Pool
from jobq.service import IN_USE, Service
from jobq.threads import Bell
from jobq.trouble import Trouble

#: The shortest pause between two polls, in seconds: after a look that found something; and how much each one that
#: follows is longer.
FAST, GROWTH = 0.002, 1.15
#: Who hears the doorbell polls this often at most, in seconds, for what comes without a ring; for so many seconds after
#: a job did come without one it is believed to be deaf.
HEARING, DEAF = 1.0, 60.0
#: Seconds between two looks for the cancel requests of other processes, where something was committed at all.
CANCELS = 0.1
_ASLEEP = 60.0


class Watch(Service):
    """Polls the change counter, and looks closer only when it moved or something falls due.

    While a thread is idle it hears the doorbell of other processes. Besides, it polls: fast after it found something,
    then backing off to ``poll`` seconds, or to one second where it hears. It sleeps while every thread is busy, but for
    the cancel requests. A change of this process wakes the threads at once, without it.
    """

    name = "watch"

    def __init__(
        self,
        jobs: JobQueue,
        *,
        held: Held,
        exchange: Exchange,
        trouble: Trouble,
    ) -> None:
        super().__init__(clock=jobs.clock, trouble=trouble)
        self._jobs = jobs
        self._held = held
        self._exchange = exchange
        #: The pools to wake; the runner says which.
        self.pools: Callable[[], Sequence[Pool]] = tuple
        self._pace = FAST
        self._version = self._cancels_version = -1
        self._next_due: datetime | None = None
        self._cancels_at = 0.0
        self._cancels_wanted = False
        self._ear: Ear | None = None
        self._deaf_until = 0.0

    def make_bell(self) -> Bell:
        """Return an ear at the file's doorbell, where there are threads that may wait and the system has such a thing.

        A drain looks for work by itself.
        """
        self._ear = listen(self._jobs.doorbell) if self.pools() else None
        return self._ear or super().make_bell()

    def on_idle(self) -> None:
        """Take note that a thread has become idle."""
        deaf = self._ear is not None and not self._ear.listening
        self.stir(0.0 if deaf else self._longest())

    def look_for_cancels(self) -> None:
        """Look for cancel requests with the next tick, which comes at once."""
        self._cancels_wanted = True
        self.poke()

    def concerns(self, change: Change) -> bool:
        """Whether a thread may wait for this change of this process: of most it need not even be told."""
        return change.state is JobState.QUEUED or self._frees_a_place(change)

    def on_change(self, change: Change) -> None:
        """Wake a thread for a job of this process that can run now, and look for one that waited for a cap."""
        if self._frees_a_place(change):
            # Another pool, or another process, may have waited for it; that of the run itself claims while it settles.
            self._jobs.doorbell.want()
            if any(pool.idle for pool in self.pools()):
                self.poke()
        if change.state is not JobState.QUEUED or change.run_at is None or change.run_at > self.clock.now():
            return
        if self._jobs.handlers.find(change.kind) is not None:
            for pool in self.pools():
                if pool.queue == change.queue:
                    pool.wake()

    def tick(self) -> None:
        """Poll once."""
        called = self._ear is not None and self._ear.take_called()
        self._pace = min(GROWTH * self._pace, self._longest())
        idle = [pool for pool in self.pools() if pool.idle]
        if not idle and not len(self._held):
            return
        version = self._jobs.store.data_version()
        if idle:
            self._look(idle, version, called=called)
        if len(self._held):
            self._check_cancels(version)

    def pause(self) -> float:
        """Return the pause before the next poll, in seconds of real time."""
        idle = any(pool.idle for pool in self.pools())
        if self._ear is not None:
            # Else the rings of others would disturb those who work; they are kept for the first who has nothing to do.
            self._ear.listening = idle
        # A cancel request comes without a ring.
        longest = IN_USE if self.take_used() or len(self._held) else _ASLEEP
        if idle:
            until_due = longest if self._next_due is None else (self._next_due - self.clock.now()).total_seconds()
            return max(0.001, min(self._pace, longest, until_due))
        return longest

    def after_fork(self) -> None:
        """Forget what the parent saw."""
        super().after_fork()
        self._version = self._cancels_version = -1
        self._next_due = self._ear = None

    def _frees_a_place(self, change: Change) -> bool:
        return change.previous is JobState.RUNNING and self._jobs.cap(change.kind) is not None

    def _longest(self) -> float:
        hears = self._ear is not None and time.monotonic() >= self._deaf_until
        return max(self._jobs.config.poll, HEARING if hears else 0.0)

    def _look(self, idle: Sequence[Pool], version: int, *, called: bool) -> None:
        due = self._next_due is not None and self._next_due <= self.clock.now()
        if version == self._version and not due and not self._exchange.permits.came_free():
            return
        outlook = self._jobs.store.look(self._exchange.request(tuple(pool.queue for pool in self.pools())))
        self._version, self._next_due = version, outlook.next_due
        woken = [pool for pool in idle if pool.queue in outlook.ready]
        # Any claim takes expired leases back, whatever its queue.
        for pool in woken or (idle[:1] if outlook.expired else ()):
            pool.wake()
            self._pace = self._longest() if called else FAST
        if woken and not called and not due:
            self._deaf_until = time.monotonic() + DEAF

    def _check_cancels(self, version: int) -> None:
        now = time.monotonic()
        moved = version != self._cancels_version and now - self._cancels_at >= CANCELS
        if not moved and not self._cancels_wanted:
            return
        self._cancels_wanted = False
        requests = self._jobs.store.cancel_requests()
        self._cancels_at, self._cancels_version = now, version
        for key in requests:
            self._held.request(key, CancelReason.USER)
