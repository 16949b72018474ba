"""The relay as a service: its thread and its connection, trouble on both sides, and the runner that has it."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock, MemoryDatabase
from tests.conftest import ErrorLog
from tests.outbox.conftest import staging

#: No test waits longer for anything, in seconds.
PATIENCE = 20.0


class Noted(sqlite3.Connection):
    """A connection that knows whether it is open, and whose it is."""

    open = True
    thread = ""

    def close(self) -> None:
        """Close, and take note."""
        super().close()
        self.open = False


class Line:
    """The way to the host's database, which a test can cut."""

    def __init__(self, path: Path) -> None:
        self._path = path / "shop.sqlite"
        self.cut: Exception | None = None
        self.made: list[Noted] = []

    def connect(self) -> Noted:
        """Connect, unless the line is cut."""
        if self.cut is not None:
            raise self.cut
        made = sqlite3.connect(self._path, factory=Noted)
        made.thread = threading.current_thread().name
        self.made.append(made)
        return made

    def open(self) -> list[str]:
        """Return the threads whose connections are open."""
        return [made.thread for made in self.made if made.open]


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """The way to the host's database."""
    return Line(tmp_path)


@pytest.fixture
def real(tmp_path: Path, line: Line) -> Iterator[jobq.JobQueue]:
    """A job queue on the system's clock."""
    with jobq.open(tmp_path / "jobs.db", config=jobq.Config(busy_timeout=0.05)) as jobs:
        yield jobs


@pytest.fixture
def outbox(real: jobq.JobQueue, line: Line) -> Iterator[jobq.Outbox]:
    """An outbox on the line; its relay is stopped after the test."""
    made = jobq.Outbox(real, connect=line.connect)
    made.create_table()
    yield made
    made.relay.stop()


def stage(outbox: jobq.Outbox, kind: str = "mail") -> None:
    """Stage one job and commit."""
    connection = outbox._contact._connect()
    with connection, outbox.joined(connection):
        outbox.jobs.enqueue(kind)
    connection.close()


