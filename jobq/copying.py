"""Copying a job queue to another file."""

import os
from collections.abc import Callable

from jobq.core import Core
from jobq.errors import ArgumentError, BackupRefused
from jobq.newfile import BESIDE, complete


class Copying(Core):
    """The verb that makes a backup."""

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> int:
        """Copy the whole database, as of one instant, to a new file, and return its size in bytes.

        Workers and producers go on meanwhile, in this process and in others; nobody waits for it. The file gets its
        name when it is complete and synced, so that it is there as a whole or not at all, also after a crash, and
        only its owner may read it. ``force`` replaces an older backup in the same way. ``progress`` is called with
        the pages copied so far and all of them. To restore it, stop every process that uses the job queue, remove
        the file and its ``-wal`` and ``-shm`` files, and put the copy in its place.

        Raises:
            BackupRefused: there is a file of this name and ``force`` is not given; it is the database itself; or it is
                a database that is open, or was not closed.
            StoreError: the file cannot be written, or the database cannot be read.
            InsideTransaction: this thread has a transaction open.
        """
        self.blocks.refuse("backup")
        target = self._target(path, force=force)
        with complete(target, force=force) as temporary:
            self.store.backup(temporary, progress=progress or (lambda done, total: None))
            size = os.stat(temporary).st_size
        self.store.checkpoint()  # what was written meanwhile is still in the WAL
        return size

    def _target(self, path: str | os.PathLike[str], *, force: bool) -> str:
        try:
            target = os.path.abspath(os.fsdecode(path))
        except TypeError:
            raise ArgumentError("path", f"a path is needed, not a {type(path).__name__}") from None
        if "\0" in target or not os.path.basename(target):
            raise ArgumentError("path", "the name of a file is needed")
        if os.path.isdir(target):
            raise BackupRefused(target, "it is a directory")
        if self._is_ours(target):
            raise BackupRefused(target, "it belongs to the database that is to be copied")
        if os.path.lexists(target) and not force:
            raise BackupRefused(target, "it exists")
        for end in BESIDE:
            if os.path.lexists(target + end):
                raise BackupRefused(target, f"there is a {end} file of its name: it is open, or was not closed")
        return target

    def _is_ours(self, target: str) -> bool:
        ours = [self.path + end for end in ("", *BESIDE)]
        real = {os.path.realpath(one) for one in ours}
        return os.path.realpath(target) in real or any(
            os.path.exists(one) and os.path.exists(target) and os.path.samefile(one, target) for one in ours
        )
