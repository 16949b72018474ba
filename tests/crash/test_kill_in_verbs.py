"""Each verb, killed before each of its SQL statements: all of a transaction is there or nothing of it."""

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

import jobq
from jobq.errors import JobqError, StoreError
from tests.conftest import ErrorLog
from tests.crash.test_kill_at_tick import in_child
from tests.crash.test_kill_in_transaction import is_sound
from tests.crash.verbs import VERBS, dump, nothing_carried, open_world, prepare

#: A short run dies before so many statements of each verb, chosen by the verb's name.
SHORT = 1


@contextmanager
def tracing(tell: Callable[[], object]) -> Iterator[None]:
    """Call a function before each statement of every connection of this process, and of those that come."""

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        tell()
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    for connection in apsw.connections():
        hook(connection)
    apsw.connection_hooks.append(hook)
    yield
    apsw.connection_hooks.remove(hook)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, jobq.Lease]:
    """A closed file with something for each verb, and the lease that an outside worker holds in it."""
    path = tmp_path_factory.mktemp("template") / "jobs.db"
    return path, prepare(path)


def rehearse(path: Path, lease: jobq.Lease, verb: str) -> list[object]:
    """Carry out a verb; return the rows as others saw them before each of its statements, and at the end."""
    seen: list[object] = []
    looking = False

    def look() -> None:
        nonlocal looking
        if not looking:
            looking = True
            seen.append(dump(path))
            looking = False

    with open_world(path, lease) as world:
        world.warm()
        with tracing(look):
            VERBS[verb](world)
        look()
    return seen


def perform_and_die(path: Path, lease: jobq.Lease, verb: str, number: int) -> None:
    """Carry out a verb, and die before its Nth statement."""
    left = number

    def countdown() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_world(path, lease) as world:
        world.warm()
        with tracing(countdown):
            VERBS[verb](world)


@pytest.mark.parametrize(
    "most", [pytest.param(SHORT, id="short"), pytest.param(None, id="long", marks=pytest.mark.storm)]
)
@pytest.mark.parametrize("verb", VERBS)
def test_b14_a_verb_killed_before_a_statement_is_done_or_not_done(
    template: tuple[Path, jobq.Lease], memory: Path, errors: ErrorLog, verb: str, most: int | None
) -> None:
    """The rows are as they were between two transactions; the file is sound, and the verb can be carried out."""
    path, lease = memory / "jobs.db", template[1]
    shutil.copy(template[0], path)
    states = rehearse(path, lease, verb)
    numbers = range(1, len(states))
    if most is not None and len(numbers) > most:
        numbers = random.Random(verb).sample(numbers, most)
    for number in numbers:
        for old in memory.glob("jobs.db*"):
            old.unlink()
        shutil.copy(template[0], path)
        assert in_child(lambda number=number: perform_and_die(path, lease, verb, number)), "it did not come so far"
        found = dump(path)
        carries = verb == "runner.run_once-transaction" and nothing_carried(found)
        assert found in states or carries, f"something is half done before statement {number}"
        assert is_sound(path)
        with open_world(path, lease) as world, suppress(JobqError):
            try:
                VERBS[verb](world)
            except StoreError as error:
                raise AssertionError(f"not usable after statement {number}") from error
    errors.take()
