"""Which commits are synced at which level: the mapping from verbs to the engine's ``sync``."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobq.model.job import Actor
from jobq.model.lease import ClaimRequest, Settlement
from jobq.model.outcome import Released
from jobq.model.runner import RunnerRow
from jobq.store.base import Durability, QueueRow
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.store import SqliteStore
from jobq.testing import FakeClock
from tests.store.bench import LEASE, draft

REQUEST = ClaimRequest(("w",), LEASE)


class Recorder:
    """An engine that notes whether each write asks to be synced."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: list[bool] = []

    def write(self, operation: Any, *, sync: bool, busy_timeout: float) -> Any:
        """Note and pass on."""
        self.asked.append(sync)
        return self._engine.write(operation, sync=sync, busy_timeout=busy_timeout)

    def transaction(self, *, sync: bool, **options: Any) -> Any:
        """Note and pass on."""
        self.asked.append(sync)
        return self._engine.transaction(sync=sync, **options)


@pytest.fixture(scope="module")
def shared_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine for all: only what it is asked matters here."""
    engine = Engine(str(tmp_path_factory.mktemp("durability") / "jobs.db"), feed=lambda changes: None)
    # Opens the handle here, so that no test seems to have left it open.
    engine.write(lambda conn, _: None, sync=False, busy_timeout=1)
    yield engine
    engine.close()


@pytest.fixture
def recorder(shared_engine: Engine) -> Recorder:
    """A recorder around the engine."""
    return Recorder(shared_engine)


def _runner(store: SqliteStore) -> None:
    now = FakeClock().now()
    store.beat_runner(RunnerRow("r", "h", 1, {}, (), "b", 1.0, now, now))
    store.remove_runner("r")


def _transaction(store: SqliteStore) -> None:
    with store.transaction(on_commit=lambda: None, on_blocked=lambda: None):
        pass


#: Verbs whose caller was told something: synced at "balanced".
ACKNOWLEDGED: dict[str, Callable[[SqliteStore], object]] = {
    "register": lambda store: store.register([], [QueueRow("mail")], []),
    "enqueue": lambda store: store.enqueue([draft()]),
    "claim": lambda store: store.claim(REQUEST, durable=True),
    "settle": lambda store: store.settle([Settlement(1, "t", Released())], durable=True),
    "settle-and-claim": lambda store: store.settle_and_claim([], REQUEST, durable=True),
    "extend": lambda store: store.extend([(1, "t")], durable=True),
    "cancel": lambda store: store.cancel([1]),
    "requeue": lambda store: store.requeue([1], queue=None, actor=Actor.USER, dry_run=False),
    "retire": lambda store: store.retire(["a"]),
    "pause": lambda store: store.pause("default", who=None, why=None),
    "resume": lambda store: store.resume("default"),
    "transaction": _transaction,
}
#: What "at least once" covers: left unsynced at "balanced".
COVERED: dict[str, Callable[[SqliteStore], object]] = {
    "claim": lambda store: store.claim(REQUEST, durable=False),
    "settle": lambda store: store.settle([Settlement(1, "t", Released())], durable=False),
    "settle-and-claim": lambda store: store.settle_and_claim([], REQUEST, durable=False),
    "extend": lambda store: store.extend([(1, "t")], durable=False),
    "reclaim": lambda store: store.reclaim(hold_expired=False),
    "move-due-times": lambda store: store.move_due_times(since=FakeClock().now(), stepped_back=1.0),
    "runner": _runner,
}


def _asked(recorder: Recorder, durability: Durability, verb: Callable[[SqliteStore], object]) -> set[bool]:
    store = SqliteStore(
        recorder,  # type: ignore[arg-type]
        now=FakeClock().now,
        roll=lambda: 0.0,
        durability=durability,
        busy_timeout=1.0,
        close=lambda: None,
    )
    verb(store)
    return set(recorder.asked)


@pytest.mark.parametrize("verb", ACKNOWLEDGED)
def test_what_was_acknowledged_is_synced_at_balanced(recorder: Recorder, verb: str) -> None:
    """A power cut does not undo what somebody was told."""
    assert _asked(recorder, Durability.BALANCED, ACKNOWLEDGED[verb]) == {True}


@pytest.mark.parametrize("verb", COVERED)
def test_what_at_least_once_covers_is_not_synced_at_balanced(recorder: Recorder, verb: str) -> None:
    """The job runs again."""
    assert _asked(recorder, Durability.BALANCED, COVERED[verb]) == {False}


@pytest.mark.parametrize("verb", [*ACKNOWLEDGED.values(), *COVERED.values()])
def test_full_syncs_everything_and_relaxed_nothing(recorder: Recorder, verb: Callable[[SqliteStore], object]) -> None:
    """Whatever the caller says."""
    assert _asked(recorder, Durability.FULL, verb) == {True}
    recorder.asked.clear()
    assert _asked(recorder, Durability.RELAXED, verb) == {False}
