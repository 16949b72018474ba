"""The database knows the rules too: a row that breaks one cannot be written, whoever tries."""

from collections.abc import Callable
from typing import Any

import apsw
import pytest

from jobq.model.outcome import Failed
from jobq.store.sqlite.store import SqliteStore
from tests.store.bench import Workbench

Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def sql(bench: Workbench) -> Run:
    """Run one statement on the writer's connection, in a transaction of its own."""
    store = bench.store
    assert isinstance(store, SqliteStore)

    def run(statement: str, *bindings: object) -> list[tuple[Any, ...]]:
        return store.engine.write(
            lambda conn, _: conn.execute(statement, bindings).fetchall(),
            sync=False,
            busy_timeout=1,
        )

    return run


def test_every_table_is_strict_and_has_the_prefix(sql: Run) -> None:
    """Hosts keep their own tables in the same file."""
    tables = sql("SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT GLOB 'sqlite_*'")
    assert {name for name, _ in tables} >= {"jobq_job", "jobq_kind", "jobq_queue", "jobq_run", "jobq_change"}
    assert [name for name, strict in tables if not strict or not name.startswith("jobq_")] == []
    indexes = sql("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    assert [name for (name,) in indexes if not name.startswith("jobq_")] == []


@pytest.mark.parametrize(
    "change",
    [
        "state = 'paused'",
        "state = NULL",
        "kind = ''",
        "kind = NULL",
        "queue = NULL",
        "priority = 1001",
        "priority = -1001",
        "priority = 1.5",
        "priority = 'high'",
        "actor = 'nobody'",
        "dedupe_key = ''",
        "dedupe_key = printf('%.513c', 'k')",
        "attempts = -1",
        "deferrals = -1",
        "max_attempts = NULL",
        "run_at = NULL",
        "run_at = 'tomorrow'",
        "failure_class = 'odd'",
        "lease_held = 2",
        "created_at = NULL",
        "parent_id = 12345",
    ],
)
def test_no_column_takes_a_value_out_of_its_range(bench: Workbench, sql: Run, change: str) -> None:
    """The row stays as it was."""
    job_id = bench.enqueue()
    before = bench.get(job_id)
    with pytest.raises(apsw.ConstraintError):
        sql(f"UPDATE jobq_job SET {change} WHERE id = ?", job_id)
    assert bench.get(job_id) == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("state = 'running'", id="running-without-a-lease"),
        pytest.param("state = 'running', token = 't', worker = 'w', lease_until = 1", id="running-without-a-length"),
        pytest.param("state = 'running', token = 't', lease_until = 1, lease_length = 1", id="running-without-worker"),
        pytest.param("state = 'running', worker = 'w', lease_until = 1, lease_length = 1", id="running-without-token"),
        pytest.param("state = 'running', token = 't', worker = 'w', lease_length = 1", id="running-without-end"),
        pytest.param("token = 't'", id="queued-with-a-token"),
        pytest.param("worker = 'w'", id="queued-with-a-worker"),
        pytest.param("lease_until = 1", id="queued-with-a-lease"),
        pytest.param("lease_length = 1", id="queued-with-a-length"),
        pytest.param("lease_held = 1", id="queued-with-a-held-lease"),
        pytest.param("cancel_requested_at = 1", id="queued-with-a-cancel-request"),
        pytest.param("finished_at = 1", id="queued-and-finished"),
        pytest.param("state = 'succeeded'", id="succeeded-without-a-finish"),
        pytest.param("state = 'failed'", id="failed-without-a-finish"),
        pytest.param("state = 'cancelled'", id="cancelled-without-a-finish"),
        pytest.param("state = 'failed', finished_at = 1, token = 't'", id="failed-with-a-token"),
        pytest.param("state = 'cancelled', finished_at = 1, cancel_requested_at = 1", id="cancelled-with-a-request"),
    ],
)
def test_a_queued_row_cannot_be_made_half_of_something_else(bench: Workbench, sql: Run, change: str) -> None:
    """State, lease and finish go together."""
    job_id = bench.enqueue()
    with pytest.raises(apsw.ConstraintError):
        sql(f"UPDATE jobq_job SET {change} WHERE id = ?", job_id)


@pytest.mark.parametrize("column", ["token", "worker", "lease_until", "lease_length"])
def test_a_running_row_cannot_lose_a_part_of_its_lease(bench: Workbench, sql: Run, column: str) -> None:
    """All of it or none of it."""
    claim = bench.start()
    with pytest.raises(apsw.ConstraintError):
        sql(f"UPDATE jobq_job SET {column} = NULL WHERE id = ?", claim.id)


@pytest.mark.parametrize("state", ["queued", "succeeded"])
def test_a_running_row_cannot_leave_with_its_lease(bench: Workbench, sql: Run, state: str) -> None:
    """Every way out clears it."""
    claim = bench.start()
    with pytest.raises(apsw.ConstraintError):
        sql("UPDATE jobq_job SET state = ? WHERE id = ?", state, claim.id)


def test_two_live_jobs_cannot_have_one_key(bench: Workbench, sql: Run) -> None:
    """Not by an insert, not by an update, not by reviving an ended one; two ended ones can."""
    first = bench.enqueue(dedupe_key="k")
    other = bench.enqueue()
    with pytest.raises(apsw.ConstraintError):
        sql("UPDATE jobq_job SET dedupe_key = 'k' WHERE id = ?", other)
    bench.cancel(first)
    second = bench.enqueue(dedupe_key="k")
    with pytest.raises(apsw.ConstraintError):
        sql("UPDATE jobq_job SET state = 'queued', finished_at = NULL WHERE id = ?", first)
    bench.cancel(second)
    sql("UPDATE jobq_job SET priority = 1 WHERE dedupe_key = 'k'")


def test_an_id_is_never_used_twice(bench: Workbench, sql: Run) -> None:
    """Also when the newest rows are gone; a plain rowid would come back."""
    ids = [bench.enqueue() for _ in range(3)]
    sql("DELETE FROM jobq_job")
    assert bench.enqueue() == ids[-1] + 1


def test_what_belongs_to_a_job_goes_with_it(bench: Workbench, sql: Run) -> None:
    """Large texts and history; children lose the parent and stay, the change log stays."""
    parent = bench.enqueue(payload='"' + "x" * 5000 + '"')
    child = bench.enqueue(parent_id=parent, delay=60)
    bench.requeue(parent)
    (claim,) = bench.claim()
    bench.settle(claim, Failed(error="x", retryable=False))
    assert len(sql("SELECT * FROM jobq_payload")) == 1
    assert len(bench.store.history(parent)) == 1
    sql("DELETE FROM jobq_job WHERE id = ?", parent)
    assert sql("SELECT * FROM jobq_payload") == []
    assert bench.store.history(parent) == []
    assert bench.get(child).parent_id is None
    assert len(bench.store.changes(job_id=parent, limit=9)) == 1


