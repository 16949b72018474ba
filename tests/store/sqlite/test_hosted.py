"""The transaction that a thread keeps open on the engine: failed commits, riders, syncing and the guard."""

from collections.abc import Callable
from typing import Any

import apsw
import pytest

from jobq.errors import StoreError, StoreFull, StoreUnavailable, TransactionEnded
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.statements import Guard
from tests.aborting import failing
from tests.failing_files import FailingFiles
from tests.store.sqlite.enginekit import insert, join, names, start, until

Factory = Callable[..., Engine]


def nothing() -> None:
    """Do nothing."""


def kept(engine: Engine, *, sync: bool = True, on_commit: Callable[[], None] = nothing) -> Any:
    """Open a transaction."""
    return engine.transaction(sync=sync, busy_timeout=5, on_commit=on_commit, on_blocked=nothing)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(apsw.SQLITE_FULL, StoreFull, id="full"),
        pytest.param(apsw.SQLITE_IOERR_WRITE, StoreUnavailable, id="io"),
    ],
)
def test_a_failed_commit_is_typed_and_its_outcome_unknown(
    open_engine: Factory, failing: FailingFiles, fed: list[Any], code: int, expected: type[StoreError]
) -> None:
    """Whichever write or sync of it fails: nothing is fed or told, no lock is kept, and the engine works on."""
    engine = open_engine(vfs=failing.name)
    engine.write(insert("first"), sync=True, busy_timeout=1)
    step, failed, told = 0, True, 0
    outcomes = set()
    while failed:
        step += 1
        fed.clear()
        told_before = told

        def tell() -> None:
            nonlocal told
            told += 1

        try:
            with kept(engine, on_commit=tell) as tx:
                engine.write(insert(f"one-{step}"), sync=False, busy_timeout=1)
                tx.execute("INSERT INTO item (who) VALUES (?)", (f"two-{step}",))
                failing.arm(step, code)
        except expected as exc:
            outcomes.add((exc.outcome_unknown, len(fed), told - told_before))
        failed = failing.disarm()
        engine.write(insert(f"after-{step}"), sync=False, busy_timeout=0)

    assert outcomes == {(True, 0, 0)}
    assert step > 1
    assert told == 1
    assert engine.read(names, busy_timeout=1)[-3:] == [f"one-{step}", f"two-{step}", f"after-{step}"]


def test_nobody_rides_in_it(engine: Engine, fed: list[Any]) -> None:
    """A thread that waits for the writer gets it after the block, in a transaction of its own."""
    with kept(engine) as tx:
        tx.join(insert("mine"))
        thread = start(lambda: engine.write(insert("theirs"), sync=False, busy_timeout=10))
        until(lambda: engine._writer.waiting == 1)
        assert tx.read(names) == ["mine"]
        assert fed == []
    join(thread)

    assert fed == ["mine", "theirs"]


@pytest.mark.parametrize("sync", [False, True])
def test_the_block_decides_whether_its_commit_is_synced(engine: Engine, sync: bool) -> None:
    """Before it begins; what joins it cannot."""
    with kept(engine, sync=sync) as tx:
        engine.write(insert("a"), sync=not sync, busy_timeout=1)
        (level,) = tx.read(lambda conn: conn.execute("PRAGMA synchronous").fetchall())

    assert level == (2 if sync else 1,)


def test_the_guard_is_set_once_and_only_looks_at_the_hosts_statements(engine: Engine) -> None:
    """Setting it anew would make SQLite compile jobq's statements again after each of the host's."""
    guards = []
    for number in range(3):
        with kept(engine) as tx:
            tx.execute("SELECT 1")
            guards.append(tx.read(lambda conn: conn.authorizer))
            engine.write(insert(f"a{number}"), sync=False, busy_timeout=1)

    assert isinstance(guards[0], Guard)
    assert not guards[0].on
    assert guards[0] is guards[1] is guards[2]


def test_an_operation_that_fails_in_a_block_is_translated(engine: Engine, path: str) -> None:
    """Trouble with the database is typed; the transaction that it ended is over, and known not to be committed."""

    def fill(connection: apsw.Connection, changes: list[Any]) -> None:
        pages: list[Any] = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages[0][0]}").fetchall()
        connection.execute("INSERT INTO part VALUES (NULL, zeroblob(100000))").fetchall()

    with failing(kept(engine), StoreFull, TransactionEnded) as tx:
        tx.join(insert("before"))
        with pytest.raises(StoreFull) as caught:
            tx.join(fill)
        assert not caught.value.outcome_unknown
        raise caught.value

    assert engine.read(names, busy_timeout=1) == []
