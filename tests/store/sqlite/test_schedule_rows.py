"""Rows of schedules that somebody broke by hand, guards that outlive their jobs, and what a tick costs."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from jobq.model.entries import Entry
from jobq.model.schedule import CatchUp
from jobq.store.scheduling import Remark
from jobq.store.sqlite.store import SqliteStore
from tests.store.bench import Workbench
from tests.store.sqlite.test_work import SLACK, Meter
from tests.store.test_schedules import after, get, put, rule
from tests.store.test_ticks import remarks, tick

Run = Callable[..., list[Any]]
DAY = 86_400


@pytest.fixture
def sql(bench: Workbench) -> Run:
    """Run one statement on the writer's connection, in a transaction of its own."""
    store = bench.store
    assert isinstance(store, SqliteStore)

    def run(statement: str, *bindings: object) -> list[Any]:
        return store.engine.write(
            lambda conn, _: conn.execute(statement, bindings).fetchall(), sync=False, busy_timeout=1
        )

    return run


@pytest.fixture
def meter(bench: Workbench) -> Meter:
    """A meter on the writer of the bench's store."""
    assert isinstance(bench.store, SqliteStore)
    return Meter(bench.store)


BREAKS = [
    pytest.param("cron = '61 * * * *', every = NULL", "CronError", id="expression"),
    pytest.param("cron = '0 0 31 2 *', every = NULL", "CronError", id="never-fires"),
    pytest.param("cron = '0 0 * * *', every = NULL, tz = 'Mars/Olympus'", "ArgumentError", id="zone"),
    pytest.param("every = 0", "ArgumentError", id="period-zero"),
    pytest.param("every = -300000", "ArgumentError", id="period-below-zero"),
    pytest.param("every = 9223372036854775807", "ArgumentError", id="period-too-long"),
    pytest.param("every = NULL", "ArgumentError", id="no-timing"),
    pytest.param("cron = '0 0 * * *'", "ArgumentError", id="two-timings"),
    pytest.param("entries = '['", "no JSON", id="entries-no-json"),
    pytest.param("entries = '{}'", "no list", id="entries-no-list"),
    pytest.param("entries = '[7]'", "no object", id="entry-no-object"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "priority": 9999}]'""", "priority", id="priority"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "queue": ""}]'""", "queue", id="queue"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "queue": "No Queue"}]'""", "queue", id="queue-name"),
    pytest.param("""entries = '[{"kind": "a\\u0007", "name": "a"}]'""", "kind", id="kind-name"),
    pytest.param("queue = 'No Queue'", "queue", id="queue-of-all"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "dedupe_key": "\\ud800"}]'""", "key", id="surrogate"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "payload": NaN}]'""", "PayloadError", id="payload"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "actor": "x"}]'""", "actor", id="actor"),
    pytest.param("""entries = '[{"kind": "a", "name": "a", "x": 1}]'""", "unknown field", id="unknown-field"),
    pytest.param("entries = CAST(x'ff' AS TEXT)", "no JSON", id="not-utf-8"),
]


@pytest.mark.parametrize(("change", "word"), BREAKS)
def test_a_broken_row_is_marked_once_and_the_others_fire(
    bench: Workbench, sql: Run, change: str, word: str
) -> None:
    """It is told when its error changes, keeps its next run, is listed, and catches up when it is mended."""
    put(bench, "bad")
    put(bench, "good")
    sql(f"UPDATE jobq_schedule SET {change} WHERE name = 'bad'")
    bench.clock.advance(300)
    ticked = bench.store.tick_schedules(bench.store.look_schedules().names, attempts=lambda kind: None)

    assert [one.schedule for one in ticked.dispatched] == ["good"]
    assert [(one.remark, one.schedule) for one in ticked.remarks] == [(Remark.FAILED, "bad")]
    assert word in str(get(bench, "bad").error)
    assert get(bench, "bad").next_run == after(300)
    assert len(bench.store.schedules()) == 2
    bench.clock.advance(300)
    assert remarks(bench) == []
    sql("UPDATE jobq_schedule SET entries = '\"' WHERE name = 'bad'")
    sql("UPDATE jobq_schedule SET cron = NULL, every = 300000, tz = 'UTC' WHERE name = 'bad'")
    # Where the entries were broken before, the error stays what it was.
    assert remarks(bench) in ([Remark.FAILED], [])
    put(bench, "bad")
    assert (get(bench, "bad").error, [one.slot for one in tick(bench)]) == (None, [after(600)])


def test_a_bound_that_somebody_raised_is_cut(bench: Workbench, sql: Run) -> None:
    """A tick makes up for a thousand slots at most."""
    put(bench, every=1.0, catch_up=CatchUp.ALL)
    sql("UPDATE jobq_schedule SET max_catch_up = 1000000")
    bench.clock.advance(1_500)

    assert get(bench).max_catch_up == 1_000
    assert len(tick(bench)) == 1_000


def test_a_broken_row_is_told_before_it_is_due(bench: Workbench, sql: Run) -> None:
    """As soon as its timing cannot be read; the look of an idle process finds it without the lock."""
    put(bench)
    sql("UPDATE jobq_schedule SET every = -1")
    assert remarks(bench) == [Remark.FAILED]
    assert remarks(bench) == []
    sql("UPDATE jobq_schedule SET every = 300000")
    assert (remarks(bench), get(bench).error) == ([Remark.MENDED], None)


