"""Every SQL statement of the store: constant, free of clocks and patterns, compiled, and served by an index."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import combinations
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

import apsw
import pytest

from jobq.model.job import JobState
from jobq.store import sqlite
from jobq.store.base import Filter
from jobq.store.sqlite import lookup
from jobq.store.sqlite.engine import Engine

T = TypeVar("T")

FOLDER = Path(next(iter(sqlite.__path__)))
MODULES = sorted(module.name for module in iter_modules(sqlite.__path__) if not module.ispkg)
#: The only place where a statement may be put together at the call, from a fixed table of constants.
COMPOSING = {("lookup", name) for name in ("_where", "_fragments", "find", "matching", "still", "count")}
#: Parts of statements, which compile only together with others.
PARTS = {
    "lanes.LANES",
    "lanes.OPEN",
    "lookup.FIND",
    "lookup.FIND_PAGE",
    "lookup.FIND_PAGE_OF_STATE",
    "lookup.COUNT",
    "lookup.MATCHING",
    "lookup.MATCHING_PAGE",
    "lookup.MATCHING_PAGE_OF_STATE",
    "lookup.STILL",
    "rows.INFO_COLUMNS",
    "rows.JOB_COLUMNS",
    "rows.FACT_COLUMNS",
}
#: Partial indexes that are small by nature: what runs, and what of it was asked to cancel.
SMALL = {"jobq_job_lease", "jobq_job_cancel"}
#: What may read all queued rows: the clock was set back, which is rare.
RARE = {"reschedule.MOVE_DUE_TIMES"}
#: Listings by these alone walk the ids from the newest on, until the page is full.
WALKED = {"kind", "queue", "before", "older_than", "newer_than"}
_VERB = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|DROP|SAVEPOINT|ROLLBACK|RELEASE|PRAGMA|BEGIN)\b")


def constants() -> Iterator[tuple[str, str]]:
    """Yield the name and text of each SQL constant of the store."""
    for module in MODULES:
        for name, value in vars(import_module(f"{sqlite.__name__}.{module}")).items():
            full = f"{module}.{name}"
            if name.isupper() and isinstance(value, str) and (_VERB.match(value) or full in PARTS):
                yield full, value


STATEMENTS = {name: text for name, text in constants() if name not in PARTS}


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Callable[[apsw.Connection], T]], T]]:
    """Run a function on the connection that verbs use, with its settings; nothing is written."""
    engine = Engine(str(tmp_path_factory.mktemp("statements") / "jobs.db"), feed=lambda changes: None)

    def run(read: Callable[[apsw.Connection], T]) -> T:
        return engine.write(lambda conn, _: read(conn), sync=False, busy_timeout=1)

    # Opens the handle here, so that no test seems to have left it open.
    run(lambda conn: None)
    yield run
    engine.close()


def plan(conn: apsw.Connection, statement: str, bindings: Any = None) -> list[str]:
    """Return the steps of a statement's plan."""
    if bindings is None:
        named = re.search(r":[a-z]", statement)
        bindings = defaultdict(lambda: None) if named else (None,) * statement.count("?")
    return [str(step[3]) for step in conn.execute(f"EXPLAIN QUERY PLAN {statement}", bindings).fetchall()]


def scans(statement: str, steps: list[str]) -> list[str]:
    """Return the steps that read all of the job table, or all of an index that grows with it."""
    names = {"jobq_job", *re.findall(r"jobq_job AS (\w+)", statement)}
    found = []
    for step in steps:
        scan = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", step)
        if scan and scan[1] in names and scan[2] not in SMALL:
            found.append(step)
    return found


def test_the_statements_are_found() -> None:
    """The guards below look at something."""
    found = set(STATEMENTS)
    assert {"claim.START", "lanes.HEADS", "settle.WRITE", "enqueue.INSERT", "requeue.WRITE"} <= found
    assert {name for name, _ in constants()} >= PARTS


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_the_job_table(writer: Callable[..., Any], name: str) -> None:
    """Each compiles against the schema; seeks grow with the answer, scans with the backlog."""
    statement = STATEMENTS[name]
    steps = writer(lambda conn: plan(conn, statement))
    assert bool(scans(statement, steps)) == (name in RARE)


