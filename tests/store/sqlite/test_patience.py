"""How a connection waits for a lock: to the second, in turn with others, and until a Ctrl-C."""

import _thread
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.patience import Patience, wait_at_most


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[apsw.Connection]:
    """A connection on a file whose write lock another one holds."""
    holder = connections.connect(str(tmp_path / "jobs.db"), create=True)
    holder.execute("PRAGMA journal_mode = WAL").fetchall()
    holder.execute("BEGIN IMMEDIATE")
    found = connections.connect(str(tmp_path / "jobs.db"))
    yield found
    found.close()
    holder.close()


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_without_patience_it_is_busy_at_once(seconds: float) -> None:
    """It does not pause once."""
    assert Patience(seconds)(0) is False


def test_each_wait_counts_anew() -> None:
    """What an earlier wait took is forgotten when the next one begins; within one it adds up."""
    patience = Patience(0.02)
    for _ in range(2):
        looks = 0
        while patience(looks):
            looks += 1
        assert looks


@pytest.mark.parametrize("seconds", [0.05, 0.1])
def test_a_lock_that_stays_taken_is_busy_in_time(waiting: apsw.Connection, seconds: float) -> None:
    """After what it was told to wait, and not before."""
    wait_at_most(waiting, seconds)
    began = time.monotonic()
    with pytest.raises(apsw.BusyError):
        waiting.execute("BEGIN IMMEDIATE")

    assert seconds <= time.monotonic() - began < 5


def test_a_ctrl_c_ends_the_wait(waiting: apsw.Connection) -> None:
    """Nobody has to sit out a busy database, and the connection is as it was."""
    wait_at_most(waiting, 600)
    strike = threading.Timer(0.05, _thread.interrupt_main)
    strike.start()
    with pytest.raises(KeyboardInterrupt):
        waiting.execute("BEGIN IMMEDIATE")
    strike.join()

    assert not waiting.in_transaction
