"""Lists what is in a directory, whatever happens to it meanwhile."""

import os
from collections.abc import Iterator

import attrs

#: What belongs to a database of jobq. Opening one of these and closing it again drops the locks that this process has
#: on it (https://sqlite.org/howtocorrupt.html, section 2.2), so the database of the demo is never listed. The last
#: one is the directory of the doorbell.
_SUFFIXES = ("", "-wal", "-shm", "-journal", "-bells")


@attrs.frozen(kw_only=True)
class Entry:
    """Something that is no directory: its absolute path, and numbers that change when its contents do."""

    path: str
    size: int
    modified_ns: int
    changed_ns: int


def entries(directory: str, *, database: str, troubles: list[tuple[str, str]]) -> Iterator[Entry]:
    """Yield everything below a directory but directories and the files of ``database``, in no order.

    Links to files are followed, links to directories are not. A directory that cannot be read, or has vanished, is
    added to ``troubles`` with the reason and the rest goes on.
    """
    waiting = [directory]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                found = list(listing)
        except OSError as error:
            troubles.append((folder, error.strerror or type(error).__name__))
            continue
        for item in found:
            if _is_directory(item, follow=False):
                if not _is_bells(item, database):
                    waiting.append(item.path)
            elif not _is_directory(item, follow=True) and (entry := _entry(item.path, database)) is not None:
                yield entry


def is_database(found: os.stat_result, database: str) -> bool:
    """Whether a file or a directory is one of those of a database, under whatever name."""
    for suffix in _SUFFIXES:
        try:
            if os.path.samestat(found, os.stat(database + suffix)):
                return True
        except OSError:
            continue
    return False


def _is_bells(item: "os.DirEntry[str]", database: str) -> bool:
    try:
        return item.name.endswith("-bells") and is_database(os.stat(item.path), database)
    except OSError:  # the last runner that stops removes it
        return False


def _is_directory(item: "os.DirEntry[str]", *, follow: bool) -> bool:
    try:
        return item.is_dir(follow_symlinks=follow)
    except OSError:
        return False


def _entry(path: str, database: str) -> Entry | None:
    try:
        found = os.stat(path)
    except OSError:
        # A link to nowhere, say. It gets a job all the same, which says what is wrong.
        return _unreachable(path)
    if is_database(found, database):
        return None
    return Entry(path=path, size=found.st_size, modified_ns=found.st_mtime_ns, changed_ns=found.st_ctime_ns)


def _unreachable(path: str) -> Entry:
    try:
        found = os.lstat(path)
    except OSError:
        return Entry(path=path, size=-1, modified_ns=-1, changed_ns=-1)
    return Entry(path=path, size=-1, modified_ns=found.st_mtime_ns, changed_ns=found.st_ctime_ns)
