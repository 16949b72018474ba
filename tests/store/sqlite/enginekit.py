"""What the engine's tests share: a tiny schema, operations on it, and threads."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import jobq.store.sqlite
from jobq.store.sqlite.migrate import Migration

FIRST = Migration(
    1,
    "initial",
    """
    CREATE TABLE item (id INTEGER PRIMARY KEY, who TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE part (item INTEGER REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED, body BLOB) STRICT;
    """,
)
SECOND = Migration(2, "colour", "ALTER TABLE item ADD COLUMN colour TEXT; CREATE INDEX item_colour ON item (colour);")
PACKAGE_ROOT = Path(jobq.store.sqlite.__file__).parents[3]


def insert(who: str) -> Callable[[apsw.Connection, list[Any]], int]:
    """Return an operation that inserts one item and reports it as its change."""

    def operation(connection: apsw.Connection, changes: list[Any]) -> int:
        rows: list[Any] = connection.execute("INSERT INTO item (who) VALUES (?) RETURNING id", (who,)).fetchall()
        changes.append(who)
        return int(rows[0][0])

    return operation


def names(connection: apsw.Connection) -> list[str]:
    """Return who is in the table, in the order of insertion."""
    return [str(who) for (who,) in connection.execute("SELECT who FROM item ORDER BY id").fetchall()]


def until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Wait for a condition of other threads, and fail when it does not come true in time."""
    pause = threading.Event()
    for _ in range(int(timeout / 0.001)):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("the condition did not come true in time")


def start(target: Callable[[], object]) -> threading.Thread:
    """Start a thread."""
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def join(*threads: threading.Thread) -> None:
    """Wait until threads have ended."""
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
