"""Ticks: due slots become jobs once, next runs move on, and one broken schedule harms only itself."""

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobq.errors import DedupeConflict, RetiredKind
from jobq.model.entries import Entry
from jobq.model.outcome import Succeeded
from jobq.model.schedule import CatchUp, jitter_delay
from jobq.model.scheduled import Dispatched
from jobq.store.base import Filter
from jobq.store.scheduling import Remark
from tests.store.bench import Stores, Workbench
from tests.store.test_schedules import FIVE, START, after, get, put


def tick(bench: Workbench, *names: str) -> list[Dispatched]:
    """Tick what a look finds, or the schedules named."""
    return list(bench.store.tick_schedules(names or bench.store.look_schedules().names, attempts=_kinds).dispatched)


def _kinds(kind: str) -> None:
    return None


def remarks(bench: Workbench) -> list[Remark]:
    """Tick what a look finds, and return what is said of it."""
    names = bench.store.look_schedules().names
    return [one.remark for one in bench.store.tick_schedules(names, attempts=_kinds).remarks]


def slots(made: list[Dispatched]) -> list[float]:
    """Return the slots in seconds after the start."""
    return [(one.slot - START).total_seconds() for one in made if one.slot is not None]


def test_a_due_slot_becomes_a_job_that_names_it(bench: Workbench) -> None:
    """With the entry's payload, the kind's defaults, and a key that is the slot's."""
    bench.register("a", queue="mail")
    put(bench, entries=(Entry("a", {"n": 1}),))
    bench.clock.advance(310)
    (made,) = tick(bench)

    job = bench.get(made.job_id)
    assert made == Dispatched(schedule="s", slot=after(300), entry="a", job_id=job.id, created=True)
    assert (job.kind, job.payload, job.queue, job.priority, job.max_attempts) == ("a", {"n": 1}, "mail", 50, 5)
    assert (job.schedule, job.slot, job.catch_up, job.run_at) == ("s", after(300), False, after(300))
    assert job.dedupe_key == "schedule:s:2024-01-01T00:05:00Z"
    assert (get(bench).next_run, get(bench).last_slot) == (after(600), after(300))
    assert [change.job_id for change in bench.feed] == [job.id]


def test_b31_ten_ticks_around_a_slot_make_one_job(bench: Workbench) -> None:
    """Two seconds before nothing, then one, then nothing until the next."""
    put(bench)
    bench.clock.advance(298)
    made = [tick(bench, "s")]
    bench.clock.advance(4)
    made += [tick(bench, "s") for _ in range(10)]
    bench.clock.advance(50)
    made.append(tick(bench, "s"))

    assert [len(one) for one in made] == [0, 1, *[0] * 10]


def test_a_look_says_what_is_due_and_what_comes_next(bench: Workbench) -> None:
    """It takes no lock: a paused one is neither."""
    put(bench)
    put(bench, "slow", every=3_600.0)
    put(bench, "paused", every=60.0)
    bench.store.pause_schedule("paused", who=None, why=None)

    assert bench.store.look_schedules() == ((), after(300))
    bench.clock.advance(301)
    assert bench.store.look_schedules() == (("s",), after(3_600))


def test_every_entry_of_a_slot_is_enqueued(bench: Workbench) -> None:
    """Each with a key of its own; its queue and priority win over the schedule's."""
    entries = (Entry("a"), Entry("a", queue="own", priority=1), Entry("b", name="last"))
    put(bench, entries=entries, queue="shared", priority=7)
    bench.clock.advance(300)
    made = tick(bench)
    jobs = [bench.get(one.job_id) for one in made]

    assert [one.entry for one in made] == ["a:1", "a:2", "last"]
    assert [(job.queue, job.priority) for job in jobs] == [("shared", 7), ("own", 1), ("shared", 7)]
    assert len({job.dedupe_key for job in jobs}) == 3


