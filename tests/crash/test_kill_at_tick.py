"""A process killed before any statement of a tick neither repeats a slot nor leaves one out; nor do four at once."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

import jobq
from jobq.testing import FakeClock
from tests.crash.conftest import Program
from tests.crash.test_kill_at_statement import kill_before_statement
from tests.ready import ready_file

START = datetime(2024, 1, 1, tzinfo=UTC)
SLOTS = 4
#: More statements than the ticks have; the last round runs to its end and proves it.
ROUNDS = 400


def add(path: Path) -> None:
    """Store two schedules, one with two entries."""
    with jobq.open(path, clock=FakeClock()) as jobs:
        jobs.schedules.add("one", every=60, kind="a")
        jobs.schedules.add("two", every=60, entries=[jobq.Entry("a"), jobq.Entry("b", {"pad": "x" * 3000})])


def tick_until(path: Path, until: int) -> None:
    """Tick at each of the first slots, as a restarted process does: from the beginning."""
    clock = FakeClock()
    with jobq.open(path, clock=clock) as jobs:
        scheduler = jobq.Runner(jobs).scheduler
        for _ in range(until):
            clock.advance(60)
            scheduler.tick()


def in_child(work: Callable[[], None]) -> bool:
    """Do something in a child; return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("stride", [pytest.param(3, id="short"), pytest.param(1, id="long", marks=pytest.mark.storm)])
def test_b33_killed_before_each_statement_no_slot_is_repeated_or_left_out(memory: Path, stride: int) -> None:
    """After a restart each slot has each of its jobs once, and the next run is on phase."""
    finished = False
    for number in range(1, ROUNDS, stride):
        path = memory / f"{number}.db"
        ready_file(path, add)

        def killed(path: Path = path, number: int = number) -> None:
            kill_before_statement(number)
            tick_until(path, SLOTS)

        finished = not in_child(killed)
        with jobq.open(path, clock=FakeClock()) as jobs:
            # No key is held any more: what keeps a slot from being repeated is the slot itself.
            jobs.cancel([job.id for job in jobs.find(limit=None)])
        tick_until(path, SLOTS)
        with jobq.open(path, clock=FakeClock()) as jobs:
            made = sorted((str(job.schedule), job.slot, job.kind) for job in jobs.find(limit=None))
            slots = [START + timedelta(minutes=n) for n in range(1, SLOTS + 1)]
            expected = [("one", slot, "a") for slot in slots] + [("two", slot, kind) for slot in slots for kind in "ab"]
            assert made == sorted(expected), f"killed before statement {number}"
            assert {one.next_run for one in jobs.store.schedules()} == {slots[-1] + timedelta(minutes=1)}
        connection = apsw.Connection(str(path))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        if finished:
            break
    assert finished, "the ticks have more statements than rounds"


def race(run: Callable[..., Program], **settings: object) -> list[tuple[str, str]]:
    """Let four processes tick at once, and return schedule and slot of each job that they made, sorted."""
    programs = [run("tick", **settings) for _ in range(4)]
    for program in programs:
        program.hear("ready")
    for program in programs:
        program.go()
    told = [program.hear("ticked") for program in programs]
    assert [program.finish() for program in programs] == [0] * 4
    assert [failed for _, failed in told] == [[]] * 4
    return sorted((name, slot) for made, _ in told for name, slot in made)


def test_b33_four_processes_tick_ten_slots_once(run: Callable[..., Program], tmp_path: Path) -> None:
    """Each walks through the ten slots by a clock of its own, ahead of some and behind others: ten jobs."""
    with jobq.open(tmp_path / "jobs.db", clock=FakeClock()) as jobs:
        jobs.schedules.add("s", every=60, kind="a")
    made = race(run, at=START.isoformat(), step=60, ticks=10)

    assert made == [("s", slot) for slot in _slots(0)]
    with jobq.open(tmp_path / "jobs.db", clock=FakeClock()) as jobs:
        assert sorted(str(job.slot and job.slot.isoformat()) for job in jobs.find(limit=None)) == _slots(0)


def test_four_processes_tick_ten_schedules_at_one_instant(run: Callable[..., Program], tmp_path: Path) -> None:
    """With slots to make up for: each is made by one of them."""
    with jobq.open(tmp_path / "jobs.db", clock=FakeClock()) as jobs:
        for number in range(10):
            jobs.schedules.add(f"s{number}", every=60 * (number + 1), kind="a", catch_up="all")
    made = race(run, at=(START + timedelta(seconds=601)).isoformat(), ticks=10)

    assert made == sorted((f"s{number}", slot) for number in range(10) for slot in _slots(number))


def _slots(number: int) -> list[str]:
    """Return the slots of a schedule up to ten minutes, as the programs tell them."""
    period = number + 1
    return [(START + timedelta(minutes=minute)).isoformat() for minute in range(period, 11, period)]
