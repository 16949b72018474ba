"""Look at the file and at the library for what goes wrong in practice."""

import apsw

from jobq.errors import ForeignHandle
from jobq.model.finding import Finding
from jobq.store.sqlite.engine import Engine

#: A WAL beyond this many bytes shows that something keeps it from being moved into the database.
_LARGE_WAL = 64 * 1024 * 1024
_MEBIBYTE = 1024 * 1024


def examine(engine: Engine) -> list[Finding]:
    """Return one finding for each check; none of them changes anything."""
    status = engine.status()
    copies = "its own copy" if apsw.using_amalgamation else "the system's copy"
    foreign = engine.foreign_handles()
    wal, journal = status.wal_bytes, status.journal_mode
    size = status.pages * status.page_size / _MEBIBYTE
    return [
        Finding(check="library", ok=True, detail=f"SQLite {status.library}, apsw uses {copies}"),
        Finding(check="schema", ok=True, detail=f"version {status.schema_version}"),
        Finding(
            check="foreign handle",
            ok=not foreign,
            detail="something but apsw has the file open in this process" if foreign else "none in this process",
            fix=ForeignHandle(engine.path).fix if foreign else None,
        ),
        Finding(
            check="journal",
            ok=journal == "wal",
            detail=f"journal mode {journal}",
            fix=None if journal == "wal" else "Let no other program change the journal mode; open the file with jobq.",
        ),
        Finding(
            check="size",
            ok=wal <= _LARGE_WAL,
            detail=f"database {size:.1f} MiB, write-ahead log {wal / _MEBIBYTE:.1f} MiB",
            fix=None if wal <= _LARGE_WAL else "Look for a program that keeps a read transaction open on the file.",
        ),
    ]
