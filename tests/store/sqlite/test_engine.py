"""The engine as the verbs see it: busy, full, failing, replaced and growing files, and its end."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from jobq.errors import ArgumentError, QueueClosed, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from jobq.store.sqlite.connection import WAL_LIMIT
from jobq.store.sqlite.engine import Engine
from tests.failing_files import FailingFiles
from tests.store.sqlite.enginekit import FIRST, insert, join, names, start, until

Factory = Callable[..., Engine]


def _insert_many(connection: apsw.Connection, changes: list[Any]) -> None:
    """Insert rows that fill several pages, two statements and two tables."""
    number = insert(f"many-{os.urandom(4).hex()}")(connection, changes)
    for _ in range(5):
        connection.execute("INSERT INTO part VALUES (?, zeroblob(3000))", (number,)).fetchall()


def _grow(connection: apsw.Connection, changes: list[Any]) -> None:
    connection.execute("INSERT INTO part (body) VALUES (randomblob(50000))").fetchall()


def _count(connection: apsw.Connection) -> list[Any]:
    return connection.execute("SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM part)").fetchall()


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_memory_database_is_refused(name: str) -> None:
    """Nothing is opened for a name that is no file."""
    with pytest.raises(ArgumentError):
        Engine(name, feed=print, migrations=[FIRST])


def test_two_engines_on_one_file_work_together(open_engine: Factory) -> None:
    """Another engine, standing for another process, sees what was committed."""
    here, there = open_engine(), open_engine()
    here.write(insert("a"), sync=False, busy_timeout=1)
    there.write(insert("b"), sync=True, busy_timeout=1)

    assert here.read(names, busy_timeout=1) == there.read(names, busy_timeout=1) == ["a", "b"]


def test_b03_holder_shorter_than_the_timeout_is_waited_for(engine: Engine, other: apsw.Connection) -> None:
    """A write waits for another process's lock and then succeeds."""
    other.execute("BEGIN IMMEDIATE").fetchall()
    thread = start(lambda: engine.write(insert("patient"), sync=False, busy_timeout=20))
    assert thread.is_alive()
    other.execute("ROLLBACK").fetchall()
    join(thread)

    assert engine.read(names, busy_timeout=1) == ["patient"]


def test_b03_holder_longer_than_the_timeout_is_one_typed_error(
    engine: Engine, other: apsw.Connection, fed: list[Any]
) -> None:
    """Beyond the timeout the write raises StoreBusy, nothing is written or fed, and the next write works."""
    engine.write(insert("before"), sync=False, busy_timeout=1)
    other.execute("BEGIN IMMEDIATE").fetchall()
    began = time.monotonic()
    with pytest.raises(StoreBusy) as caught:
        engine.write(insert("late"), sync=False, busy_timeout=0.05)
    assert time.monotonic() - began < 5
    other.execute("ROLLBACK").fetchall()
    engine.write(insert("after"), sync=False, busy_timeout=1)

    assert caught.value.code == apsw.SQLITE_BUSY
    assert not caught.value.outcome_unknown
    assert engine.read(names, busy_timeout=1) == ["before", "after"]
    assert fed == ["before", "after"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(apsw.SQLITE_FULL, StoreFull, id="full"),
        pytest.param(apsw.SQLITE_IOERR_WRITE, StoreUnavailable, id="io"),
    ],
)
def test_b44_fault_at_each_write_and_sync(
    open_engine: Factory, failing: FailingFiles, fed: list[Any], code: int, expected: type[StoreError]
) -> None:
    """Whichever write or sync fails: a typed error, nothing half-written, no event, no lock kept, and it works on."""
    engine = open_engine(vfs=failing.name)
    engine.write(insert("first"), sync=True, busy_timeout=1)
    outcomes = set()
    step, failed = 0, True
    while failed:
        step += 1
        before = engine.read(_count, busy_timeout=1)
        fed.clear()
        failing.arm(step, code)
        try:
            engine.write(_insert_many, sync=True, busy_timeout=1)
        except expected as exc:
            outcomes.add((exc.outcome_unknown, "rollback" in str(exc)))
        else:
            # A checkpoint after the commit may fail in silence: the WAL keeps everything.
            assert len(fed) == 1
        failed = failing.disarm()
        if failed and not fed:
            assert engine.read(_count, busy_timeout=1) == before
        engine.write(insert(f"after-{step}"), sync=False, busy_timeout=0)

    assert step > 5
    assert outcomes == {(True, False)}
    check = engine.read(lambda connection: connection.execute("PRAGMA integrity_check").fetchall(), busy_timeout=1)
    assert check == [("ok",)]


