"""Copy the whole file, as of one instant, while others read and write."""

from collections.abc import Callable

import apsw

from jobq.store.sqlite.faults import reraise

#: Pages that are copied at a time: the progress is told after each.
_STEP = 512

Progress = Callable[[int, int], object]


def copy(source: apsw.Connection, path: str, progress: Progress) -> None:
    """Copy what the connection sees into the empty file at ``path``; it has a read transaction open.

    That snapshot is why the copy is of one instant, and why it never starts over however much is written meanwhile:
    the backup API does so only where it has to take a new one (https://sqlite.org/c3ref/backup_finish.html). Nobody
    waits for it; the WAL keeps what is written meanwhile. Raises a store error about either file.
    """
    target = _open(path)
    try:
        # Nobody sees the file before it is complete, and it is synced as a whole.
        target.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").fetchall()
        with target.backup("main", source, "main") as pages:
            while not pages.done:
                pages.step(_STEP)
                progress(pages.page_count - pages.remaining, pages.page_count)
    except apsw.Error as exc:
        reraise(exc, path, errno=target.system_errno)
    finally:
        target.close()


def _open(path: str) -> apsw.Connection:
    try:
        return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as exc:
        reraise(exc, path)
