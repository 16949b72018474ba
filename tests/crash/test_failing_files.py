"""Every verb on a file system that fails: a typed error, nothing half done, no lock kept, usable again.

Each verb is carried out again and again, with a fault at its first call of the file system, its second, and so on,
until it passes without meeting the fault. ``tests.crash.verbs`` lists the verbs.
"""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import jobq
from jobq.errors import JobqError, StoreBusy, StoreError, StoreFull, StoreUnavailable
from tests.conftest import ErrorLog
from tests.crash.verbs import VERBS, World, dump, nothing_carried, open_world, prepare
from tests.failing_files import LOCK, OPEN, SYNC, TRUNCATE, WRITE, FailingFiles

#: No verb calls the file system more often; reaching it means that a fault is not counted down.
MOST_STEPS = 400

Fresh = Callable[[], AbstractContextManager[World]]


class Fault(NamedTuple):
    """What goes wrong: SQLite's code, the class that it must become, the calls that fail, and for how long."""

    code: int
    expected: type[StoreError]
    at: tuple[str, ...]
    forever: bool

    @property
    def cold(self) -> bool:
        """Whether it is met only where no handle is open yet."""
        return OPEN in self.at

    @property
    def is_real(self) -> bool:
        """Whether a file system may say so: one whose writes are busy makes SQLite forget a checkpoint half way."""
        return self.code != apsw.SQLITE_BUSY or WRITE not in self.at


ALL = (WRITE, SYNC, TRUNCATE)
FAULTS = {
    "full-for-ever": Fault(apsw.SQLITE_FULL, StoreFull, ALL, True),
    "io-once": Fault(apsw.SQLITE_IOERR_WRITE, StoreUnavailable, ALL, False),
    "io-once-from-the-opening-on": Fault(apsw.SQLITE_IOERR_WRITE, StoreUnavailable, (*ALL, OPEN), False),
    "open-once": Fault(apsw.SQLITE_CANTOPEN, StoreUnavailable, (OPEN,), False),
    "full-once": Fault(apsw.SQLITE_FULL, StoreFull, ALL, False),
    "io-for-ever": Fault(apsw.SQLITE_IOERR_FSYNC, StoreUnavailable, ALL, True),
    "busy-once": Fault(apsw.SQLITE_BUSY, StoreBusy, ALL, False),
    "busy-for-ever": Fault(apsw.SQLITE_BUSY, StoreBusy, ALL, True),
    "lock-once": Fault(apsw.SQLITE_BUSY, StoreBusy, (OPEN, LOCK), False),
    "lock-for-ever": Fault(apsw.SQLITE_BUSY, StoreBusy, (OPEN, LOCK), True),
    "open-for-ever": Fault(apsw.SQLITE_CANTOPEN, StoreUnavailable, (OPEN,), True),
    "full-everywhere": Fault(apsw.SQLITE_FULL, StoreFull, (*ALL, OPEN), True),
    "read-only-once": Fault(apsw.SQLITE_READONLY, StoreUnavailable, ALL, False),
    "read-only-for-ever": Fault(apsw.SQLITE_READONLY, StoreUnavailable, ALL, True),
    "opened-read-only-once": Fault(apsw.SQLITE_READONLY, StoreUnavailable, (OPEN,), False),
    "read-only-from-the-opening-on": Fault(apsw.SQLITE_READONLY, StoreUnavailable, (*ALL, OPEN), True),
}
SHORT = ("full-for-ever", "io-once-from-the-opening-on")
CASES = [
    pytest.param(fault, id=name, marks=() if name in SHORT else (pytest.mark.storm,))
    for name, fault in FAULTS.items()
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, jobq.Lease]:
    """A closed file with something for each verb, and the lease that an outside worker holds in it."""
    path = tmp_path_factory.mktemp("template") / "jobs.db"
    return path, prepare(path)


@pytest.fixture
def fresh(template: tuple[Path, jobq.Lease], memory: Path) -> Fresh:
    """Opens a copy of the template, under the same name as the last one."""

    def copy() -> AbstractContextManager[World]:
        for old in memory.glob("jobs.*"):
            old.unlink()
        shutil.copy(template[0], memory / "jobs.db")
        return open_world(memory / "jobs.db", template[1])

    return copy


