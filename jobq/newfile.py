"""A file that stands under its name when it is complete, or not at all."""

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from jobq.errors import BackupRefused, StoreFull, StoreUnavailable

#: What SQLite keeps beside a database.
BESIDE = ("-journal", "-wal", "-shm")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST_NAME = 200


@contextmanager
def complete(path: str, *, force: bool) -> Iterator[str]:
    """Yield the path of an empty file beside ``path``, which takes its name when the block ends well.

    It is synced before and readable by its owner alone; where the block raises it is removed. A process that is
    killed meanwhile leaves it under its hidden name, which ends in ``.partial``.

    Raises:
        BackupRefused: there is something under the name and ``force`` does not say that it goes.
        StoreError: the file cannot be made or written.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:_LONGEST_NAME]}.{os.urandom(4).hex()}.partial")
    with _told(path):
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        yield temporary
        with _told(path):
            _sync(temporary, os.O_RDWR)
            _give_name(temporary, path, force=force)
            if os.name == "posix":
                _sync(folder, os.O_RDONLY)
    finally:
        for end in ("", *BESIDE):
            with contextlib.suppress(OSError):
                os.unlink(temporary + end)


def _give_name(temporary: str, path: str, *, force: bool) -> None:
    if force:
        os.replace(temporary, path)
        return
    try:
        # Unlike a rename it fails where somebody has taken the name meanwhile.
        os.link(temporary, path)
    except FileExistsError:
        raise BackupRefused(path, "it exists") from None
    except (OSError, AttributeError):  # a file system without hard links
        if os.path.lexists(path):
            raise BackupRefused(path, "it exists") from None
        os.rename(temporary, path)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn what the system says about a file into a store error."""
    try:
        yield
    except BackupRefused:
        raise
    except OSError as error:
        fault = StoreFull if error.errno in _FULL else StoreUnavailable
        raise fault(path, error.strerror or type(error).__name__) from error
