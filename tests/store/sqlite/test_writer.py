"""Writes: IMMEDIATE, fair, sharing commits, each failing alone; and nothing is left locked or half-written."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest

from jobq.errors import StoreBusy, StoreFull
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.opening import Opening
from jobq.store.sqlite.turn import Operation
from jobq.store.sqlite.writer import Writer
from tests.store.sqlite.enginekit import FIRST, insert, join, names, start, until


class Bench:
    """A writer whose statements are recorded, and threads that queue up at it."""

    def __init__(self, path: str) -> None:
        self.statements: list[str] = []
        self.fed: list[list[Any]] = []
        file = DatabaseFile(path)
        opening = Opening(file, [FIRST], vfs=None)
        opening.prepare(create=True, busy_timeout=1, now=lambda: 0)

        def open_connection(busy_timeout: float) -> apsw.Connection:
            connection = opening.open(busy_timeout, alone=True)
            connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: self.statements.append(event["sql"]))
            return connection

        self.meanwhile: Callable[[], object] = lambda: None  # while a synced commit waits for company
        self.writer = Writer(file, open_connection, self.fed.append, lambda: None, pause=lambda: self.meanwhile())

    def write(self, operation: Operation, *, sync: bool = False, busy_timeout: float = 20) -> Any:
        """Write."""
        return self.writer.write(operation, sync=sync, busy_timeout=busy_timeout)

    def together(self, *operations: Operation, sync: tuple[int, ...] = ()) -> list[Any]:
        """Let a thread for each operation queue up behind a held lock; returns their results or errors, in order."""
        held = self.writer.hold(busy_timeout=1)
        results: list[Any] = [None] * len(operations)

        def run(number: int, operation: Operation) -> None:
            try:
                results[number] = self.write(operation, sync=number in sync)
            except BaseException as exc:
                results[number] = exc

        threads = []
        for number, operation in enumerate(operations):
            threads.append(start(lambda number=number, operation=operation: run(number, operation)))  # type: ignore[misc]
            until(lambda number=number: self.writer.waiting == number + 1)  # type: ignore[misc]
        self.writer.let_go(held)
        join(*threads)
        return results

    def count(self, statement: str) -> int:
        """Return how often a statement ran."""
        return sum(sql.startswith(statement) for sql in self.statements)


@pytest.fixture
def bench(path: str) -> Iterator[Bench]:
    """A writer on a fresh file."""
    made = Bench(path)
    yield made
    held = made.writer.hold(busy_timeout=1)
    made.writer.close()
    made.writer.let_go(held)


def test_write_returns_the_result_and_feeds_its_changes(bench: Bench, other: apsw.Connection) -> None:
    """The operation's answer comes back once the row is there for everybody, and its changes are fed."""
    assert bench.write(insert("a")) == 1
    assert names(other) == ["a"]
    assert bench.fed == [["a"]]


def test_write_without_changes_feeds_nothing(bench: Bench) -> None:
    """Nobody is woken for nothing."""
    bench.write(lambda connection, changes: None)
    assert bench.fed == []


def test_b02_every_writing_transaction_starts_immediate(bench: Bench) -> None:
    """However operations come, alone or together, no transaction begins as a reader and upgrades."""
    bench.write(insert("a"), sync=True)
    bench.together(insert("b"), insert("c"), insert("d"), sync=(1,))

    begins = [sql for sql in bench.statements if sql.startswith("BEGIN")]
    assert begins == ["BEGIN IMMEDIATE"] * len(begins)
    assert len(begins) == bench.count("COMMIT")


def test_lone_write_pays_for_no_savepoint(bench: Bench) -> None:
    """Alone, a write is BEGIN, the operation, COMMIT and nothing else."""
    bench.write(insert("a"))
    bench.statements.clear()
    bench.write(insert("b"))

    assert [sql.split()[0] for sql in bench.statements] == ["BEGIN", "INSERT", "COMMIT"]


