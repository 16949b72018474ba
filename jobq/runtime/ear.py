"""The ear: a bell that the doorbell of other processes rings too."""

import contextlib
import os
import random
import secrets
import select
import socket
import stat
import threading

from jobq.doorbell import Doorbell
from jobq.threads import Bell

#: Seconds by which the looks of many waiting runners are spread for each of them, and the longest such pause.
SPREAD, LONGEST_SPREAD = 0.0003, 0.003
#: More datagrams than a socket keeps on any system that is known.
_MOST = 64
_TRIES = 3


class Ear(Bell):
    """Wakes the one thread that waits for it, rung in this process or, while :attr:`listening`, by another.

    Any number of rings are one. Where several runners wait at one file, each pauses for a moment of random length when
    it is called from outside, so that the first one can take the job before the others look for it.
    """

    __slots__ = ("_called", "_closed", "_doorbell", "_everyone", "_home", "_lock", "_name", "_pipe", "_socket",
                 "listening")  # fmt: skip

    def __init__(self, doorbell: Doorbell) -> None:
        super().__init__()
        #: Whether rings of other processes end the wait; else they are kept until it is set.
        self.listening = False
        self._called = False
        self._closed = False
        self._doorbell = doorbell
        self._lock = threading.Lock()
        self._name, self._socket = _bind(doorbell)
        self._pipe = os.pipe()
        for descriptor in self._pipe:
            os.set_blocking(descriptor, False)
        self._home, self._everyone = select.poll(), select.poll()
        for poll in (self._home, self._everyone):
            poll.register(self._pipe[0], select.POLLIN)
        self._everyone.register(self._socket, select.POLLIN)

    def ring(self) -> None:
        """End the wait under way, or else the next one; does nothing once it is closed."""
        # The lock keeps the descriptor ours: a number that was closed may belong to any file a moment later.
        with self._lock:
            if not self._closed:
                with contextlib.suppress(BlockingIOError):  # so many rings wait that one more makes no difference
                    os.write(self._pipe[1], b"\0")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it rings, or so many seconds of real time; return whether it rang."""
        rang = (self._everyone if self.listening else self._home).poll(_milliseconds(seconds))
        if any(descriptor != self._pipe[0] for descriptor, _ in rang):
            self._called = True
            crowd = self._doorbell.listeners()
            if crowd > 1:
                self._home.poll(_milliseconds(random.random() * min(crowd * SPREAD, LONGEST_SPREAD)))
        return bool(rang)

    def clear(self) -> None:
        """Stop the ringing that nobody waited for."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe[0], 4096)
        if self.listening:
            with contextlib.suppress(OSError):
                for _ in range(_MOST):
                    self._socket.recv(1)

    def take_called(self) -> bool:
        """Return whether another process rang since the last call."""
        called, self._called = self._called, False
        return called

    def close(self) -> None:
        """Take the socket away; only for the thread that waits, or before there is one. Idempotent."""
        if self._shut():
            self._doorbell.own.discard(self._name)
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._doorbell.folder, self._name))
                os.rmdir(self._doorbell.folder)  # by the last one

    def after_fork(self) -> None:
        """Let go in a forked child of what is the parent's, which goes on to listen."""
        self._lock = threading.Lock()
        self._shut()

    def _shut(self) -> bool:
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            self._socket.close()
            for descriptor in self._pipe:
                os.close(descriptor)
        return True


def listen(doorbell: Doorbell) -> Ear | None:
    """Return an ear at this door; None where the system, or the place of the database, does not allow it.

    A path that is too long, a directory that cannot be written, Windows: then polling does it alone.
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    try:
        return Ear(doorbell)
    except OSError:
        return None


def _bind(doorbell: Doorbell) -> tuple[str, socket.socket]:
    """Make a socket in the directory of the doorbell, and the directory, for those who may write the database."""
    writers = os.stat(doorbell.path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    name = f"{os.getpid():x}-{secrets.token_hex(4)}"
    # Known before it can be rung, so that this process never sends to itself.
    doorbell.own.add(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        listener.setblocking(False)
        for turn in range(_TRIES):
            with contextlib.suppress(FileExistsError):
                os.mkdir(doorbell.folder, 0o700 | writers | writers >> 1 | writers << 1)
            try:
                listener.bind(os.path.join(doorbell.folder, name))
                break
            except FileNotFoundError:  # the last one before us has just removed the directory
                if turn == _TRIES - 1:
                    raise
        os.chmod(os.path.join(doorbell.folder, name), writers | writers << 1)
    except BaseException:
        listener.close()
        doorbell.own.discard(name)
        raise
    return name, listener


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else max(0.0, min(seconds, threading.TIMEOUT_MAX)) * 1000
