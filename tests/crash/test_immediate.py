"""B02: no verb begins as a reader and then writes, which SQLite refuses at once whatever the busy timeout."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import jobq
from tests.conftest import ErrorLog
from tests.crash.verbs import VERBS, open_world, prepare

#: Keywords that make a statement one that writes; ``WITH`` may stand before them.
WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, jobq.Lease]:
    """A closed file with something for each verb, and the lease that an outside worker holds in it."""
    path = tmp_path_factory.mktemp("template") / "jobs.db"
    return path, prepare(path)


@pytest.fixture
def told() -> Iterator[list[tuple[int, str]]]:
    """Every statement of every connection of this process: which connection, and its text."""
    found: list[tuple[int, str]] = []

    def hook(connection: apsw.Connection) -> None:
        def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
            found.append((id(connection), statement.strip()))
            return True

        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    yield found
    apsw.connection_hooks.remove(hook)


@pytest.mark.parametrize("verb", VERBS)
def test_b02_a_verb_that_writes_began_with_the_lock(
    template: tuple[Path, jobq.Lease], tmp_path: Path, told: list[tuple[int, str]], errors: ErrorLog, verb: str
) -> None:
    """Before each writing statement the last BEGIN of its connection is IMMEDIATE."""
    shutil.copy(template[0], tmp_path / "jobs.db")
    with open_world(tmp_path / "jobs.db", template[1]) as world:
        world.warm()
        VERBS[verb](world)

    begun: dict[int, str] = {}
    written = 0
    for connection, statement in told:
        words = statement.upper().split()
        if words[0] == "BEGIN":
            begun[connection] = " ".join(words[:2])
        elif any(word in WRITING for word in words) and words[0] not in ("SELECT", "PRAGMA"):
            written += 1
            assert begun[connection] == "BEGIN IMMEDIATE", statement
    assert written, "not even the registration was seen"
    errors.take()