def test_threads_that_wait_share_one_commit(bench: Bench, other: apsw.Connection) -> None:
    """Eight operations behind a held lock become one transaction, in the order of their arrival."""
    bench.write(lambda connection, changes: None)
    bench.statements.clear()

    results = bench.together(*[insert(str(number)) for number in range(8)])

    assert bench.count("COMMIT") == 1
    assert results == [1, 2, 3, 4, 5, 6, 7, 8]
    assert names(other) == [str(number) for number in range(8)]
    assert bench.fed == [[str(number) for number in range(8)]]


def test_group_is_bounded(bench: Bench) -> None:
    """More than 64 waiting operations take more than one transaction."""
    bench.write(lambda connection, changes: None)
    bench.statements.clear()

    bench.together(*[insert(str(number)) for number in range(70)])

    assert bench.count("COMMIT") >= 2


def test_one_that_needs_a_sync_lends_it_to_its_group(bench: Bench) -> None:
    """When a waiting operation needs a sync as the group begins, the whole group is synced."""
    bench.write(insert("unsynced"))
    bench.statements.clear()

    bench.together(insert("a"), insert("b"), insert("c"), sync=(2,))

    assert bench.count("PRAGMA synchronous = FULL") == 1
    assert bench.count("COMMIT") == 1


def test_unsynced_group_never_carries_a_sync_rider(bench: Bench) -> None:
    """An operation that needs a sync and arrives after an unsynced group began gets the next, synced one."""
    begun, arrived = threading.Event(), threading.Event()
    levels: list[Any] = []

    def level(connection: apsw.Connection, changes: list[Any]) -> None:
        levels.append(connection.pragma("synchronous"))

    def slow(connection: apsw.Connection, changes: list[Any]) -> None:
        level(connection, changes)
        begun.set()
        assert arrived.wait(10)

    bench.write(insert("first"))
    bench.statements.clear()
    leader = start(lambda: bench.write(slow))
    assert begun.wait(10)
    late = start(lambda: bench.write(level, sync=True))
    until(lambda: bench.writer.waiting == 1)
    arrived.set()
    join(leader, late)

    assert levels == [1, 2]
    assert bench.count("COMMIT") == 2


def test_synced_commit_is_shared_with_a_thread_that_comes_back(bench: Bench, other: apsw.Connection) -> None:
    """The thread that the last synced commit answered writes again, and the next commit has waited for it."""
    again = threading.Event()

    def write_twice() -> None:
        bench.write(insert("first"), sync=True)
        assert again.wait(10)
        bench.write(insert("again"), sync=True)

    def come_back() -> None:
        again.set()
        until(lambda: bench.writer.waiting == 1)

    thread = start(write_twice)
    until(lambda: bench.fed == [["first"]])
    bench.statements.clear()
    bench.meanwhile = come_back
    bench.write(insert("next"), sync=True)
    join(thread)
    assert bench.count("COMMIT") == 1
    assert names(other) == ["first", "next", "again"]


def test_b66_rollback_of_one_rider_does_not_touch_the_others(bench: Bench, other: apsw.Connection) -> None:
    """An operation that fails half way is undone alone; its changes are dropped and its error is its own."""

    def fail(connection: apsw.Connection, changes: list[Any]) -> None:
        insert("undone")(connection, changes)
        raise LookupError("mine")

    results = bench.together(insert("a"), fail, insert("a"), insert("b"))

    assert [type(result) for result in results] == [int, LookupError, apsw.ConstraintError, int]
    assert names(other) == ["a", "b"]
    assert bench.fed == [["a", "b"]]


def test_b66_failing_leader_leaves_the_riders_their_turn(bench: Bench, other: apsw.Connection) -> None:
    """When the first operation fails, those behind it are carried out all the same."""

    def fail(connection: apsw.Connection, changes: list[Any]) -> None:
        insert("undone")(connection, changes)
        raise LookupError("mine")

    results = bench.together(fail, insert("a"), insert("b"))

    assert isinstance(results[0], LookupError)
    assert names(other) == ["a", "b"]
    assert bench.fed == [["a", "b"]]


