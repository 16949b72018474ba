"""Schedules as rows: written under their names, kept over re-adding, paused, removed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobq.errors import ArgumentError, ScheduleNotFound
from jobq.model.entries import Entry, write_entries
from jobq.model.schedule import CatchUp
from jobq.model.scheduled import Rule, ScheduleInfo
from tests.store.bench import Workbench

START = datetime(2024, 1, 1, tzinfo=UTC)
FIVE = 300.0


def rule(name: str = "s", **fields: Any) -> Rule:
    """Return a rule of an interval of five minutes with one entry, but for what is named."""
    entries = fields.pop("entries", (Entry("a"),))
    if "cron" not in fields:
        fields.setdefault("every", FIVE)
    defaults: dict[str, Any] = {
        "cron": None, "every": None, "tz": "UTC", "anchor": None, "catch_up": CatchUp.ONCE, "max_catch_up": 10,
        "jitter": 0.0, "queue": None, "priority": None, "module": None,
    }  # fmt: skip
    return Rule(**{**defaults, **fields, "name": name, "entries": write_entries(entries)})


def put(bench: Workbench, name: str = "s", **fields: Any) -> ScheduleInfo:
    """Store one rule and return what is stored."""
    return bench.store.put_schedules([rule(name, **fields)])[0]


def get(bench: Workbench, name: str = "s") -> ScheduleInfo:
    """Return one schedule."""
    (found,) = bench.store.schedules([name])
    return found


def after(seconds: float) -> datetime:
    """Return the instant so many seconds after the first of the fake clock."""
    return START + timedelta(seconds=seconds)


def test_what_is_put_is_read_back(bench: Workbench) -> None:
    """Every field, entries included."""
    entry = Entry("a", {"n": 1.5, "text": "ü"}, name="first", queue="mail", priority=3, max_attempts=2,
                  dedupe_key="k", actor="agent", tenant_id="t", subject="s", meta={"m": None})  # fmt: skip
    put(bench, cron="0 7 * * mon-fri", tz="Europe/Berlin", catch_up=CatchUp.ALL, max_catch_up=3, jitter=1.5,
        queue="q", priority=9, module="shop", entries=(entry, Entry("b")))  # fmt: skip

    found = get(bench)
    assert found == ScheduleInfo(
        name="s", cron="0 7 * * mon-fri", every=None, tz="Europe/Berlin", anchor=START, catch_up=CatchUp.ALL,
        max_catch_up=3, jitter=1.5, queue="q", priority=9, entries=(entry, Entry("b", name="b")),
        next_run=datetime(2024, 1, 1, 6, tzinfo=UTC), last_slot=None, paused_at=None, paused_by=None,
        paused_why=None, error=None, module="shop", created_at=START,
    )  # fmt: skip


def test_the_first_slot_is_one_period_after_the_creation(bench: Workbench) -> None:
    """The anchor is now unless the rule names one; then the first slot after now has its phase."""
    assert (put(bench).anchor, put(bench).next_run) == (START, after(300))
    assert put(bench, "anchored", anchor=after(-1_000)).next_run == after(200)
    assert put(bench, "later", anchor=after(1_000)).next_run == after(1_300)


def test_putting_the_same_again_keeps_the_next_run_and_writes_nothing(bench: Workbench, elsewhere: Workbench) -> None:
    """A program adds its schedules at each start; no other process is woken by it."""
    first = put(bench)
    before = elsewhere.store.data_version()
    bench.clock.advance("4m")

    assert put(bench) == first
    assert elsewhere.store.data_version() == before


def test_a_due_slot_survives_re_adding(bench: Workbench) -> None:
    """A program that was down when its slot came must not lose it by starting."""
    put(bench)
    bench.clock.advance("7m")
    assert put(bench).next_run == after(300)
    assert put(bench, priority=7).next_run == after(300)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"every": 60.0}, 480, id="a-shorter-period-on-the-old-phase"),
        pytest.param({"every": FIVE, "anchor": after(-10)}, 590, id="another-anchor"),
        pytest.param({"cron": "*/10 * * * *"}, 600, id="a-cron-expression"),
    ],
)
def test_changed_timing_recomputes_the_next_run(bench: Workbench, fields: dict[str, Any], expected: float) -> None:
    """It is the first slot after now; the anchor stays where it is not named."""
    put(bench)
    bench.clock.advance("7m")
    changed = put(bench, **fields)

    assert changed.next_run == after(expected)
    assert changed.anchor == fields.get("anchor", START)
    assert changed.created_at == START


def test_another_zone_is_other_timing(bench: Workbench) -> None:
    """07:00 in Berlin is not 07:00 in New York."""
    put(bench, cron="0 7 * * *", tz="Europe/Berlin")
    assert put(bench, cron="0 7 * * *", tz="America/New_York").next_run == after(12 * 3600)


def test_a_rule_without_a_slot_writes_nothing(bench: Workbench) -> None:
    """Nor does what is put together with it."""
    with pytest.raises(ArgumentError):
        bench.store.put_schedules([rule("fine"), rule("never", every=9_000 * 366 * 86_400.0)])
    assert bench.store.schedules() == []


def test_swept_modules_lose_what_they_no_longer_declare(bench: Workbench) -> None:
    """Others' schedules, and those that were added by hand, stay."""
    bench.store.put_schedules([rule("old", module="m"), rule("kept", module="m"), rule("other", module="n")])
    put(bench, "by-hand")
    bench.store.put_schedules([rule("kept", module="m")], sweep={"m"})

    assert [one.name for one in bench.store.schedules()] == ["by-hand", "kept", "other"]


