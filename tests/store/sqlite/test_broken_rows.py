"""Rows that somebody broke by hand: each harms itself and nobody else."""

from collections.abc import Callable
from typing import Any

import apsw
import pytest

from jobq.errors import JobNotFound, StoreCorrupt
from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.outcome import Failed, Succeeded
from jobq.store.base import Filter
from jobq.store.sqlite.store import SqliteStore
from tests.store.bench import LEASE, Workbench, ids, request

Break = Callable[..., None]

#: What a latin-1 terminal leaves in a text column.
LATIN = "CAST(x'ff41' AS TEXT)"


@pytest.fixture
def damage(bench: Workbench) -> Break:
    """Change a row past every CHECK."""
    store = bench.store
    assert isinstance(store, SqliteStore)

    def run(change: str, job_id: int) -> None:
        def write(conn: apsw.Connection) -> None:
            conn.execute(f"UPDATE jobq_job SET {change} WHERE id = ?", (job_id,))

        def unchecked(on: int) -> None:
            # The pragma acts on the connection, outside transactions too.
            store.engine.write(
                lambda conn, _: conn.execute(f"PRAGMA ignore_check_constraints = {on}").fetchall(),
                sync=False,
                busy_timeout=1,
            )

        unchecked(1)
        store.engine.write(lambda conn, _: write(conn), sync=False, busy_timeout=1)
        unchecked(0)

    return run


BROKEN = {
    "state": "state = 'odd'",
    "meta": "meta = '{'",
    "meta-deep": "meta = printf('%.*c', 200000, '[')",
    "actor": "actor = 'nobody'",
    "class": "failure_class = 'odd'",
    "subject": f"subject = {LATIN}",
    "last-error": f"last_error = {LATIN}",
    "tenant": f"tenant_id = {LATIN}",
    "progress": "progress = 'half'",
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_row_spoils_no_listing(bench: Workbench, damage: Break, change: str) -> None:
    """It is left out; the others are there."""
    one, bad, two = (bench.enqueue() for _ in range(3))
    damage(change, bad)
    found = [job.id for job in bench.store.find(Filter(), limit=None)]
    assert [job_id for job_id in found if job_id != bad] == [two, one]
    assert set(bench.store.get([one, bad, two])) >= {one, two}
    assert bench.store.count(Filter())[JobState.QUEUED] in (2, 3)
    assert bench.store.states([one, two]) == {one: JobState.QUEUED, two: JobState.QUEUED}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_row_spoils_no_claim(bench: Workbench, damage: Break, change: str) -> None:
    """Whoever stands behind it in the lane runs, and so does what can still run of it."""
    bad, good = bench.enqueue(), bench.enqueue()
    damage(change, bad)
    taken = [*bench.claim(), *bench.claim()]
    assert good in ids(taken)
    for claim in taken:
        assert bench.settle(claim, Succeeded()) is Verdict.SUCCEEDED


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_running_row_spoils_no_reclaim(bench: Workbench, damage: Break, change: str) -> None:
    """Other expired leases are taken back by the same call."""
    bad, good = bench.start(), bench.start()
    damage(change, bad.id)
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) >= 1
    assert bench.state(good.id) is JobState.QUEUED
    assert good.id in ids(bench.claim("w", "w"))


@pytest.mark.parametrize("column", ["worker", "token", "kind", "queue"])
def test_an_illegible_lease_spoils_no_claim(bench: Workbench, damage: Break, column: str) -> None:
    """Its row is passed over, with its lease."""
    bad, good = bench.start(), bench.start()
    damage(f"{column} = {LATIN}", bad.id)
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) == 1
    assert ids(bench.claim("w", "w")) == [good.id]


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_row_spoils_no_verb_on_many(bench: Workbench, damage: Break, change: str) -> None:
    """Cancel and requeue go on with the others."""
    bad, good = bench.enqueue(), bench.enqueue()
    damage(change, bad)
    assert bench.store.cancel([bad, good])[good] is Verdict.CANCELLED
    assert good in bench.requeue(bad, good).ids


def test_an_unknown_state_is_left_as_it_is(bench: Workbench, damage: Break) -> None:
    """No verb knows what it means: it is not found, and its row stays."""
    bad = bench.enqueue(dedupe_key="k")
    damage("state = 'odd'", bad)
    assert bench.store.cancel([bad]) == {}
    assert bench.requeue(bad).refused == ((bad, "not found"),)
    assert bench.store.reschedule(bad, run_at=None, delay=1, priority=None) is False
    assert bench.store.states([bad]) == {}
    assert bench.claim() == []
    assert bench.place(dedupe_key="k").created


def test_a_broken_holder_still_holds_its_key(bench: Workbench, damage: Break) -> None:
    """A second enqueue is answered; only the value cannot be shown."""
    bad = bench.enqueue(dedupe_key="k")
    damage("actor = 'nobody'", bad)
    placed = bench.place(dedupe_key="k")
    assert (placed.id, placed.created) == (bad, False)
    with pytest.raises(JobNotFound):
        placed.load()