def test_a_next_run_that_somebody_moved_far_ahead_comes_back(bench: Workbench, sql: Run) -> None:
    """Further than one period ahead is what a clock leaves behind that was wrong; the edge of time is no trap."""
    put(bench)
    for value in (4_102_444_800_000, 2**62):
        sql("UPDATE jobq_schedule SET next_run = ?", value)
        assert (remarks(bench), get(bench).next_run) == ([Remark.RECOMPUTED], after(300))
    sql("UPDATE jobq_schedule SET next_run = -62135596800000")
    assert [one.slot for one in tick(bench)] == [datetime(1, 1, 1, tzinfo=UTC)]
    assert get(bench).next_run == after(300)


def guards(sql: Run) -> list[Any]:
    """Return slot, job and orphaning of every guard."""
    return sql("SELECT slot, job_id, orphaned_at FROM jobq_slot ORDER BY slot")


def test_a_guard_goes_thirty_days_after_its_job(bench: Workbench, sql: Run) -> None:
    """It loses its job with the row, and until then nothing makes its slot fire again."""
    put(bench, every=float(DAY))
    bench.clock.advance(DAY)
    (first,) = tick(bench)
    bench.cancel(first.job_id)
    assert [one[1:] for one in guards(sql)] == [(first.job_id, None)]
    sql("DELETE FROM jobq_job WHERE id = ?", first.job_id)
    assert [one[1:] for one in guards(sql)] == [(None, None)]
    counts = []
    for _ in range(33):
        bench.clock.advance(DAY)
        tick(bench)
        counts.append(any(job_id is None for _, job_id, _ in guards(sql)))

    # The next tick that fires notes the loss; 30 days later it goes.
    assert counts == [True] * 30 + [False] * 3


def test_a_guard_holds_when_its_job_is_gone(bench: Workbench, sql: Run) -> None:
    """A pruned job and a clock set back do not repeat a slot."""
    put(bench)
    bench.clock.advance(300)
    tick(bench)
    sql("DELETE FROM jobq_job")
    sql("UPDATE jobq_schedule SET next_run = ?", int(after(300).timestamp() * 1000))

    assert tick(bench) == []
    assert get(bench).next_run == after(600)


def test_pruning_jobs_finds_their_guards_by_an_index(sql: Run) -> None:
    """The foreign key would else read every guard for each pruned job."""
    steps = sql("EXPLAIN QUERY PLAN UPDATE jobq_slot SET job_id = NULL WHERE job_id = 7")
    assert any("jobq_slot_job" in str(step[3]) for step in steps)


@pytest.mark.parametrize(
    ("catch_up", "most"), [pytest.param(CatchUp.ONCE, 1, id="once"), pytest.param(CatchUp.ALL, 5, id="all")]
)
def test_ten_years_cost_a_tick_what_a_few_slots_cost(
    bench: Workbench, meter: Meter, catch_up: CatchUp, most: int
) -> None:
    """The same statements and steps, however many slots were missed."""
    bench.register("a")
    put(bench, every=60.0, catch_up=catch_up, max_catch_up=5)
    bench.clock.advance(60 * 6)
    assert len(meter.measure(lambda: tick(bench, "s"))) == most
    few = meter.steps, len(meter.statements)
    bench.clock.jump(3_650 * DAY)
    assert len(meter.measure(lambda: tick(bench, "s"))) == most

    assert len(meter.statements) == few[1] < 50
    assert meter.steps <= few[0] * SLACK


def test_a_tick_is_one_transaction(bench: Workbench, meter: Meter) -> None:
    """Jobs, guards and next runs of everything that is due are committed together, and synced."""
    for number in range(20):
        put(bench, f"s{number}", entries=(Entry("a"), Entry("b")))
    bench.clock.advance(300)
    names = [f"s{number}" for number in range(20)]
    assert len(meter.measure(lambda: tick(bench, *names))) == 40

    # The first COMMIT and the last BEGIN are the meter's own.
    begins = [text for text in meter.statements if text.startswith(("BEGIN", "COMMIT", "PRAGMA", "SAVEPOINT"))]
    assert begins == ["COMMIT", "PRAGMA synchronous = FULL", "BEGIN IMMEDIATE", "COMMIT", "PRAGMA synchronous = NORMAL",
                      "BEGIN IMMEDIATE"]  # fmt: skip


def test_a_tick_does_not_read_what_waits_or_what_was(bench: Workbench, meter: Meter) -> None:
    """Ten thousand jobs and guards cost it nothing."""
    put(bench, every=60.0)
    bench.clock.advance(60)
    meter.measure(lambda: tick(bench, "s"))
    few = meter.steps
    bench.store.put_schedules([rule("many", entries=[Entry("a")] * 1_000)])
    bench.clock.advance(300)
    tick(bench, "many")
    bench.clock.advance(60)
    meter.measure(lambda: tick(bench, "s"))

    assert meter.steps <= few * SLACK


def test_nothing_due_takes_no_lock(bench: Workbench, meter: Meter) -> None:
    """A look is one statement on a reader, whatever there is to look at."""
    for number in range(50):
        put(bench, f"s{number}", cron=f"{number} 7 * * *", tz="Europe/Berlin")
    bench.clock.advance(1)

    assert meter.measure(bench.store.look_schedules).names == ()
    # What the meter itself does.
    assert meter.statements == ["COMMIT", "BEGIN IMMEDIATE"]
