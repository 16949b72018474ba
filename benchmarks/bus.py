"""What does publishing cost: to three streams that are read, and a committed change when nobody listens, or in the log?

The floor is three bare ``queue.Queue`` objects, put into and read in the same way. Rounds of all figures alternate, so
that what else the machine does falls on each of them.
"""

import queue
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime

import attrs

from benchmarks.report import Figure, Report
from jobq.bus import Bus
from jobq.model.events import Change, Event, JobStateChanged
from jobq.model.job import JobState
from jobq.model.redact import Redactor
from jobq.observe.eventlogs import EventLogs
from jobq.observe.rotating import BACKUPS, MAX_BYTES

#: Events in a batch, which fits into a stream; batches in a round; rounds.
BATCH, BATCHES, ROUNDS, WARM_UP = 200, 10, 60, 5
STREAMS = 3
#: Changes that one transaction of a busy worker makes.
GROUP = 20
LIMIT = 1.5
NOW = datetime(2024, 1, 1, tzinfo=UTC)
CHANGE = Change(7, "mail", "default", JobState.QUEUED, JobState.RUNNING, 1, None, NOW)


@attrs.frozen(kw_only=True)
class Counted(Event):
    """What is published."""

    number: int


def run() -> Report:
    """Measure them in turn, and hold the streams against the floor."""
    with tempfile.TemporaryDirectory() as folder:
        return _report(_measure(folder))


def _measure(folder: str) -> list[Figure]:
    measures = {
        f"{STREAMS} bare queue.Queue, put and got": _queues(),
        f"published to {STREAMS} streams, and got": _published(),
        f"a change told to {STREAMS} streams, and got": _changed(),
        "a change, and nobody listens": _unheard(),
        "a change, and one listener": _heard(),
        f"a change of {GROUP} at once, written to the event log": _logged(folder),
    }
    samples: dict[str, list[float]] = {name: [] for name in measures}
    for turn in range(WARM_UP + ROUNDS):
        for name, measure in measures.items():
            taken = _timed(measure)
            if turn >= WARM_UP:
                samples[name].append(taken)
    return [Figure(name=name, unit="µs an event", samples=taken) for name, taken in samples.items()]


def _report(figures: list[Figure]) -> Report:
    floor, published, changed, unheard, *_ = (figure.median for figure in figures)
    return Report(
        question=f"One event: {STREAMS} streams against {STREAMS} queues, and what it costs when nobody listens",
        figures=figures,
        ratios=[
            ("published to streams / bare queues", published / floor, f"at most {LIMIT:g}"),
            ("a change told to streams / bare queues", changed / floor, "its event is built once, by the first reader"),
            ("a change, and nobody listens / bare queues", unheard / floor, "the ring alone"),
        ],
    )


def _timed(measure: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(BATCHES):
        measure()
    return (time.perf_counter() - begin) / (BATCHES * BATCH) * 1e6


def _queues() -> Callable[[], object]:
    queues: list[queue.Queue[Event]] = [queue.Queue() for _ in range(STREAMS)]
    event = Counted(number=1)

    def batch() -> None:
        for _ in range(BATCH):
            for one in queues:
                one.put(event)
        for _ in range(BATCH):
            for one in queues:
                one.get()

    return batch


def _published() -> Callable[[], object]:
    bus = Bus()
    streams = [bus.stream(Counted) for _ in range(STREAMS)]
    event = Counted(number=1)

    def batch() -> None:
        for _ in range(BATCH):
            bus.publish(event)
        for _ in range(BATCH):
            for stream in streams:
                stream.get()

    return batch


def _changed() -> Callable[[], object]:
    bus = Bus()
    streams = [bus.stream(JobStateChanged) for _ in range(STREAMS)]

    def batch() -> None:
        for _ in range(BATCH):
            bus.feed((CHANGE,))
            bus.deliver()
        for _ in range(BATCH):
            for stream in streams:
                stream.get()

    return batch


def _unheard() -> Callable[[], object]:
    bus = Bus()

    def batch() -> None:
        for _ in range(BATCH):
            bus.feed((CHANGE,))
            bus.deliver()

    return batch


def _heard() -> Callable[[], object]:
    bus = Bus()
    bus.subscribe(JobStateChanged, lambda _: None)

    def batch() -> None:
        for _ in range(BATCH):
            bus.feed((CHANGE,))
            bus.deliver()

    return batch


def _logged(folder: str) -> Callable[[], object]:
    bus = Bus()
    logs = EventLogs(bus)
    logs.join(Redactor())
    logs.open(f"{folder}/events.jsonl", max_bytes=MAX_BYTES, backups=BACKUPS, now=lambda: datetime.now(UTC))
    group = (CHANGE,) * GROUP

    def batch() -> None:
        for _ in range(BATCH // GROUP):
            bus.feed(group)
            bus.deliver()

    return batch
