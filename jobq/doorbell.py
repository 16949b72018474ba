"""The doorbell: whoever commits a job that waits wakes the idle runners of other processes.

Each idle runner listens on a datagram socket in a directory beside the database file (:mod:`jobq.runtime.ear`); an
empty datagram means "look", and nothing that comes with one is ever read. Nothing depends on it but time: runners
look at the file's change counter besides, and where a ring is lost, or there are no such sockets, that alone is it.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from jobq.model.events import Change
from jobq.model.job import JobState

#: For so many seconds a list of the listeners is good. A runner that has just started polls fast for longer than that.
FRESH = 0.1

_QUEUED = JobState.QUEUED


class Doorbell:
    """The runners that wait at one file, as one process sees them; safe to use from any thread.

    It opens nothing before there is somebody to wake, and starts no thread.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        #: Where the sockets are; the database's other companions are named in this way too.
        self.folder = f"{path}-bells"
        #: The names of this process's own sockets, whose runners are woken without a datagram.
        self.own: set[str] = set()
        self._others: tuple[str, ...] = ()
        self._fresh_until = 0.0
        self._due = self._here = False

    def listeners(self) -> int:
        """Return how many sockets there are, in this process and in others."""
        if time.monotonic() >= self._fresh_until:
            self._refresh()
        return len(self._others) + len(self.own)

    def feed(self, changes: Sequence[Change]) -> None:
        """Take committed changes: the next :meth:`ring` is one if a job waits now. Called under the write lock."""
        for change in changes:
            if change.state is _QUEUED:
                self._due = True
                return

    def want(self, *, here: bool = False) -> None:
        """Let the next :meth:`ring` be one: something else than a queued job was committed that a runner may wait for.

        A change of a due time or the end of a pause, say; ``here`` where nothing else tells this process's runners.
        """
        self._here = self._here or here
        self._due = True

    def ring(self) -> None:
        """Wake the runners that wait if there is a reason; without one, or a runner, it costs next to nothing.

        It never waits and raises nothing: a socket that is full will ring anyway, and a dead one is removed.
        """
        if not self._due:
            return
        here, self._here, self._due = self._here, False, False
        if time.monotonic() >= self._fresh_until:
            self._refresh()
        for name in (*self._others, *self.own) if here else self._others:
            self._send(name)

    def after_fork(self) -> None:
        """Forget in a forked child what is the parent's: its runners are others now."""
        self.own = set()
        self._fresh_until = 0.0
        self._due = self._here = False

    def close(self) -> None:
        """Close the sending socket; it is opened again where it is needed."""
        sender = self.__dict__.pop("_sender", None)
        if sender is not None:
            sender.close()

    @cached_property
    def _sender(self) -> Any:
        import socket  # start-up cost: no process needs it before a runner waits somewhere else

        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.setblocking(False)
        return sender

    def _refresh(self) -> None:
        names = os.listdir(self.folder) if self._trusted() else []
        self._others = tuple(name for name in names if name not in self.own)
        self._fresh_until = time.monotonic() + FRESH

    def _trusted(self) -> bool:
        """Whether the directory is there, and made by us, by root or by the owner of the database.

        Where everybody may write beside the database, a stranger could have made it, with links to other sockets.
        """
        try:
            found = os.lstat(self.folder)
            return stat.S_ISDIR(found.st_mode) and found.st_uid in (os.geteuid(), 0, os.stat(self.path).st_uid)
        except OSError:
            return False

    def _send(self, name: str) -> None:
        path = os.path.join(self.folder, name)
        try:
            self._sender.sendto(b"", path)
        except OSError as error:
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
                self._fresh_until = 0.0
            if error.errno == errno.ECONNREFUSED:
                # Nobody has it open: its process was killed.
                with contextlib.suppress(OSError):
                    os.unlink(path)