@pytest.mark.parametrize("state", [None, *JobState])
def test_no_filter_of_a_listing_scans_the_job_table(writer: Callable[..., Any], state: JobState | None) -> None:
    """Alone and in pairs. A state reads the index of that state; kind or queue alone walk from the newest id."""

    def look(conn: apsw.Connection) -> None:
        page = lookup.FIND_PAGE if state is None else lookup.FIND_PAGE_OF_STATE
        for fields in [*combinations(lookup.FRAGMENTS, 1), *combinations(lookup.FRAGMENTS, 2)]:
            where, bindings = lookup._where(Filter(**dict.fromkeys(fields, 1), state=state))  # type: ignore[arg-type]
            statement = lookup.FIND + where + page
            steps = [step for step in plan(conn, statement, (*bindings, 50)) if "jobq_job_lane" not in step]
            if state is not None or not set(fields) <= WALKED:
                assert scans(statement, steps) == [], (fields, state)

    writer(look)


@pytest.mark.parametrize("state", [None, *JobState])
def test_what_still_matches_is_looked_up_by_id(writer: Callable[..., Any], state: JobState | None) -> None:
    """A batch costs its own jobs, whatever else matches."""

    def look(conn: apsw.Connection) -> None:
        for fields in [*combinations(lookup.FRAGMENTS, 1), *combinations(lookup.FRAGMENTS, 2)]:
            fragments, bindings = lookup._fragments(Filter(**dict.fromkeys(fields, 1), state=state))  # type: ignore[arg-type]
            steps = plan(conn, lookup.STILL + " AND ".join(fragments), ("[]", *bindings))
            assert any("rowid=?" in step for step in steps), (fields, steps)

    writer(look)


def test_counting_reads_indexes_alone(writer: Callable[..., Any]) -> None:
    """By kind and queue, no row of the table is touched."""

    def look(conn: apsw.Connection) -> None:
        for fields, fragment in [
            (fields, fragment)
            for fields in [(), ("kind",), ("queue",), ("kind", "queue")]
            for fragment in lookup.STATE_FRAGMENTS.values()
        ]:
            where, bindings = lookup._where(Filter(**dict.fromkeys(fields, 1)))  # type: ignore[arg-type]
            condition = f"{where} AND {fragment}" if where else f" WHERE {fragment}"
            steps = plan(conn, lookup.COUNT + condition, bindings)
            assert all("COVERING INDEX" in step for step in steps), steps

    writer(look)


@pytest.mark.parametrize("name", [name for name, _ in constants()])
def test_no_statement_asks_the_database_for_the_time_or_matches_patterns(name: str) -> None:
    """now is an argument, so that a fake clock rules; and users' texts are no patterns."""
    text = dict(constants())[name].upper()
    for word in (r"\bDATETIME\s*\(", r"\bDATE\s*\(", r"\bTIME\s*\(", "STRFTIME", "UNIXEPOCH", "JULIANDAY", "CURRENT_"):
        assert not re.search(word, text)
    assert not re.search(r"\b(LIKE|GLOB|REGEXP|MATCH)\b", text)


def _function_of(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                yield node.name, inner


def _is_sql(node: ast.AST) -> bool:
    """Tell whether an expression holds a piece of SQL: a literal that looks like it, or the name of a constant."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            if re.search(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|ORDER BY|PRAGMA|AND)\b", part.value):
                return True
        elif isinstance(part, ast.Name) and part.id.isupper() and part.id in _SQL_NAMES:
            return True
    return False


_SQL_NAMES = {name.split(".")[1] for name, _ in constants()} | {"FRAGMENTS", "STATE_FRAGMENTS"}


@pytest.mark.parametrize("module", MODULES)
def test_no_function_composes_sql(module: str) -> None:
    """No f-string, no +, no %, no join and no format at the call, but from the fixed table of the listing."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    for function, node in _function_of(tree):
        composed = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod)
        )
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in ("format", "join"):  # type: ignore[attr-defined]
            composed = True
        if composed and _is_sql(node) and (module, function) not in COMPOSING | SETTINGS:
            pytest.fail(f"{module}.{function}, line {node.lineno}, composes SQL")  # type: ignore[attr-defined]


#: Pragmas take no bindings; what is appended is a constant of the code.
SETTINGS = {("connection", "_set")}


@pytest.mark.parametrize("module", MODULES)
def test_a_statement_is_a_constant_where_it_is_executed(module: str) -> None:
    """What execute() gets is the name of a constant, a short literal without values, or a parameter."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    for function, node in _function_of(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr in ("execute", "executemany"):
            allowed = isinstance(node.args[0], ast.Name | ast.Attribute | ast.Constant | ast.IfExp)
            assert allowed or (module, function) in COMPOSING | SETTINGS, (module, function, node.lineno)