@pytest.mark.parametrize(
    ("catch_up", "ran", "flags"),
    [
        pytest.param(CatchUp.ONCE, [3_000], [True], id="once"),
        pytest.param(CatchUp.SKIP, [], [], id="skip"),
        pytest.param(CatchUp.ALL, [1_800, 2_100, 2_400, 2_700, 3_000], [True] * 5, id="all"),
    ],
)
def test_missed_slots_follow_the_rule(
    bench: Workbench, catch_up: CatchUp, ran: list[float], flags: list[bool]
) -> None:
    """The newest of them, none, or the newest five; the next run is on phase."""
    put(bench, catch_up=catch_up, max_catch_up=5)
    bench.clock.advance(3_100)
    made = tick(bench)

    assert slots(made) == ran
    assert [bench.get(one.job_id).catch_up for one in made] == flags
    assert get(bench).next_run == after(3_300)
    assert tick(bench) == []


def test_the_newest_of_several_may_be_on_time(bench: Workbench) -> None:
    """Of the slots that ``all`` runs, the one that is due now is no catch-up."""
    put(bench, catch_up=CatchUp.ALL)
    bench.clock.advance(601)
    assert [(one.slot, one.catch_up) for one in tick(bench)] == [(after(300), True), (after(600), False)]


def test_dropped_slots_are_said(bench: Workbench) -> None:
    """Collapsed ones, and ones that are skipped."""
    put(bench)
    bench.clock.advance(700)
    assert remarks(bench) == [Remark.COLLAPSED]
    put(bench, catch_up=CatchUp.SKIP)
    bench.clock.advance(700)
    assert remarks(bench) == [Remark.SKIPPED]
    bench.clock.advance(100)
    assert remarks(bench) == []


def test_b43_a_held_own_key_reports_the_job_and_moves_on(bench: Workbench) -> None:
    """No exception and no burst later: the slots that passed meanwhile are done."""
    put(bench, entries=(Entry("a", dedupe_key="mine"),))
    bench.clock.advance(300)
    (first,) = tick(bench)
    again = []
    for _ in range(3):
        bench.clock.advance(300)
        again += tick(bench)

    assert bench.get(first.job_id).dedupe_key == "mine"
    assert {(one.job_id, one.created) for one in again} == {(first.job_id, False)}
    assert get(bench).next_run == after(1_500)
    bench.settle(bench.claim()[0], Succeeded())
    assert tick(bench, "s") == []
    bench.clock.advance(300)
    assert [one.created for one in tick(bench)] == [True]
    assert sum(bench.store.count(Filter()).values()) == 2


def test_a_slot_fires_once_whatever_becomes_of_its_job(bench: Workbench) -> None:
    """Removing and adding the schedule anew, with the clock back before the slot, does not repeat it."""
    put(bench, anchor=START)
    bench.clock.advance(300)
    (first,) = tick(bench)
    bench.settle(bench.claim()[0], Succeeded())
    bench.store.remove_schedule("s")
    bench.clock.jump(-10)
    assert put(bench, anchor=START).next_run == after(300)
    bench.clock.advance(10)

    assert tick(bench) == []
    assert get(bench).next_run == after(600)
    assert bench.get(first.job_id).slot == after(300)


@pytest.mark.parametrize("hours", [12, 24 * 3_650])
def test_b35_a_clock_set_back_repeats_nothing(bench: Workbench, hours: int) -> None:
    """The next run is recomputed at once, slots that fired before do not fire again, and new ones do."""
    bench.clock.jump(hours * 3_600)
    put(bench, every=3_600.0, anchor=START)
    fired = []
    for _ in range(6):
        bench.clock.advance(3_600)
        fired += tick(bench)
    assert len(fired) == 6
    bench.clock.jump(-hours * 3_600)
    before = bench.clock.now()
    assert remarks(bench) == [Remark.RECOMPUTED]
    assert get(bench).next_run - before <= timedelta(hours=1)
    again = []
    for _ in range(12):
        bench.clock.advance(3_600)
        again += tick(bench)

    expected = [before + timedelta(hours=n) for n in range(1, 13)]
    assert [one.slot for one in again] == [slot for slot in expected if slot not in {one.slot for one in fired}]