def test_b66_unfinished_returning_cursor_keeps_no_lock(bench: Bench, other: apsw.Connection) -> None:
    """A writing statement left open fails its whole group; the lock is free afterwards and the next write works."""
    kept: list[apsw.Cursor] = []

    def leave(connection: apsw.Connection, changes: list[Any]) -> None:
        kept.append(connection.execute("INSERT INTO item (who) VALUES ('x'), ('y') RETURNING id"))

    with pytest.raises(apsw.BusyError):
        bench.write(leave)
    results = bench.together(insert("shares"), leave, insert("next"))

    assert [type(result) for result in results] == [apsw.BusyError, apsw.BusyError, int]
    other.set_busy_timeout(0)
    other.execute("BEGIN IMMEDIATE; ROLLBACK").fetchall()
    assert names(other) == ["next"]


def test_b66_unfinished_cursor_of_a_leader_harms_no_rider(bench: Bench, other: apsw.Connection) -> None:
    """The riders of a leader that leaves a statement open are carried out in another transaction."""
    kept: list[apsw.Cursor] = []

    def leave(connection: apsw.Connection, changes: list[Any]) -> None:
        kept.append(connection.execute("INSERT INTO item (who) VALUES ('x'), ('y') RETURNING id"))

    results = bench.together(leave, insert("a"), insert("b"))

    assert [type(result) for result in results] == [apsw.BusyError, int, int]
    assert names(other) == ["a", "b"]


def test_b66_all_statements_of_a_string_run(bench: Bench, other: apsw.Connection) -> None:
    """A string of several statements that is read to its end runs whole."""
    text = "INSERT INTO item (who) VALUES ('a') RETURNING id; INSERT INTO item (who) VALUES ('b') RETURNING id"

    assert bench.write(lambda connection, changes: connection.execute(text).fetchall()) == [(1,), (2,)]
    assert names(other) == ["a", "b"]


def test_b66_failed_commit_closes_the_transaction_for_everybody(bench: Bench, other: apsw.Connection) -> None:
    """When COMMIT fails nobody's rows stay, everybody gets the error, nothing is fed, and the next write works."""

    def break_a_deferred_rule(connection: apsw.Connection, changes: list[Any]) -> None:
        insert("child")(connection, changes)
        connection.execute("INSERT INTO part (item) VALUES (999)").fetchall()

    results = bench.together(insert("a"), break_a_deferred_rule, insert("b"))

    assert [type(result) for result in results] == [apsw.ConstraintError] * 3
    assert bench.fed == []
    bench.write(insert("next"))
    assert names(other) == ["next"]


def test_when_sqlite_rolls_back_everything_everybody_gets_the_error(bench: Bench, other: apsw.Connection) -> None:
    """A full disk in one operation undoes the group: each thread gets an error object of its own, nothing is fed."""

    def fill(connection: apsw.Connection, changes: list[Any]) -> None:
        rows: list[Any] = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {rows[0][0]}").fetchall()
        connection.execute("INSERT INTO part (body) VALUES (zeroblob(100000))").fetchall()

    results = bench.together(insert("a"), fill, insert("after"))

    assert [type(result) for result in results] == [StoreFull, StoreFull, int]
    assert results[0] is not results[1]
    assert names(other) == ["after"]
    assert bench.fed == [["after"]]


def test_operation_that_ends_the_transaction_is_refused(bench: Bench) -> None:
    """COMMIT belongs to the writer; an operation that runs it is a bug that shows."""
    with pytest.raises(RuntimeError, match="ended the transaction"):
        bench.write(lambda connection, changes: connection.execute("COMMIT").fetchall())


def test_write_inside_a_write_is_refused(bench: Bench, other: apsw.Connection) -> None:
    """A write started inside a write of the same thread raises instead of waiting for itself."""
    with pytest.raises(RuntimeError, match="inside another write"):
        bench.write(lambda connection, changes: bench.write(insert("inner")))
    bench.write(insert("next"))
    assert names(other) == ["next"]


