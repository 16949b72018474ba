"""A file system whose power can be cut: it remembers what was written to each file since its last sync.

A cut never disturbs the program that runs on it. It answers with the files as a disk might hold them after the power
failed at that instant: everything up to the last sync, and of what came later all, nothing, or a random part, in any
order and torn at any sector. (A disk keeps a sector of 512 bytes whole; SQLite asks for no more where the device has
powersafe overwrite, https://sqlite.org/psow.html, and that is what the system's VFS says of itself.)
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import attrs

SECTOR = 512
#: What a disk may have done with the writes that no sync followed.
FATES = ("none", "all", "some")


@attrs.frozen
class Write:
    """Bytes that were written at an offset."""

    offset: int
    data: bytes


@attrs.frozen
class Truncate:
    """A file that was cut or stretched to a size."""

    size: int


@attrs.frozen
class Delete:
    """A file that was deleted; what was written later went into a new one of the same name."""


Step = Write | Truncate | Delete


@attrs.define
class Tracked:
    """One file: what its last sync made sure of, and the steps since."""

    durable: bytes | None
    pending: list[Step] = attrs.Factory(list)


@attrs.frozen
class Image:
    """All files of the disk at one instant, before it is decided what became of the writes that were not synced."""

    files: dict[str, tuple[bytes | None, tuple[Step, ...]]]

    def of(self, path: Path) -> "Image":
        """Return the part of it that belongs to one database."""
        return Image({name: one for name, one in self.files.items() if name.startswith(str(path))})

    def write(self, folder: Path, fate: str, dice: random.Random) -> None:
        """Leave in a folder what the disk holds after this fate."""
        for name, (durable, pending) in self.files.items():
            content = _after(durable, pending, fate, dice)
            if content is not None:
                (folder / Path(name).name).write_bytes(content)


class Disk(apsw.VFS):
    """The default file system of SQLite while it is in use; ``on_step`` is called before each step that writes."""

    def __init__(self) -> None:
        self.steps = 0
        self.on_step: Callable[[], None] = lambda: None
        self._tracked: dict[str, Tracked] = {}
        #: The default of before; "the default" is this one from now on.
        self.base = apsw.vfs_names()[0]
        super().__init__("powercut", self.base, makedefault=True)

    def image(self) -> Image:
        """Return the disk as of now."""
        return Image({name: (one.durable, tuple(one.pending)) for name, one in self._tracked.items()})

    def count(self) -> None:
        """Note that a file is about to be changed or synced: the moments when power may fail."""
        self.steps += 1
        self.on_step()

    def track(self, name: str, content: Callable[[], bytes]) -> Tracked:
        """Return what is known of a file; one that is new to us is taken to be on the disk as it is."""
        if name not in self._tracked:
            self._tracked[name] = Tracked(content())
        return self._tracked[name]

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's name
        """Open a file; the ones that outlive a cut are tracked."""
        kept = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        if flags[0] & kept:
            return DiskFile(self, name, flags)
        return super().xOpen(name, flags)

    def sync_folder(self) -> None:
        """Make sure of the deletions, as a sync of the folder does."""
        for one in self._tracked.values():
            gone = max((n for n, step in enumerate(one.pending) if isinstance(step, Delete)), default=None)
            if gone is not None:
                one.durable, one.pending = None, one.pending[gone + 1 :]

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's name
        """Delete a file; for good only with the folder's sync."""
        self.count()
        super().xDelete(filename, syncdir)
        if filename in self._tracked:
            self._tracked[filename].pending.append(Delete())
        if syncdir:
            self.sync_folder()


class DiskFile(apsw.VFSFile):
    """A file of such a disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__(disk.base, name, flags)
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._tracked = disk.track(os.fspath(path), self._content)
        journal = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        self._named_now = bool(flags[0] & journal) and not self.xFileSize()

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write; it may never reach the disk."""
        self._disk.count()
        super().xWrite(data, offset)
        self._tracked.pending.append(Write(offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        """Cut the file."""
        self._disk.count()
        super().xTruncate(newsize)
        self._tracked.pending.append(Truncate(newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Make sure of everything up to now."""
        self._disk.count()
        super().xSync(flags)
        self._tracked.durable = _after(self._tracked.durable, tuple(self._tracked.pending), "all", random.Random(0))
        self._tracked.pending = []
        if self._named_now:
            # SQLite syncs the folder together with the first sync of a file that it has created.
            self._named_now = False
            self._disk.sync_folder()

    def _content(self) -> bytes:
        size = self.xFileSize()
        return self.xRead(size, 0) if size else b""


def _after(durable: bytes | None, pending: tuple[Step, ...], fate: str, dice: random.Random) -> bytes | None:
    """Return a file's content after a cut, None where there is no file."""
    content = None if durable is None else bytearray(durable)
    for step in pending:
        if isinstance(step, Delete):
            if fate == "none" or (fate == "some" and dice.random() < 0.5):
                break  # The old file is still there, and later writes went to one that has no name.
            content = None
        elif fate == "all" or (fate == "some" and dice.random() < 0.5):
            content = _carry_out(content, step, torn=fate == "some" and dice.random() < 0.3, dice=dice)
    return None if content is None else bytes(content)


def _carry_out(content: bytearray | None, step: Write | Truncate, *, torn: bool, dice: random.Random) -> bytearray:
    content = bytearray() if content is None else content
    if isinstance(step, Truncate):
        del content[step.size :]
        content.extend(bytes(step.size - len(content)))
        return content
    for start in range(0, len(step.data), SECTOR):
        if torn and dice.random() < 0.5:
            continue
        piece = step.data[start : start + SECTOR]
        offset = step.offset + start
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(piece)] = piece
    return content
