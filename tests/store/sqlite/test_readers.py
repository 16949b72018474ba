"""Reads run on pooled connections, see one snapshot and leave nothing behind."""

import threading
from collections.abc import Callable
from typing import Any

import apsw
import pytest

from jobq.errors import QueueClosed, StoreUnavailable
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.readers import MOST_IDLE
from tests.store.sqlite.enginekit import insert, join, names, start

_COUNT = "SELECT count(*) FROM item"


def _open_connections(path: str) -> int:
    return sum(connection.filename == path for connection in apsw.connections())


def _count(connection: apsw.Connection) -> int:
    rows: list[Any] = connection.execute(_COUNT).fetchall()
    return int(rows[0][0])


def test_opening_leaves_no_connection_open(engine: Engine, path: str) -> None:
    """Handles are opened by the first verb, so that a server may fork after open()."""
    assert _open_connections(path) == 0


def test_read_returns_what_the_operation_returned(engine: Engine) -> None:
    """A read sees what was committed."""
    engine.write(insert("a"), sync=False, busy_timeout=1)

    assert engine.read(names, busy_timeout=1) == ["a"]


def test_statements_of_one_read_see_one_snapshot(engine: Engine) -> None:
    """A commit between two statements of a read is not seen by the second."""

    def twice(connection: apsw.Connection) -> tuple[int, int]:
        first = _count(connection)
        join(start(lambda: engine.write(insert("between"), sync=False, busy_timeout=1)))
        return first, _count(connection)

    assert engine.read(twice, busy_timeout=1) == (0, 0)
    assert engine.read(_count, busy_timeout=1) == 1


def test_read_inside_a_read_gets_another_connection(engine: Engine, path: str) -> None:
    """A nested read works and sees what is committed now."""

    def outer(connection: apsw.Connection) -> list[str]:
        _count(connection)
        engine.write(insert("new"), sync=False, busy_timeout=1)
        return engine.read(names, busy_timeout=1)

    assert engine.read(outer, busy_timeout=1) == ["new"]
    assert _open_connections(path) == 3


def test_consecutive_reads_share_one_connection(engine: Engine, path: str) -> None:
    """The connection that was used last is used again."""
    for _ in range(5):
        engine.read(_count, busy_timeout=1)

    assert _open_connections(path) == 1


def test_b49_short_lived_threads_leave_no_more_than_the_pool(engine: Engine, path: str) -> None:
    """500 threads that write and read once each leave the writer and a few idle readers."""

    def once(number: int) -> None:
        engine.write(insert(str(number)), sync=False, busy_timeout=20)
        engine.read(_count, busy_timeout=20)

    for first in range(0, 500, 50):
        join(*[start(lambda number=number: once(number)) for number in range(first, first + 50)])  # type: ignore[misc]

    assert engine.read(_count, busy_timeout=1) == 500
    assert _open_connections(path) <= MOST_IDLE + 1


def test_reads_at_once_do_not_wait_for_each_other(engine: Engine, path: str) -> None:
    """Eight reads run at the same time, and afterwards no more than the pool's size stay open."""
    barrier = threading.Barrier(8, timeout=10)

    def meet(connection: apsw.Connection) -> int:
        barrier.wait()
        return _count(connection)

    join(*[start(lambda: engine.read(meet, busy_timeout=1)) for _ in range(8)])

    assert not barrier.broken
    assert _open_connections(path) == MOST_IDLE


@pytest.mark.parametrize("keep", [list, iter], ids=["exhausted", "left-open"])
def test_statement_left_open_is_refused(
    engine: Engine, other: apsw.Connection, keep: Callable[[apsw.Cursor], object]
) -> None:
    """A read that returns an unfinished statement raises, and the WAL is not pinned by it."""
    for name in ("a", "b"):
        engine.write(insert(name), sync=False, busy_timeout=1)
    kept: list[object] = []

    def leave(connection: apsw.Connection) -> None:
        cursor = connection.execute("SELECT who FROM item")
        kept.append(keep(cursor))

    if keep is list:
        engine.read(leave, busy_timeout=1)
    else:
        with pytest.raises(RuntimeError, match="statement open"):
            engine.read(leave, busy_timeout=1)
    other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def test_operation_that_raises_gives_its_connection_back(engine: Engine, path: str) -> None:
    """The error comes through as it is, and the next read works on the same connection."""

    def fail(connection: apsw.Connection) -> None:
        connection.execute(_COUNT).fetchall()
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        engine.read(fail, busy_timeout=1)
    assert engine.read(_count, busy_timeout=1) == 0
    assert _open_connections(path) == 1


def test_read_cannot_write(engine: Engine) -> None:
    """An operation that writes in a read gets the typed error, and nothing is written."""
    with pytest.raises(StoreUnavailable):
        engine.read(lambda connection: insert("x")(connection, []), busy_timeout=1)
    assert engine.read(_count, busy_timeout=1) == 0


def test_read_that_ends_after_close_closes_its_connection(engine: Engine, path: str) -> None:
    """close() does not wait for reads; their connections go when they end, and later reads are refused."""

    def close_meanwhile(connection: apsw.Connection) -> int:
        engine.close()
        return _count(connection)

    assert engine.read(close_meanwhile, busy_timeout=1) == 0
    assert _open_connections(path) == 0
    with pytest.raises(QueueClosed):
        engine.read(_count, busy_timeout=1)
