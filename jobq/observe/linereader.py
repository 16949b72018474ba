"""Reads what :class:`jobq.observe.rotating.RotatedFile` writes: the newest lines, then those that come."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeVar

Item = TypeVar("Item")

#: A directory that is read while a file in it is renamed may not show that file: so many more numbers are tried.
_AHEAD = 8
#: How often the files are looked at again because they were rotated meanwhile.
_TRIES = 20


class LineReader:
    """Reads whole lines across rotations while others write; it locks nothing. Use it from one thread, and close it.

    A line without an end is not read: somebody is writing it, or was killed while writing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        #: How often the file that was being read had gone when the next one was looked for: lines may be missing.
        self.gaps = 0
        self._file: BinaryIO | None = None

    def newest(self, count: int, read: Callable[[str], Item | None]) -> list[Item]:
        """Return the newest ``count`` things that ``read`` makes of lines, where it answers None of no line.

        What comes afterwards is for :meth:`more`. A file that is not there is like an empty one.
        """
        for _ in range(_TRIES):
            before = self._identity()
            found = self._newest(count, read)
            if before == self._identity():
                break
        return found

    def _newest(self, count: int, read: Callable[[str], Item | None]) -> list[Item]:
        self.close()
        found: list[Item] = []
        for file in self._newest_first():
            items = (item for line in _lines(file) if (item := read(line)) is not None)
            found[:0] = deque(items, maxlen=count - len(found))
            if self._file is None:
                self._file = file
            else:
                file.close()
            if len(found) >= count:
                break
        return found

    def more(self) -> Iterator[str]:
        """Yield the lines that came since."""
        while True:
            if self._file is not None:
                if os.fstat(self._file.fileno()).st_size < self._file.tell():
                    # Somebody else emptied it.
                    self._file.seek(0)
                yield from _lines(self._file)
            following = self._following()
            if following is None:
                return
            if self._file is not None:
                # Once more: what was written between the last look and its renaming.
                yield from _lines(self._file)
            self.close()
            self._file = following

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _following(self) -> BinaryIO | None:
        """Return the file that follows the one being read, opened; None where that is the newest."""
        mine = None if self._file is None else os.fstat(self._file.fileno())
        for _ in range(_TRIES):
            before = self._identity()
            opened, is_there = self._until(mine)
            if before == self._identity():
                break
            # Rotated meanwhile: a newer file may have come behind an older one.
            for file in opened:
                file.close()
        else:
            return None
        newer = opened
        if mine is not None and not is_there:
            # Ours was removed; those that were read before it were last written before it.
            newer = [file for file in opened if os.fstat(file.fileno()).st_mtime_ns > mine.st_mtime_ns]
            self.gaps += bool(newer)
        following = newer[-1] if newer else None
        for file in opened:
            if file is not following:
                file.close()
        return following

    def _until(self, mine: os.stat_result | None) -> tuple[list[BinaryIO], bool]:
        """Open the files that are newer than this one, the newest first; also say whether this one is there."""
        opened: list[BinaryIO] = []
        for file in self._newest_first():
            if mine is not None and os.path.samestat(os.fstat(file.fileno()), mine):
                file.close()
                return opened, True
            opened.append(file)
        return opened, False

    def _identity(self) -> tuple[int, int] | None:
        try:
            info = os.stat(self.path)
        except OSError:
            return None
        return info.st_dev, info.st_ino

    def _newest_first(self) -> Iterator[BinaryIO]:
        """Open the file and its backups; a rotation meanwhile moves them towards the end, so none is passed over."""
        seen: set[tuple[int, int]] = set()
        for place in self._places():
            try:
                file = open(place, "rb")  # noqa: SIM115 - whoever asked closes it
            except FileNotFoundError:
                continue
            info = os.fstat(file.fileno())
            if (info.st_dev, info.st_ino) in seen:
                file.close()
            else:
                seen.add((info.st_dev, info.st_ino))
                yield file

    def _places(self) -> Iterator[str]:
        yield self.path
        number, last = 1, 0
        # Looked up again at the end: rotations may have come meanwhile.
        while number <= last + _AHEAD or number <= (last := self._last_number()) + _AHEAD:
            yield f"{self.path}.{number}"
            number += 1

    def _last_number(self) -> int:
        folder, name = os.path.split(os.path.abspath(self.path))
        try:
            found = os.listdir(folder)
        except FileNotFoundError:
            return 0
        numbers = [one.removeprefix(f"{name}.") for one in found if one.startswith(f"{name}.")]
        return max((int(number) for number in numbers if number.isascii() and number.isdecimal()), default=0)


def _lines(file: BinaryIO) -> Iterator[str]:
    for line in iter(file.readline, b""):
        if not line.endswith(b"\n"):
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line[:-1].decode("utf-8", "replace")