def test_remove_says_whether_there_was_one(bench: Workbench) -> None:
    """True, then False."""
    put(bench)
    assert (bench.store.remove_schedule("s"), bench.store.remove_schedule("s")) == (True, False)
    assert bench.store.schedules() == []


def test_a_pause_is_remembered_and_survives_re_adding(bench: Workbench) -> None:
    """With who and why, also where the timing changes; pausing twice changes nothing."""
    put(bench)
    assert bench.store.pause_schedule("s", who="ada", why="holiday")
    assert not bench.store.pause_schedule("s", who="bob", why="too")
    changed = put(bench, every=60.0)

    assert (changed.paused_at, changed.paused_by, changed.paused_why) == (START, "ada", "holiday")
    assert changed.paused
    assert bench.store.resume_schedule("s")
    assert not bench.store.resume_schedule("s")
    assert not get(bench).paused


@pytest.mark.parametrize("verb", ["pause", "resume", "run"])
def test_an_unknown_schedule_is_not_found(bench: Workbench, verb: str) -> None:
    """The error names those that there are."""
    put(bench)
    call = {
        "pause": lambda: bench.store.pause_schedule("x", who=None, why=None),
        "resume": lambda: bench.store.resume_schedule("x"),
        "run": lambda: bench.store.run_schedule("x", attempts=lambda kind: None),
    }[verb]
    with pytest.raises(ScheduleNotFound) as caught:
        call()
    assert (caught.value.schedule, caught.value.known) == ("x", ("s",))


@pytest.mark.parametrize(
    ("tz", "cron", "kept"),
    [
        pytest.param("UTC", "0 7 * * 1-5", True, id="numbers"),
        pytest.param("UTC", " 0  7 *\t* MON-FRI", True, id="blanks-and-case"),
        pytest.param("UTC", "00 7 * 1-12 mon-fri", True, id="all-months"),
        pytest.param("UTC", "0 7 * * 1-6", False, id="another-day"),
        pytest.param("UTC", "0 7 1-31 * mon-fri", False, id="either-day-field"),
        pytest.param("Europe/Berlin", "0 7 * * mon-fri", False, id="zone"),
    ],
)
def test_an_expression_that_is_spelt_anew_keeps_the_next_run(
    bench: Workbench, tz: str, cron: str, kept: bool
) -> None:
    """A slot that is due stays due, and the new text is stored; other slots are another timing."""
    put(bench, cron="0 7 * * mon-fri")
    bench.clock.advance(8 * 3_600)
    again = put(bench, cron=cron, tz=tz)

    assert (again.cron, again.next_run == after(7 * 3_600)) == (cron, kept)
