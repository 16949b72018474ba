"""What all job queues of one file in one process share: the bus, the gates and the runs under way."""

import atexit
import os
import shutil
import tempfile
import threading
from typing import Protocol

from jobq import fork
from jobq.blocks import Blocks
from jobq.bus import Bus
from jobq.cancellation import CancelReason
from jobq.doorbell import Doorbell
from jobq.gate import Gates
from jobq.lines import Lines
from jobq.observe.eventlogs import EventLogs


class Stoppable(Protocol):
    """Something that can be asked to stop: the cancel token of a run, or the hand that a job waits in."""

    def request(self, reason: CancelReason) -> bool:
        """Ask it to stop; return whether that was news."""
        ...


class LiveRuns(dict[tuple[int, str], Stoppable]):
    """What to ask to stop for each job that this process has claimed, by job id and lease token.

    Whoever runs a job puts its token here and takes it out again; single operations on a dict need no lock.
    """

    def now(self) -> list[tuple[int, Stoppable]]:
        """Return the id of each job that is claimed here, with what to ask to stop."""
        # Copied in one step: other threads come and go meanwhile.
        return [(job_id, run) for (job_id, _), run in self.copy().items()]


class Database:
    """One file as this process sees it; made by :func:`acquire`, given back by :meth:`release`."""

    def __init__(self, path: str) -> None:
        self.path = path
        #: What every path to this file leads to, as of now: a link may be turned elsewhere later.
        self.key = os.path.realpath(path)
        #: Whether the file was there before this process opened it.
        self.existed = os.path.exists(path)
        self.blocks = Blocks()
        #: Wakes the waiting runners of other processes.
        self.doorbell = Doorbell(self.key)
        # It keeps as many events as the configurations of its job queues ask for.
        self.bus = Bus(self.blocks, doorbell=self.doorbell, ring_size=0)
        self.event_logs = EventLogs(self.bus)
        self.gates = Gates()
        self.live = LiveRuns()
        self.lines = Lines()
        self.users = 0
        # The directory that vanishes with the last user, None for a file of the host's, and the process that made it.
        self._directory: str | None = None
        self._maker = os.getpid()
        fork.register(self)

    def keep_in(self, directory: str) -> None:
        """Remove this directory when the last user is gone, and at the exit of this process, not of a forked child."""
        self._directory = directory
        atexit.register(self._remove)

    def release(self) -> None:
        """Give back one use; the last one forgets the database."""
        with _registry.lock:
            self.users -= 1
            if self.users == 0 and _registry.databases.get(self.key) is self:
                del _registry.databases[self.key]
            last = self.users == 0
        if last:
            self.doorbell.close()
        if last and self._directory is not None:
            self._remove()
            atexit.unregister(self._remove)

    def before_fork(self) -> None:
        """Do nothing: the locks of the bus and the gates are replaced in the child."""

    def after_fork_in_parent(self) -> None:
        """Do nothing."""

    def after_fork_in_child(self) -> None:
        """Forget the parent's runs and what it has still to tell; all permits are free."""
        self.blocks.after_fork()
        self.doorbell.after_fork()
        self.bus.after_fork()
        self.event_logs.after_fork()
        self.gates.after_fork()
        self.live.clear()
        self.lines.after_fork()

    def _remove(self) -> None:
        if self._directory is not None and self._maker == os.getpid():
            shutil.rmtree(self._directory, ignore_errors=True)


class _Registry:
    """The databases in use by the real path of their file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.databases: dict[str, Database] = {}
        fork.register(self)

    def before_fork(self) -> None:
        self.lock.acquire()

    def after_fork_in_parent(self) -> None:
        self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock = threading.Lock()


_registry = _Registry()


def acquire(path: str) -> Database:
    """Return the database of this file, the same one for every path that leads to it until the last user is gone."""
    with _registry.lock:
        database = _registry.databases.get(os.path.realpath(path)) or Database(path)
        _registry.databases[database.key] = database
        database.users += 1
        return database


def acquire_temporary() -> Database:
    """Return the database of a new file in a private directory, which is removed with its last user."""
    directory = tempfile.mkdtemp(prefix="jobq-")
    database = acquire(os.path.join(directory, "jobq.db"))
    database.keep_in(directory)
    return database
