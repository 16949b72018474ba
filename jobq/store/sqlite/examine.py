"""Look at the file and at the library for what goes wrong in practice."""

import os
import stat
import time
from collections.abc import Callable, Iterator

import apsw

from jobq.errors import ForeignHandle, StoreCorrupt
from jobq.model.finding import Finding, judge
from jobq.store.sqlite import filesystem, foreign
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.upkeep import Status

MEBIBYTE = 1024 * 1024
#: A WAL beyond this many bytes shows that something keeps it from being moved into the database.
LARGE_WAL = 64 * MEBIBYTE
#: What may lie free in a file: a share of it, or so many bytes, whichever is more.
_FREE_SHARE, _FREE_BYTES = 0.25, 16 * MEBIBYTE
#: A file that was written so many seconds from now was written by another clock.
AHEAD = 60.0
_INCREMENTAL = 2
_MOST_PROBLEMS = 5

# Both read the whole file.
INTEGRITY = "PRAGMA integrity_check(20)"
FOREIGN_KEYS = "PRAGMA foreign_key_check"


def examine(
    engine: Engine, *, deep: bool, mounts: str | None = None, now: Callable[[], float] = time.time
) -> Iterator[Finding]:
    """Yield one finding for each check; none of them changes anything. ``deep`` reads the whole file."""
    if deep:
        yield integrity(engine)
    status = engine.status()
    copies = "its own copy" if apsw.using_amalgamation else "the system's copy"
    yield Finding(check="library", ok=True, detail=f"SQLite {status.library}, apsw uses {copies}")
    yield Finding(check="schema", ok=True, detail=f"version {status.schema_version}")
    second = engine.foreign_handles()
    yield judge(
        "foreign handle",
        second,
        "something but apsw has the file open in this process" if second else "none in this process",
        ForeignHandle(engine.path).fix,
    )
    removed = foreign.removed(engine.path)
    yield judge(
        "removed file",
        removed is not None,
        f"the {removed} file was removed while it was open" if removed else "none beside the database",
        "Stop every process that uses the file, this one last: its end moves into the database what only it can see.",
    )
    yield judge(
        "journal",
        status.journal_mode != "wal",
        f"journal mode {status.journal_mode}",
        "Let no other program change the journal mode; open the file with jobq.",
    )
    yield file_system(engine.path, filesystem.mounts() if mounts is None else mounts)
    yield permissions(engine.path)
    yield file_times(engine.path, now())
    yield from sizes(status)


def sizes(status: Status) -> Iterator[Finding]:
    """Yield what is to be said of the WAL, and of the free pages."""
    size, free, wal = status.pages * status.page_size, status.free_pages * status.page_size, status.wal_bytes
    yield judge(
        "size",
        wal > LARGE_WAL,
        f"database {size / MEBIBYTE:.1f} MiB, write-ahead log {wal / MEBIBYTE:.1f} MiB",
        "Look for a program that keeps a read transaction open on the file.",
    )
    stepwise = status.auto_vacuum == _INCREMENTAL
    yield judge(
        "free space",
        free > max(_FREE_BYTES, size * _FREE_SHARE),
        f"{free / MEBIBYTE:.1f} MiB of the database",
        "Run jobq prune, or leave a runner running: it gives the space back in small steps."
        if stepwise
        else "Stop every process that uses the file and run VACUUM in it: it was not made by jobq.",
    )


def file_system(path: str, mounts: str) -> Finding:
    """Say whether the locks of the file system can be trusted."""
    kind = filesystem.kind_of(path, mounts)
    return judge(
        "file system",
        kind is not None and filesystem.is_network(kind),
        kind or "this system does not say which",
        "Move the file to a local disk: on a network file system locks cannot be trusted, and the file gets corrupt.",
    )


def permissions(path: str) -> Finding:
    """Say whether everybody may write to the file."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return judge(
        "permissions",
        os.name == "posix" and bool(mode & stat.S_IWOTH),
        f"mode {mode:04o}",
        "Run chmod o-w on it: who can write to the file can make your workers run any handler with any payload.",
    )


def file_times(path: str, now: float) -> Finding:
    """Compare the clock with the times at which the files were written last."""
    written = max(os.stat(name).st_mtime for name in (path, f"{path}-wal") if os.path.exists(name))
    ahead = written - now
    return judge(
        "clock",
        ahead > AHEAD,
        f"the file was written {ahead:,.0f} s from now" if ahead > AHEAD else "agrees with the times of the files",
        "Set the clock of this machine, or wait until it has caught up: due times and leases go by it.",
    )


def integrity(engine: Engine) -> Finding:
    """Read the whole file and say whether it is sound."""

    def check(connection: apsw.Connection) -> list[str]:
        rows = [str(row[0]) for row in connection.execute(INTEGRITY).fetchall() if row[0] != "ok"]
        loose = connection.execute(FOREIGN_KEYS).fetchall()
        return [*rows, *(f"row {row[1]} of {row[0]} names a row of {row[2]} that is not there" for row in loose)]

    try:
        problems = engine.read(check, busy_timeout=1.0)
    except StoreCorrupt as error:
        problems = [error.detail]
    more = f" and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
    found = "; ".join(problem.replace("\n", " ") for problem in problems[:_MOST_PROBLEMS]) + more
    return judge("integrity", bool(problems), found or "every page and row was read", StoreCorrupt.fix)
