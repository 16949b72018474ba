"""What does a tick of the schedules cost: with nothing due, with one slot due, and when it is ten years behind?

A hundred schedules in one database for the first two, half of them cron expressions in a zone. For the last two each
round adds a schedule, moves the clock by ten years, ticks, and goes back.
"""

import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.report import Figure, Report
from jobq.model.entries import Entry, write_entries
from jobq.model.schedule import CatchUp
from jobq.model.scheduled import Rule
from jobq.store import open_store
from jobq.store.base import Store

SCHEDULES, ROUNDS, WARM_UP = 100, 200, 20
YEARS = timedelta(days=3_652)
START = datetime(2024, 1, 1, tzinfo=UTC)
LIMIT_MS = 50.0


class Clock:
    """A wall clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        """Return the time."""
        return self.time


def run() -> Report:
    """Measure the three, and hold the last one against its limit."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in (
            (f"{SCHEDULES} schedules, nothing due", _idle),
            ("one slot due", _due),
            ("ten years behind, once", lambda store, clock: _behind(store, clock, CatchUp.ONCE)),
            ("ten years behind, all, at most 5", lambda store, clock: _behind(store, clock, CatchUp.ALL)),
        ):
            clock = Clock()
            store = _open(Path(folder) / f"{len(figures)}.db", clock)
            figures.append(Figure(name=name, unit="ms", samples=measure(store, clock)[WARM_UP:]))
            store.close()
    slowest = max(sample for figure in figures[2:] for sample in figure.samples)
    return Report(
        question="One tick: a look on a reader and, where something is due, a synced transaction",
        figures=figures,
        ratios=[("slowest tick that is ten years behind, ms", slowest, f"under {LIMIT_MS:g}")],
    )


def _open(path: Path, clock: Clock) -> Store:
    store = open_store(str(path), now=clock.now, roll=random.random, feed=lambda changes: None)
    rules = [
        _rule(f"s{number}", cron=f"{number % 60} 7 * * mon-fri", tz="Europe/Berlin")
        if number % 2
        else _rule(f"s{number}", every=86_400.0 * 20)
        for number in range(SCHEDULES)
    ]
    store.put_schedules(rules)
    return store


def _rule(name: str, **fields: Any) -> Rule:
    defaults: dict[str, Any] = {
        "cron": None, "every": None, "tz": "UTC", "anchor": START, "catch_up": CatchUp.ONCE, "max_catch_up": 5,
        "jitter": 0.0, "queue": None, "priority": None, "module": None,
    }  # fmt: skip
    return Rule(**{**defaults, **fields, "name": name, "entries": write_entries([Entry("a")])})


def _tick(store: Store) -> int:
    names = store.look_schedules().names
    return len(store.tick_schedules(names, attempts=lambda kind: None).dispatched) if names else 0


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1_000


def _idle(store: Store, clock: Clock) -> list[float]:
    clock.time += timedelta(seconds=1)
    assert _tick(store) == 0
    return [_timed(lambda: _tick(store)) for _ in range(WARM_UP + ROUNDS)]


def _due(store: Store, clock: Clock) -> list[float]:
    store.put_schedules([_rule("due", every=1.0)])
    samples = []
    for _ in range(WARM_UP + ROUNDS):
        clock.time += timedelta(seconds=1)
        samples.append(_timed(lambda: _tick(store)))
    return samples


def _behind(store: Store, clock: Clock, catch_up: CatchUp) -> list[float]:
    for number in range(SCHEDULES):
        store.remove_schedule(f"s{number}")
    samples = []
    for turn in range(WARM_UP + ROUNDS):
        clock.time = START
        rule = _rule(f"behind{turn}", cron="*/5 * * * *", tz="Europe/Berlin", catch_up=catch_up)
        store.put_schedules([rule])
        clock.time = START + YEARS
        made: list[int] = []
        samples.append(_timed(lambda made=made: made.append(_tick(store))))  # type: ignore[misc]
        assert made == [5 if catch_up is CatchUp.ALL else 1]
        store.remove_schedule(rule.name)
    return samples