def rehearse(fresh: Fresh, failing: FailingFiles, verb: str, *, cold: bool) -> list[object]:
    """Carry out a verb without a fault; return every state of the rows that others could see meanwhile."""
    seen: list[object] = []

    def look() -> None:
        failing.on_step = lambda: None
        found = dump(world.path, failing.base)
        if found not in seen:
            seen.append(found)
        failing.on_step = look

    with fresh() as world:
        if not cold:
            world.warm()
        failing.on_step = look
        VERBS[verb](world)
        look()
        failing.on_step = lambda: None
    return seen


def attempt(world: World, verb: str, fault: Fault) -> StoreError | None:
    """Carry out a verb and return the error of the store that it ended with."""
    raised = None
    try:
        VERBS[verb](world)
    except StoreError as error:
        raised = error
    assert raised is None or (isinstance(raised, fault.expected) and raised.fix)
    return raised


def check_no_lock(path: Path, base: str) -> None:
    """Another connection can write at once, and none of ours is inside a transaction."""
    other = apsw.Connection(str(path), vfs=base)
    other.execute("BEGIN IMMEDIATE").fetchall()
    other.execute("ROLLBACK").fetchall()
    other.close()
    assert not any(connection.in_transaction for connection in apsw.connections())


def check_copy(copy: Path, rows: object, base: str, *, complete: bool) -> None:
    """A backup is there as a whole, or not at all, and nothing lies beside it."""
    assert not list(copy.parent.glob(".*.partial*"))
    if copy.exists():
        assert complete
        assert dump(copy, base) == rows
        copy.unlink()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", CASES)
def test_b44_a_fault_at_each_call_of_the_file_system(
    failing: FailingFiles, fresh: Fresh, errors: ErrorLog, verb: str, fault: Fault
) -> None:
    """Whichever call fails, the rows are as they were before or after a transaction, and the verb works afterwards."""
    states = rehearse(fresh, failing, verb, cold=fault.cold)
    for step in range(1, MOST_STEPS):
        with fresh() as world:
            if not fault.cold:
                world.warm()
            told = len(world.events)
            failing.arm(step, fault.code, at=fault.at, forever=fault.forever)
            error = attempt(world, verb, fault)
            met = failing.disarm()
            found = dump(world.path, failing.base)
            carries = verb == "runner.run_once-transaction"
            assert found in states or (carries and nothing_carried(found)), "something is half done"
            if error is not None and found == states[0]:
                assert len(world.events) == told, "an event was told of what was not committed"
            check_no_lock(world.path, failing.base)
            check_copy(world.path.with_suffix(".copy"), found, failing.base, complete=error is None)
            try:
                VERBS[verb](world)
            except StoreError:
                raise
            except JobqError:
                pass  # It was done the first time, and cannot be done twice.
            check_no_lock(world.path, failing.base)
        errors.take()
        if not met:
            assert error is None
            return
    raise AssertionError("the verb never passed")


@pytest.mark.parametrize("block", [False, True])
def test_b44_a_handle_that_can_only_read_is_not_kept(failing: FailingFiles, fresh: Fresh, block: bool) -> None:
    """Opened while the disk was for reading only, it is closed by the write that it refuses; the next one works."""
    with fresh() as world:
        failing.arm(1, apsw.SQLITE_READONLY, at=(OPEN,), forever=False)
        with pytest.raises(StoreUnavailable), world.jobs.transaction() if block else nullcontext():
            world.jobs.enqueue("lies", {}, delay="1h")
        assert failing.disarm()
        assert world.jobs.enqueue("lies", {}, delay="1h").created


@pytest.mark.parametrize("fault", [case for case in CASES if case.values[0].is_real])
def test_b44_a_new_file_is_made_whole_or_can_be_made_again(
    failing: FailingFiles, memory: Path, errors: ErrorLog, fault: Fault
) -> None:
    """Whichever call fails while a file is made, opening it once more makes it."""
    for step in range(1, MOST_STEPS):
        path = memory / f"{step}.db"
        failing.arm(step, fault.code, at=fault.at, forever=fault.forever)
        with suppress(fault.expected):
            jobq.open(path).close()
        met = failing.disarm()
        with jobq.open(path) as jobs:
            assert jobs.get(jobs.enqueue("any", {}).id).state == "queued"
        if not met:
            return
    raise AssertionError("opening never passed")