def test_b44_fault_inside_an_operation_is_no_unknown_outcome(
    engine: Engine, path: str, other: apsw.Connection
) -> None:
    """A full database before COMMIT is known to have written nothing."""

    def fill(connection: apsw.Connection, changes: list[Any]) -> None:
        pages: list[Any] = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages[0][0]}").fetchall()
        _grow(connection, changes)

    with pytest.raises(StoreFull) as caught:
        engine.write(fill, sync=True, busy_timeout=1)
    assert not caught.value.outcome_unknown
    assert _count(other) == [(0, 0)]


def test_b44_limit_of_the_file_size_is_full(output: Callable[..., str]) -> None:
    """What the system refuses with EFBIG is StoreFull, and after the cause is gone work goes on."""
    printed = output(
        """
import resource
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST])
def grow(connection, changes):
    connection.execute("INSERT INTO part (body) VALUES (randomblob(50000))").fetchall()
engine.write(grow, sync=False, busy_timeout=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
written = 1
try:
    while True:
        engine.write(grow, sync=False, busy_timeout=1)
        written += 1
except errors.StoreFull as error:
    print("full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
engine.write(grow, sync=False, busy_timeout=1)
count = engine.read(lambda c: c.execute("SELECT count(*) FROM part").fetchall(), busy_timeout=1)
print(count == [(written + 1,)])
"""
    )
    assert printed.split() == ["full", "True"]


@pytest.mark.parametrize("replace", [False, True], ids=["unlinked", "replaced"])
def test_file_torn_away_while_open_is_corrupt(
    engine: Engine, path: str, fed: list[Any], replace: bool
) -> None:
    """Writes and reads on a file that lost its name raise StoreCorrupt; nothing is acknowledged or recreated."""
    engine.write(insert("a"), sync=False, busy_timeout=1)
    engine.read(names, busy_timeout=1)
    engine.data_version()
    os.rename(path, path + ".old")
    if replace:
        Path(path).write_bytes(b"")

    calls: list[Callable[[], object]] = [
        lambda: engine.write(insert("lost"), sync=False, busy_timeout=1),
        lambda: engine.read(names, busy_timeout=1),
        engine.data_version,
        engine.checkpoint,
    ]
    for call in calls:
        with pytest.raises(StoreCorrupt):
            call()
    assert fed == ["a"]
    assert os.path.exists(path) is replace
    engine.close()
    assert not replace or os.stat(path).st_size == 0


def test_file_deleted_before_the_first_verb_is_unavailable(engine: Engine, path: str) -> None:
    """Between open() and the first verb no handle is open: the file is missing, and is not made again."""
    os.unlink(path)

    with pytest.raises(StoreUnavailable):
        engine.write(insert("a"), sync=False, busy_timeout=1)
    with pytest.raises(StoreUnavailable):
        engine.data_version()
    assert not os.path.exists(path)


def test_data_version_changes_with_each_commit_of_anybody(
    engine: Engine, open_engine: Factory, other: apsw.Connection
) -> None:
    """Commits of our own writer and of others change the number, reads and failed writes do not."""
    seen = [engine.data_version()]
    engine.write(insert("ours"), sync=False, busy_timeout=1)
    seen.append(engine.data_version())
    other.execute("INSERT INTO item (who) VALUES ('theirs')").fetchall()
    seen.append(engine.data_version())
    assert len(set(seen)) == 3

    engine.read(names, busy_timeout=1)
    with pytest.raises(apsw.ConstraintError):
        engine.write(insert("ours"), sync=False, busy_timeout=1)
    assert engine.data_version() == seen[-1]


def test_data_version_may_be_asked_by_several_threads(engine: Engine) -> None:
    """Watchers on two threads share the one connection."""
    join(*[start(lambda: [engine.data_version() for _ in range(200)]) for _ in range(2)])