class Arrivals:
    """Waits for jobs, and for what the job queue's health becomes."""

    def __init__(self, jobs: jobq.JobQueue) -> None:
        self._changed = threading.Condition()
        self._jobs = jobs
        self.health: list[tuple[str, bool]] = []
        jobs.bus.subscribe(jobq.Event, self._on_event)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds; fail when it does not in time."""
        with self._changed:
            for _ in range(int(PATIENCE / 0.02)):
                if condition():
                    return
                self._changed.wait(0.02)
        raise AssertionError("it did not happen in time")

    def jobs(self, count: int) -> None:
        """Return when so many jobs are there."""
        self.wait_for(lambda: len(self._jobs.find(limit=None)) == count)

    def _on_event(self, event: jobq.Event) -> None:
        if isinstance(event, jobq.HealthChanged):
            self.health.append((event.component, event.healthy))
        with self._changed:
            self._changed.notify_all()


@pytest.fixture
def arrivals(real: jobq.JobQueue) -> Arrivals:
    """Waits with a limit."""
    return Arrivals(real)


def test_the_thread_publishes_on_a_connection_of_its_own(outbox: jobq.Outbox, line: Line, arrivals: Arrivals) -> None:
    """It is made by that thread, kept, and closed at the stop."""
    outbox.relay.start()
    outbox.relay.start()
    stage(outbox)
    arrivals.jobs(1)
    stage(outbox)
    arrivals.jobs(2)
    assert line.open() == ["jobq-relay"]
    assert len([made for made in line.made if made.thread == "jobq-relay"]) == 1
    outbox.relay.stop()
    outbox.relay.stop()

    assert (line.open(), outbox.relay.alive) == ([], False)


def test_a_tick_by_hand_leaves_no_connection(outbox: jobq.Outbox, line: Line) -> None:
    """Also beside the thread, which has its own."""
    stage(outbox)
    outbox.relay.tick()
    assert line.open() == []


def test_a_runner_runs_it(outbox: jobq.Outbox, real: jobq.JobQueue, line: Line) -> None:
    """From start to stop; what is staged is run."""
    done = threading.Event()
    real.job(name="mail")(lambda payload: done.set())
    runner = jobq.Runner(real, outboxes=[outbox])
    with runner:
        stage(outbox)
        assert done.wait(PATIENCE)
        health = runner.health()
        assert (health.outboxes_healthy, "relay" in health.loops) == (True, True)

    assert (line.open(), outbox.relay.alive) == ([], False)


def test_relays_of_several_outboxes_have_names(real: jobq.JobQueue) -> None:
    """So that each speaks for itself."""
    outboxes = [jobq.Outbox(real, connect=MemoryDatabase().connect) for _ in range(2)]
    runner = jobq.Runner(real, outboxes=outboxes)

    assert {"relay", "relay-2"} <= set(runner.health().loops)


@pytest.mark.parametrize("outboxes", [pytest.param([5], id="number"), pytest.param(5, id="no list")])
def test_a_runner_refuses_what_is_no_outbox(real: jobq.JobQueue, jobs: jobq.JobQueue, outboxes: Any) -> None:
    """Or is one of another file."""
    with pytest.raises(jobq.ArgumentError):
        jobq.Runner(real, outboxes=outboxes)
    with pytest.raises(jobq.ArgumentError):
        jobq.Runner(real, outboxes=[jobq.Outbox(jobs, connect=MemoryDatabase().connect)])


def test_a_runner_refuses_an_outbox_that_is_named_twice(real: jobq.JobQueue) -> None:
    """It has one relay, which cannot run twice."""
    outbox = jobq.Outbox(real, connect=MemoryDatabase().connect)

    with pytest.raises(jobq.ArgumentError, match="named twice"):
        jobq.Runner(real, outboxes=[outbox, outbox])


def test_trouble_with_the_hosts_database_is_told_once_and_passes(
    outbox: jobq.Outbox, line: Line, arrivals: Arrivals, errors: ErrorLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is made anew; the pauses grow."""
    monkeypatch.setattr("jobq.outbox.relay.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("jobq.outbox.relay.LONGEST_PAUSE", 0.01)
    line.cut = ConnectionError("gone")
    outbox.relay.start()
    arrivals.wait_for(lambda: outbox.relay.failures > 3)
    assert not outbox.relay.host_healthy
    line.cut = None
    stage(outbox)
    arrivals.jobs(1)
    arrivals.wait_for(lambda: len(arrivals.health) == 2)

    assert arrivals.health == [("outbox", False), ("outbox", True)]
    assert (errors.take(), outbox.relay.host_healthy) == (["jobq.outbox.failed"], True)


def test_a_connection_that_breaks_is_replaced(
    outbox: jobq.Outbox, line: Line, arrivals: Arrivals, errors: ErrorLog
) -> None:
    """Whatever it was: the next tick has a new one."""
    outbox.relay.start()
    stage(outbox)
    arrivals.jobs(1)
    table = sqlite3.connect(line._path)
    table.execute("ALTER TABLE jobq_outbox RENAME TO aside")
    table.commit()
    arrivals.wait_for(lambda: not outbox.relay.host_healthy)
    table.execute("ALTER TABLE aside RENAME TO jobq_outbox")
    table.commit()
    table.close()
    stage(outbox)
    arrivals.jobs(2)

    assert errors.take() == ["jobq.outbox.failed"]
    assert len([made for made in line.made if made.thread == "jobq-relay"]) > 1


def test_rows_wait_while_jobqs_file_is_in_trouble(
    outbox: jobq.Outbox, real: jobq.JobQueue, line: Line
) -> None:
    """It is no fault of theirs: no attempt is counted, and the host's database is not locked meanwhile."""
    stage(outbox)
    with real.transaction():
        failed: list[BaseException] = []

        def tick() -> None:
            try:
                outbox.relay.tick()
            except jobq.StoreBusy as error:
                failed.append(error)

        thread = threading.Thread(target=tick)
        thread.start()
        stage(outbox)
        thread.join(PATIENCE)
    assert (len(failed), outbox.failing(), outbox.pending().count) == (1, [], 2)

    assert outbox.relay.tick() == 2


def test_a_busy_host_is_waited_for_without_a_report(
    outbox: jobq.Outbox, line: Line, arrivals: Arrivals, errors: ErrorLog
) -> None:
    """Somebody else works there."""
    outbox.relay.recover(jobq.OutboxUnavailable("locked", busy=True))

    assert (outbox.relay.host_healthy, arrivals.health, errors.take()) == (True, [], [])


def test_a_row_is_reported_once_for_each_different_error(
    shop: Any, shop_outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Without anything of its payload, and with secrets redacted."""
    with staging(shop_outbox, shop):
        jobs.enqueue("mail", {"hush": "hush"}, dedupe_key="password=hunter2")
    jobs.enqueue("other", dedupe_key="password=hunter2")
    for _ in range(3):
        shop_outbox.relay.tick()
        clock.advance("5m")

    lines = [line.getMessage() for line in caplog.records if "publish_failed" in line.getMessage()]
    assert len(lines) == 1
    assert "DedupeConflict" in lines[0]
    assert "hush" not in lines[0]
    assert shop.rows()[0]["attempts"] == 3


def test_a_drain_with_until_ticks_it(
    shop: Any, shop_outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock
) -> None:
    """Also for rows whose pauses end on the way; without until nothing is published."""
    jobs.job(name="mail")(lambda payload: None)
    holder = jobs.enqueue("holder", dedupe_key="k", delay="1h").id
    with staging(shop_outbox, shop):
        jobs.enqueue_many([jobq.NewJob("mail") for _ in range(150)])
        jobs.enqueue("mail", dedupe_key="k")
    runner = jobq.Runner(jobs, outboxes=[shop_outbox])
    assert runner.drain().claimed == 0
    assert runner.drain(until="1m").succeeded == 150
    jobs.cancel(holder)

    assert runner.drain(until="5m").succeeded == 1
    assert runner.health().loops["relay"] is None


def test_a_fork_finds_no_connection_of_the_thread(
    outbox: jobq.Outbox, real: jobq.JobQueue, line: Line, arrivals: Arrivals
) -> None:
    """It is closed before and made anew afterwards; in the child the relay can be started again."""
    outbox.relay.start()
    stage(outbox)
    arrivals.jobs(1)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            quiet = (line.open(), outbox.relay.alive) == ([], False)
            stage(outbox)
            outbox.relay.start()
            made = outbox.relay.thread
            Arrivals(real).jobs(2)
            outbox.relay.stop()
            code = 0 if quiet and made is not None else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    stage(outbox)
    arrivals.jobs(3)
    assert (os.waitstatus_to_exitcode(status), line.open()) == (0, ["jobq-relay"])


def test_its_commits_are_synced_with_every_durability(
    tmp_path: Path, shop: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark, in the host's database, may be synced too: it must not outlive the job."""
    with jobq.open(tmp_path / "j.db", clock=clock, config=jobq.Config(durability="relaxed")) as jobs:
        outbox = jobq.Outbox(jobs, connect=shop.connect)
        outbox.create_table()
        with staging(outbox, shop):
            jobs.enqueue("mail")
        synced: list[bool] = []
        write = jobs.store.engine.write  # type: ignore[attr-defined]

        def watched(operation: Any, *, sync: bool, busy_timeout: float) -> Any:
            synced.append(sync)
            return write(operation, sync=sync, busy_timeout=busy_timeout)

        monkeypatch.setattr(jobs.store.engine, "write", watched)  # type: ignore[attr-defined]
        outbox.relay.tick()
        monkeypatch.undo()

    assert synced == [True, False, False]


def test_opening_jobqs_own_file_is_fatal(real: jobq.JobQueue, errors: ErrorLog) -> None:
    """One report, and no second connection: each one that is closed takes locks away."""
    import apsw

    count: list[int] = []

    def connect() -> Any:
        count.append(1)
        return apsw.Connection(real.path)

    real.enqueue("mail")
    outbox = jobq.Outbox(real, connect=connect)
    outbox.relay.start()
    thread = outbox.relay.thread
    assert thread is not None
    thread.join(PATIENCE)

    assert (thread.is_alive(), count, errors.take()) == (False, [1], ["jobq.store.failed"])