@pytest.mark.parametrize("named", [pytest.param(None, id="creation"), pytest.param(START, id="named")])
def test_b35_an_anchor_of_a_clock_that_came_back_keeps_its_phase(bench: Workbench, named: datetime | None) -> None:
    """A schedule that was added while the clock was years ahead does not wait for those years."""
    bench.clock.jump(3_650 * 86_400 + 7)
    put(bench, anchor=named)
    phase = (get(bench).anchor - START) % timedelta(seconds=FIVE)
    bench.clock.jump(-3_660 * 86_400)
    assert remarks(bench) == [Remark.RECOMPUTED]
    found = get(bench)

    assert timedelta(0) < found.next_run - bench.now <= timedelta(seconds=FIVE)
    assert (found.next_run - START) % timedelta(seconds=FIVE) == phase
    assert bench.store.look_schedules().names == ()
    assert put(bench, anchor=None).next_run == found.next_run


def test_an_anchor_beyond_the_creation_is_waited_for(bench: Workbench) -> None:
    """It is what somebody asked for."""
    put(bench, anchor=after(10_000))
    assert bench.store.look_schedules() == ((), after(10_300))


def test_a_small_step_back_changes_nothing(bench: Workbench) -> None:
    """A next run at most one period ahead stays, and no lock is taken for it."""
    put(bench)
    bench.clock.advance(300)
    tick(bench)
    bench.clock.jump(-200)

    assert bench.store.look_schedules() == ((), after(600))


def test_jitter_moves_the_job_and_never_the_slot(bench: Workbench) -> None:
    """By an amount that is the slot's own."""
    put(bench, jitter=60.0)
    moved = []
    for _ in range(3):
        bench.clock.advance(300)
        (made,) = tick(bench)
        job = bench.get(made.job_id)
        assert job.slot is not None
        moved.append((job.run_at - job.slot).total_seconds())
        expected = jitter_delay("s", job.slot, 60.0)
        assert moved[-1] == pytest.approx(expected, abs=0.001)

    assert len(set(moved)) == 3
    assert all(0 <= one <= 60 for one in moved)


def test_a_paused_schedule_waits_and_then_catches_up(bench: Workbench) -> None:
    """Slots that pass meanwhile are missed ones; nothing fires in between, asked by name or not."""
    put(bench)
    bench.store.pause_schedule("s", who=None, why=None)
    bench.clock.advance(1_000)
    assert tick(bench) == []
    assert tick(bench, "s") == []
    bench.store.resume_schedule("s")

    assert [(one.slot, one.catch_up) for one in tick(bench)] == [(after(900), True)]


def test_two_stores_make_one_job_of_a_slot(bench: Workbench, elsewhere: Workbench) -> None:
    """Both have looked before either ticks."""
    put(bench)
    bench.clock.advance(300)
    names = bench.store.look_schedules().names, elsewhere.store.look_schedules().names

    assert names == (("s",), ("s",))
    assert (len(tick(bench, "s")), len(tick(elsewhere, "s"))) == (1, 0)


def test_threads_on_two_stores_tick_each_slot_once(stores: Stores, bench: Workbench, elsewhere: Workbench) -> None:
    """Ten slots, eight threads at once on each: ten jobs and no exception."""
    put(bench)
    made: list[Dispatched] = []
    failed: list[BaseException] = []

    def work(own: Workbench, barrier: threading.Barrier) -> None:
        try:
            barrier.wait(10)
            made.extend(tick(own, "s"))
        except BaseException as error:
            failed.append(error)

    for _ in range(10):
        bench.clock.advance(300)
        barrier = threading.Barrier(8)
        threads = [threading.Thread(target=work, args=(own, barrier)) for own in (bench, elsewhere) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)

    assert not failed
    assert sorted(slots(made)) == [300.0 * n for n in range(1, 11)]


def test_run_leaves_the_next_run_alone(bench: Workbench) -> None:
    """Its jobs have no slot and no key of one, so that each run makes one; a pause does not matter."""
    put(bench)
    bench.store.pause_schedule("s", who=None, why=None)
    made = [bench.store.run_schedule("s", attempts=_kinds)[0] for _ in range(2)]
    jobs = [bench.get(one.job_id) for one in made]

    assert [one.created for one in made] == [True, True]
    assert [(job.schedule, job.slot, job.dedupe_key) for job in jobs] == [("s", None, None)] * 2
    assert (get(bench).next_run, get(bench).last_slot) == (after(300), None)


