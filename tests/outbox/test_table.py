"""The statements of the outbox are constant, served by its indexes, and its texts carry whole drafts."""

import ast
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

import jobq
from jobq.model.draft import Draft
from jobq.outbox import envelope, table
from jobq.outbox.table import DEFINITIONS, FORMAT, QMARK, Dialect

FOLDER = Path(table.__file__).parent
#: What has to look at no row that it does not answer with.
SERVED = {
    "fresh": "jobq_outbox_waiting",
    "again": "jobq_outbox_waiting",
    "ahead": "jobq_outbox_waiting",
    "next_retry": "jobq_outbox_waiting",
    "failing": "jobq_outbox_waiting",
    "done": "jobq_outbox_done",
    "mark": "uid",
    "refuse": "uid",
    "delete": "uid",
}
WHOLE = Draft(
    kind="mail",
    queue="q",
    payload='{"a":"\u00e4\\u0000"}',
    priority=-3,
    max_attempts=4,
    max_deferrals=5,
    run_at=datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    dedupe_key="k",
    parent_id=6,
    actor="agent",
    tenant_id="t",
    subject="s",
    meta='{"m":1}',
    schedule="n",
    slot=datetime(2024, 1, 1, tzinfo=UTC),
    catch_up=True,
)


@pytest.fixture
def sqlite_table() -> Iterator[sqlite3.Connection]:
    """The table in memory."""
    connection = sqlite3.connect(":memory:")
    for statement in DEFINITIONS[Dialect.SQLITE]:
        connection.execute(statement)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", SERVED)
def test_sqlite_serves_each_statement_by_an_index(sqlite_table: sqlite3.Connection, name: str) -> None:
    """It reads no row that it does not answer with, and sorts nothing."""
    statement = getattr(QMARK, name)
    steps = sqlite_table.execute(f"EXPLAIN QUERY PLAN {statement}", (0,) * statement.count("?")).fetchall()
    text = " / ".join(step[3] for step in steps)

    assert "SEARCH" in text
    assert SERVED[name] in text or "sqlite_autoindex" in text
    assert "TEMP B-TREE" not in text


@pytest.mark.parametrize("name", SERVED)
def test_postgresql_serves_each_statement_by_an_index(postgres_dsn: str, name: str) -> None:
    """The same there, once the planner is kept from reading small tables as a whole."""
    statement = getattr(FORMAT, name)
    values = ["0" if part in ("uid", "refuse") else 0 for part in [name] * statement.count("%s")]
    with psycopg.connect(postgres_dsn) as connection:
        for definition in DEFINITIONS[Dialect.POSTGRESQL]:
            connection.execute(definition)
        connection.execute("SET LOCAL enable_seqscan = off")
        connection.execute("SET LOCAL enable_bitmapscan = off")
        typed = statement.replace("uid = %s", "uid = '0'").replace("error = %s", "error = ''")
        steps = connection.execute(f"EXPLAIN {typed}", values[: typed.count("%s")]).fetchall()
        connection.rollback()
    text = " / ".join(str(step[0]) for step in steps)

    assert SERVED[name] in text, text
    assert "Seq Scan" not in text


def test_a_draft_comes_back_whole() -> None:
    """Every field is told, but for the delay, which has become an instant, and how the queue was found."""
    blank = Draft("k", None, "1", None, None, run_at=WHOLE.run_at)

    resolved = ("delay", "queue_of_kind")
    flags = {name: True for name, default in Draft._field_defaults.items() if default is False}
    whole = WHOLE._replace(**flags)._replace(queue_of_kind=False)
    assert all(value not in (None, False) for name, value in whole._asdict().items() if name not in resolved)
    assert envelope.read(envelope.write(whole)) == whole
    assert envelope.read(envelope.write(blank)) == blank


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="no object"),
        pytest.param('{"kind":"k","payload":"1","run_at":"2024-01-01T00:00:00+00:00"}', id="no version"),
        pytest.param('{"v":1,"kind":"k","payload":"1"}', id="field missing"),
        pytest.param('{"v":1,"kind":"k","payload":"1","run_at":"2024-01-01T00:00:00+00:00","new":1}', id="unknown"),
        pytest.param('{"v":1,"kind":"k","payload":"1","run_at":"2024-01-01T00:00:00"}', id="naive"),
        pytest.param('{"v":1,"kind":"k","payload":"1","run_at":5}', id="no instant"),
        pytest.param('{"v":1,"kind":"k","payload":{},"run_at":"2024-01-01T00:00:00+00:00"}', id="payload no text"),
        pytest.param('{"v":1,"kind":"k","payload":"{","run_at":"2024-01-01T00:00:00+00:00"}', id="payload no JSON"),
        pytest.param('{"v":1,"kind":"","payload":"1","run_at":"2024-01-01T00:00:00+00:00"}', id="empty kind"),
        pytest.param(
            '{"v":1,"kind":"k","payload":"1","run_at":"2024-01-01T00:00:00+00:00","meta":"[]"}', id="meta no object"
        ),
        pytest.param(
            '{"v":1,"kind":"k","payload":"1","run_at":"2024-01-01T00:00:00+00:00","catch_up":1}', id="no flag"
        ),
    ],
)
def test_a_text_that_was_broken_is_refused(text: str) -> None:
    """With a fix, and without anything of it."""
    with pytest.raises((jobq.ArgumentError, jobq.PayloadError)) as caught:
        envelope.read(text)

    assert caught.value.fix


def test_statements_are_constants() -> None:
    """Nothing of the outbox puts a statement together from values."""
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                text = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
                assert not any(word in text for word in ("SELECT", "INSERT", "UPDATE", "DELETE")), (file.name, text)
