"""A file of whole lines that several processes append to, and that is rotated by size.

Every writer locks the file that stands under the name, so nothing lies beside it but its backups. Whoever finds it
full renames it to ``NAME.1`` and moves the older ones up; the others see at their next line that their handle is no
longer the file of that name.
"""

import contextlib
import errno
import os
import threading
from collections import deque
from collections.abc import Iterable

from jobq import fork
from jobq.errors import ConfigError
from jobq.log import get_logger
from jobq.observe.filelock import lock, unlock
from jobq.observe.linefile import LineFile, seal

logger = get_logger(__name__)

#: The size at which a file is rotated unless told otherwise, and how many older ones are kept.
MAX_BYTES, BACKUPS = 10 * 1024 * 1024, 5
#: How often the file may be renamed or removed under our hands before that counts as a failure.
_TRIES = 100
_FIX = "Name a file in a directory that this user may write to."


class RotatedFile:
    """Appends whole lines; safe to use from any thread, and from several processes on one file.

    The file and its backups are for their owner's eyes only, also where they existed with another mode. ``backups``
    older ones are kept as ``NAME.1``, the newest, to ``NAME.<backups>``. A line longer than ``max_bytes`` gets a file
    of its own.

    A line that cannot be written is counted and raises nothing; the log is told once when writing fails, and once when
    it works again. A process that is killed within a line leaves a torn one; the next writer ends it. ``patience`` is
    how many seconds another process's lock is waited for: once in a row, because a job may wait with it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        backups: int = BACKUPS,
        patience: float = 1.0,
    ) -> None:
        self.path = os.path.abspath(path)
        self.max_bytes = max_bytes
        self.backups = backups
        self.patience = patience
        #: How many lines this process wrote here, could not write, and removed with a file that had become too old.
        self.written = self.lost = self.dropped = 0
        self._file: LineFile | None = None
        self._failing = self._blocked = self._sealed = False
        self._lock = threading.Lock()
        fork.register(self)

    def require(self, key: str) -> None:
        """Open the file now, making it where there is none.

        Raises:
            ConfigError: it cannot be written; it was named by this key of the configuration.
        """
        try:
            with self._lock:
                self._opened()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{key}: {self.path}: {_reason(error)}", fix=_FIX) from error

    def append(self, lines: Iterable[str]) -> None:
        """Write these lines, which are given without their ends; what cannot be written is counted as lost."""
        rest = deque(line.replace("\n", "\\n").encode("utf-8", "backslashreplace") + b"\n" for line in lines)
        count = len(rest)
        if not count:
            return
        with self._lock:
            problem = self._write(rest)
            self.written += count - len(rest)
            self.lost += len(rest)
            changed, self._failing = self._failing is (problem is None), problem is not None
        # Out of the lock: what is logged may be meant for this very file.
        if changed and problem is not None:
            logger.error("jobq.logfile.failed", file=self.path, error=f"{type(problem).__name__}: {_reason(problem)}")
        elif changed:
            logger.info("jobq.logfile.recovered", file=self.path, lost=self.lost)

    def close(self) -> None:
        """Close the handle; another line would open it again."""
        with self._lock:
            self._shut()

    def before_fork(self) -> None:
        """Let a line that is being written come to its end."""
        self._lock.acquire(timeout=2 * self.patience)

    def after_fork_in_parent(self) -> None:
        """Let lines be written again."""
        with contextlib.suppress(RuntimeError):  # the wait was over and nobody holds it any more
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: the inherited handle shares its lock with the parent's."""
        self._lock = threading.Lock()
        self._shut()
        self.written = self.lost = self.dropped = 0

    def _write(self, rest: "deque[bytes]") -> OSError | None:
        try:
            while rest:
                file = self._take()
                try:
                    self._fill(file, rest)
                finally:
                    unlock(file.descriptor)
        except OSError as error:
            self._shut()
            self._blocked = isinstance(error, TimeoutError)
            return error
        self._blocked = False
        return None

    def _take(self) -> LineFile:
        """Return the file that stands under the name now, locked."""
        for _ in range(_TRIES):
            file = self._opened()
            lock(file.descriptor, patience=0.0 if self._blocked else self.patience)
            if file.stands_at(self.path):
                return file
            self._shut()
        raise OSError(errno.EAGAIN, "it does not stay in its place")

    def _fill(self, file: LineFile, rest: "deque[bytes]") -> None:
        """Write as many lines as there is room for; rotate the file when that is none."""
        file.mend()
        size, count = file.size, 0
        for line in rest:
            size += len(line)
            if size > self.max_bytes and size > len(line):
                break
            count += 1
        if count:
            file.append(rest, count)
        else:
            self._rotate()

    def _rotate(self) -> None:
        if os.name == "nt":
            self._shut()  # an open file cannot be renamed there, and nothing is locked
        # A missing backup, which somebody removed or a killed process did not come to move, is a place to move up to.
        free = next((n for n in range(1, self.backups) if not os.path.lexists(self._name(n))), self.backups)
        self._discard(self._name(free))
        # The file itself goes last: until then all others wait for its lock.
        for number in range(free, 0, -1):
            os.replace(self._name(number - 1), self._name(number))

    def _discard(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            with open(name, "rb") as file:
                lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
            os.unlink(name)
            self.dropped += lines

    def _name(self, number: int) -> str:
        return f"{self.path}.{number}" if number else self.path

    def _opened(self) -> LineFile:
        if not self._sealed:
            for number in range(1, self.backups + 1):
                seal(self._name(number))
            self._sealed = True
        if self._file is None:
            self._file = LineFile(self.path)
        return self._file

    def _shut(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