def test_interrupt_in_a_rider_loses_nobody(bench: Bench, other: apsw.Connection) -> None:
    """An interrupt that strikes the leader while it works for a rider undoes the leader; the riders are carried out."""
    strikes: list[BaseException] = [KeyboardInterrupt()]

    def struck(connection: apsw.Connection, changes: list[Any]) -> int:
        if strikes:
            raise strikes.pop()
        return insert("rider")(connection, changes)

    results = bench.together(insert("leader"), insert("before"), struck, insert("behind"))

    assert isinstance(results[0], KeyboardInterrupt)
    assert results[1:] == [1, 2, 3]
    assert names(other) == ["before", "rider", "behind"]
    assert bench.fed == [["before", "rider", "behind"]]


def test_interrupt_in_an_operation_of_its_own_frees_the_lock(bench: Bench, other: apsw.Connection) -> None:
    """An interrupt in the only operation undoes it, comes through, and leaves the lock free."""

    def struck(connection: apsw.Connection, changes: list[Any]) -> None:
        insert("undone")(connection, changes)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.write(struck)
    bench.write(insert("next"))
    assert names(other) == ["next"]


def test_b03_everybody_who_waits_gives_up_at_their_own_deadline(bench: Bench, other: apsw.Connection) -> None:
    """Behind a lock that another process holds, eight threads wait at the same time and not one after another."""
    bench.write(insert("first"))
    other.execute("BEGIN IMMEDIATE").fetchall()
    errors: list[StoreBusy] = []

    def give_up(number: int) -> None:
        try:
            bench.write(insert(str(number)), busy_timeout=0.2)
        except StoreBusy as exc:
            errors.append(exc)

    began = time.monotonic()
    join(*[start(lambda number=number: give_up(number)) for number in range(8)])  # type: ignore[misc]
    took = time.monotonic() - began

    other.execute("ROLLBACK").fetchall()
    assert len(errors) == 8
    assert took < 8 * 0.2
    assert names(other) == ["first"]


def test_wait_for_the_turn_counts_against_the_busy_timeout(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is a thread's turn, SQLite waits for the lock only as long as is left."""
    left: list[float] = []
    monkeypatch.setattr("jobq.store.sqlite.handle.wait_at_most", lambda conn, seconds: left.append(seconds))
    held = bench.writer.hold(busy_timeout=1)
    thread = start(lambda: bench.write(insert("a"), busy_timeout=9))
    until(lambda: bench.writer.waiting == 1)
    threading.Event().wait(0.05)
    bench.writer.let_go(held)
    join(thread)

    assert 5 < left[0] <= 8.96


def test_connection_that_cannot_roll_back_is_replaced(bench: Bench, other: apsw.Connection) -> None:
    """If even ROLLBACK fails, closing the connection undoes the work, and the operation's own error comes through."""

    def deny(action: int, name: str | None, *_: object) -> int:
        refused = action == apsw.SQLITE_TRANSACTION and name == "ROLLBACK"
        return apsw.SQLITE_DENY if refused else apsw.SQLITE_OK

    def fail(connection: apsw.Connection, changes: list[Any]) -> None:
        insert("undone")(connection, changes)
        connection.authorizer = deny
        raise LookupError("mine")

    with pytest.raises(LookupError):
        bench.write(fail)
    bench.write(insert("next"))
    assert names(other) == ["next"]


def test_turn_held_for_too_long_is_busy(bench: Bench) -> None:
    """A thread that does not get its turn in time gets StoreBusy and leaves the queue."""
    held = bench.writer.hold(busy_timeout=1)
    caught: list[Callable[[], object] | BaseException] = []

    def wait() -> None:
        try:
            bench.write(insert("late"), busy_timeout=0.01)
        except StoreBusy as exc:
            caught.append(exc)

    join(start(wait))

    assert len(caught) == 1
    assert bench.writer.waiting == 0
    bench.writer.let_go(held)
