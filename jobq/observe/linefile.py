"""One open file to whose end whole lines are written, for its owner's eyes only."""

import contextlib
import errno
import os
import stat
from collections import deque
from itertools import islice

#: Only the user who runs jobq may read what it writes.
_MODE = 0o600


class LineFile:
    """An open file; whoever writes to it has locked ``descriptor``, and has asked :meth:`stands_at` since."""

    def __init__(self, path: str) -> None:
        """Open the file, making it where there is none; raises OSError."""
        self.size = 0
        #: Where our last line ended: what stands behind it came from others.
        self._end = 0
        # Read as well as write: a torn line is recognized by its last byte.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self.descriptor = os.open(path, flags, _MODE)
        try:
            info = os.fstat(self.descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            if stat.S_IMODE(info.st_mode) != _MODE and hasattr(os, "fchmod"):
                os.fchmod(self.descriptor, _MODE)
        except BaseException:
            self.close()
            raise
        self._identity = (info.st_dev, info.st_ino)

    def close(self) -> None:
        """Close the handle."""
        os.close(self.descriptor)

    def stands_at(self, path: str) -> bool:
        """Whether this is still the file of that name, and not one that was renamed or removed; looks at its size."""
        try:
            info = os.stat(path)
        except FileNotFoundError:
            return False
        self.size = info.st_size
        return (info.st_dev, info.st_ino) == self._identity

    def mend(self) -> None:
        """End the torn line that a killed process left, or one that ran out of disk."""
        if self.size in (0, self._end):
            return
        os.lseek(self.descriptor, self.size - 1, os.SEEK_SET)
        if os.read(self.descriptor, 1) != b"\n":
            self._put(b"\n")

    def append(self, lines: "deque[bytes]", count: int) -> None:
        """Write the first ``count`` lines in one piece, and take those from ``lines`` that are in the file.

        Where that fails no part of a line stays behind, and the OSError comes out.
        """
        start, data = self.size, b"".join(islice(lines, count))
        try:
            self._put(data)
        except OSError:
            self.size = start + data.rfind(b"\n", 0, self.size - start) + 1
            os.ftruncate(self.descriptor, self.size)
            raise
        finally:
            written = self.size - start
            while lines and written >= len(lines[0]):
                written -= len(lines.popleft())

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            done = os.write(self.descriptor, rest)
            self.size += done
            rest = rest[done:]
        self._end = self.size


def seal(path: str) -> None:
    """Let only its owner read a file that exists already."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(os.lstat(path).st_mode):
            os.chmod(path, _MODE)