def test_events_are_fed_in_the_order_of_the_commits(engine: Engine, fed: list[Any]) -> None:
    """Four threads that write as fast as they can are fed in the order in which their rows got their ids."""

    def run(thread: int) -> None:
        for number in range(50):
            engine.write(insert(f"{thread}-{number}"), sync=False, busy_timeout=20)

    join(*[start(lambda thread=thread: run(thread)) for thread in range(4)])  # type: ignore[misc]

    assert fed == engine.read(names, busy_timeout=1)


def test_b46_wal_stays_bounded_while_others_read(engine: Engine, other: apsw.Connection, path: str) -> None:
    """Somebody always reads a state before the last write, so the writer's own checkpoints never come to the end of the
    WAL; those of maintenance, between two reads, keep it below 8 MB."""
    largest = 0
    for number in range(400):
        other.execute("BEGIN; SELECT count(*) FROM item").fetchall()
        engine.write(_grow, sync=False, busy_timeout=1)
        other.execute("COMMIT").fetchall()
        if number % 40 == 39:
            engine.checkpoint()
        largest = max(largest, os.stat(path + "-wal").st_size)

    assert 0 < largest <= 8 * 1024 * 1024


def test_b46_wal_is_cut_back_when_a_foreign_reader_has_gone(engine: Engine, other: apsw.Connection) -> None:
    """A reader elsewhere makes the WAL grow; once it has gone, one checkpoint brings the WAL back."""
    other.execute("BEGIN; SELECT count(*) FROM item").fetchall()
    for _ in range(120):
        engine.write(_grow, sync=False, busy_timeout=1)
    engine.checkpoint()
    assert engine.status().wal_bytes > WAL_LIMIT

    other.execute("COMMIT").fetchall()
    engine.checkpoint()

    assert engine.status().wal_bytes <= WAL_LIMIT


def test_checkpoint_moves_the_wal_into_the_database(engine: Engine, path: str) -> None:
    """After a checkpoint the pages are in the database file, though the WAL is small."""
    engine.write(_grow, sync=False, busy_timeout=1)
    before = os.stat(path).st_size
    engine.checkpoint()

    assert os.stat(path).st_size >= before + 40_000


def test_checkpoint_disturbs_nobody_who_writes(engine: Engine, other: apsw.Connection) -> None:
    """While another process holds the lock a checkpoint returns soon, without an error."""
    engine.write(insert("a"), sync=False, busy_timeout=1)
    other.execute("BEGIN IMMEDIATE").fetchall()

    engine.checkpoint()

    other.execute("ROLLBACK").fetchall()


def test_close_is_idempotent_and_final(engine: Engine, path: str) -> None:
    """After close() every verb raises QueueClosed, the WAL is gone, and a second close() does nothing."""
    engine.write(insert("a"), sync=False, busy_timeout=1)
    engine.read(names, busy_timeout=1)
    engine.close()
    engine.close()

    calls: list[Callable[[], object]] = [
        lambda: engine.write(insert("b"), sync=False, busy_timeout=1),
        lambda: engine.read(names, busy_timeout=1),
        engine.data_version,
        engine.checkpoint,
        engine.status,
        engine.foreign_handles,
    ]
    for call in calls:
        with pytest.raises(QueueClosed):
            call()
    assert not engine.is_usable()
    assert os.listdir(os.path.dirname(path)) == ["jobs.db"]


def test_close_lets_those_who_wait_before_it_finish(engine: Engine, open_engine: Factory) -> None:
    """A write that runs when close() is called is committed."""
    running, proceed = threading.Event(), threading.Event()

    def slow(connection: apsw.Connection, changes: list[Any]) -> None:
        insert("kept")(connection, changes)
        running.set()
        assert proceed.wait(10)

    writing = start(lambda: engine.write(slow, sync=False, busy_timeout=1))
    assert running.wait(10)
    closing = start(engine.close)
    until(lambda: engine._writer.waiting == 1)
    proceed.set()
    join(writing, closing)

    assert open_engine().read(names, busy_timeout=1) == ["kept"]