@pytest.mark.parametrize(
    ("payload", "seen"),
    [
        pytest.param("'{\"a\": '", '{"a": ', id="cut"),
        pytest.param("''", "", id="empty"),
        pytest.param("NULL", "", id="gone"),
        pytest.param(LATIN, "", id="latin"),
        pytest.param("'\"ok' || CAST(x'ff' AS TEXT) || '\"'", "", id="latin-inside"),
    ],
)
def test_b24_a_broken_payload_is_claimed_as_it_is(bench: Workbench, damage: Break, payload: str, seen: str) -> None:
    """Its run will refuse it: never an altered payload; meanwhile it is shown as None."""
    bad = bench.enqueue()
    damage(f"payload = {payload}", bad)
    (claim,) = bench.claim()
    assert (claim.id, claim.payload) == (bad, seen)
    assert bench.get(bad).payload is None
    assert bench.settle(claim, Failed(error="PayloadError", retryable=False)) is Verdict.FAILED


def test_a_row_edited_beyond_its_attempts_fails_alone(bench: Workbench, damage: Break) -> None:
    """The jobs behind it are claimed in the same call."""
    bad, good = bench.enqueue(), bench.enqueue()
    damage("attempts = 99", bad)
    assert ids(bench.claim()) == [good]
    job = bench.get(bad)
    assert (job.state, job.failure_reason, job.attempts) == (JobState.FAILED, "attempts_exhausted", 99)


def test_a_run_without_attempts_is_never_counted_below_zero(bench: Workbench, damage: Break) -> None:
    """Edited while it ran."""
    claim = bench.start()
    damage("attempts = 0", claim.id)
    assert bench.settle(claim, Failed(error="x")) is Verdict.RETRIED
    assert bench.get(claim.id).attempts == 0


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63)])
def test_times_beyond_the_calendar_are_shown_as_its_end(bench: Workbench, damage: Break, time: int) -> None:
    """And disturb neither claims nor looks."""
    bad, good = bench.enqueue(), bench.enqueue(priority=40)
    damage(f"run_at = {time}", bad)
    assert bench.get(bad).run_at.year == (9999 if time > 0 else 1)
    assert bench.store.look(request()).ready == {"default"}
    assert good in ids(bench.claim("w", "w"))


def test_a_broken_retry_policy_spoils_no_listing_of_kinds(bench: Workbench) -> None:
    """The kind is shown without it."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    bench.register("a")
    bench.register("b")
    store.engine.write(
        lambda conn, _: conn.execute("UPDATE jobq_kind SET retry = '{' WHERE name = 'a'").fetchall(),
        sync=False,
        busy_timeout=1,
    )
    assert [(kind.name, kind.retry) for kind in store.kinds()] == [("a", {}), ("b", {})]


def test_a_failed_row_with_an_illegible_history_still_has_one(bench: Workbench) -> None:
    """Its other lines are read."""
    claim: Any = bench.start()
    bench.settle(claim, Failed(error="one"))
    bench.clock.advance(10)
    bench.settle(bench.claim()[0], Failed(error="two"))
    store = bench.store
    assert isinstance(store, SqliteStore)
    store.engine.write(
        lambda conn, _: conn.execute("UPDATE jobq_run SET class = 'odd' WHERE number = 1").fetchall(),
        sync=False,
        busy_timeout=1,
    )
    assert [run.error for run in store.history(claim.id)] == ["two"]


@pytest.mark.parametrize("table", ["jobq_queue", "jobq_kind"])
def test_a_queue_or_kind_with_a_text_that_is_no_text_hides_no_other(bench: Workbench, table: str) -> None:
    """It is left out of the listings, and what is claimable is claimed."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    bench.register("a")
    job_id = bench.enqueue()
    columns, values = ("name", LATIN) if table == "jobq_queue" else ("name, queue", f"{LATIN}, 'default'")
    store.engine.write(
        lambda conn, _: conn.execute(f"INSERT INTO {table} ({columns}) VALUES ({values})").fetchall(),
        sync=False,
        busy_timeout=1,
    )

    assert [queue.name for queue in store.queues()] == ["default"]
    assert [kind.name for kind in store.kinds(None)] == ["a"]
    assert ids(bench.claim("w")) == [job_id]


def test_a_schema_that_was_damaged_is_corrupt(bench: Workbench) -> None:
    """Our statements compile on a file that is whole: one that does not is a typed error, not a bug's."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    store.engine.write(
        lambda conn, _: conn.execute("ALTER TABLE jobq_change RENAME TO gone").fetchall(), sync=False, busy_timeout=1
    )

    with pytest.raises(StoreCorrupt, match="jobq_change"):
        store.changes(job_id=None, limit=1)