def test_a_retired_kind_marks_its_schedule_and_harms_no_other(bench: Workbench) -> None:
    """It keeps its slots; when the kind is back they are caught up with."""
    put(bench, "old", entries=(Entry("old"),))
    put(bench, "fine")
    bench.store.register([], [], ["old"])
    bench.clock.advance(300)
    ticked = bench.store.tick_schedules(bench.store.look_schedules().names, attempts=_kinds)

    assert [one.schedule for one in ticked.dispatched] == ["fine"]
    assert [(one.remark, one.schedule) for one in ticked.remarks] == [(Remark.FAILED, "old")]
    assert get(bench, "old").error == "RetiredKind: the kind 'old' is retired"
    assert bench.store.look_schedules() == ((), after(600))
    with pytest.raises(RetiredKind):
        bench.store.run_schedule("old", attempts=_kinds)
    bench.register("old")
    assert (remarks(bench), get(bench, "old").error) == ([Remark.MENDED], None)
    assert get(bench, "old").last_slot == after(300)


def test_a_key_of_another_kind_is_an_error_of_its_schedule_alone(bench: Workbench) -> None:
    """Until that job ends."""
    put(bench, entries=(Entry("a", dedupe_key="k"),))
    put(bench, "z")
    holder = bench.enqueue("b", dedupe_key="k")
    bench.clock.advance(300)

    assert [one.schedule for one in tick(bench)] == ["z"]
    assert "DedupeConflict" in str(get(bench).error)
    with pytest.raises(DedupeConflict):
        bench.store.run_schedule("s", attempts=_kinds)
    bench.cancel(holder)
    assert [one.schedule for one in tick(bench)] == ["s"]


@pytest.mark.parametrize("years", [10])
def test_ten_years_behind_is_one_job_on_phase(bench: Workbench, years: int) -> None:
    """Or five, with ``all`` and a bound of five."""
    put(bench, "minutely", cron="* * * * *")
    put(bench, "five", catch_up=CatchUp.ALL, max_catch_up=5, every=FIVE)
    bench.clock.jump(timedelta(days=years * 365, seconds=7))
    made = tick(bench)
    now: datetime = bench.clock.now()

    assert [one.schedule for one in made] == ["minutely"] + ["five"] * 5
    assert [get(bench, name).next_run for name in ("five", "minutely")] == [
        now + timedelta(seconds=293), now + timedelta(seconds=53),
    ]  # fmt: skip
    assert tick(bench) == []


@pytest.mark.parametrize(
    ("number", "expected"), [pytest.param(None, 3, id="the-caller's"), pytest.param(9, 9, id="the-entry's")]
)
def test_attempts_are_the_entry_s_then_the_caller_s(bench: Workbench, number: int | None, expected: int) -> None:
    """The caller knows handlers and configuration."""
    put(bench, entries=(Entry("a", max_attempts=number),))
    bench.clock.advance(300)
    (made,) = bench.store.tick_schedules(["s"], attempts=lambda kind: 3).dispatched
    assert bench.get(made.job_id).max_attempts == expected


def test_a_claim_carries_slot_and_catch_up(bench: Workbench) -> None:
    """What a handler sees."""
    put(bench)
    bench.clock.advance(700)
    tick(bench)
    (claim,) = bench.claim()
    found: Any = (claim.schedule, claim.slot, claim.catch_up)

    assert found == ("s", after(600), True)


def test_a_lead_is_held_until_it_runs_out(bench: Workbench, elsewhere: Workbench) -> None:
    """Renewed by its holder, refused to others, free when it is over or given up."""
    assert bench.store.lead("x", "one", length=10)
    assert not elsewhere.store.lead("x", "two", length=10)
    bench.clock.advance(6)
    assert bench.store.lead("x", "one", length=10)
    bench.clock.advance(6)
    assert not elsewhere.store.lead("x", "two", length=10)
    bench.clock.advance(4)
    assert elsewhere.store.lead("x", "two", length=10)
    bench.store.resign("x", "one")
    assert not bench.store.lead("x", "one", length=10)
    elsewhere.store.resign("x", "two")
    assert bench.store.lead("x", "one", length=10)
    bench.clock.jump(-3_600)
    assert elsewhere.store.lead("x", "two", length=10)
