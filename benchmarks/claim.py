"""What does one claim cost when a million jobs wait, and when half a million that cannot run stand in front?

Six databases: 1,000, 100,000 and 1,000,000 queued rows, each once plain and once with 300,000 rows of a kind at its
cap and 100,000 future rows in front, both of higher priority. Two more hold 1,000 and 1,000,000 rows of fifty kinds,
all of which are asked for: a claim looks at each kind once, however many rows it has. Each round claims one job from
each database in turn, so that the machine's moods reach all of them alike; the claimed job is finished outside the
measured time.
"""

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from benchmarks.report import Figure, Report, peak_memory_mb
from jobq.model.lease import ClaimRequest, Settlement
from jobq.model.outcome import Succeeded
from jobq.store import open_store
from jobq.store.base import Draft, Durability, KindRow, QueueRow, Store

BACKLOGS = (1_000, 100_000, 1_000_000)
CAPPED, FUTURE = 300_000, 100_000
ROUNDS, WARM_UP = 400, 50
PAYLOAD = '{"path": "' + "x" * 80 + '"}'
KINDS = tuple(f"kind-{number}" for number in range(50))
REQUEST = ClaimRequest(workers=("bench",), lease_length=3600.0, kinds=("plain", "capped"), queues=("default",))
MANY = REQUEST._replace(kinds=KINDS)


def run() -> Report:
    """Build the databases, measure, and relate the medians."""
    with tempfile.TemporaryDirectory() as folder:
        stores: dict[str, Store] = {}
        for backlog in BACKLOGS:
            for crowded in (False, True):
                name = f"{backlog:>9,} rows" + (", 400,000 in front" if crowded else "")
                print(f"building {name.strip()} ...", file=sys.stderr, flush=True)
                stores[name] = _build(Path(folder) / f"{backlog}-{crowded}.db", backlog, crowded=crowded)
        for backlog in (BACKLOGS[0], BACKLOGS[-1]):
            name = f"{backlog:>9,} rows of {len(KINDS)} kinds"
            print(f"building {name.strip()} ...", file=sys.stderr, flush=True)
            stores[name] = _build(Path(folder) / f"{backlog}-kinds.db", backlog, kinds=KINDS)
        samples = _measure(stores)
        for store in stores.values():
            store.close()
    figures = [Figure(name=name, unit="µs", samples=taken) for name, taken in samples.items()]
    medians = [figure.median for figure in figures]
    few, many = medians[: 2 * len(BACKLOGS)], medians[2 * len(BACKLOGS) :]
    return Report(
        question="One claim: time of its transaction, one job claimed, durability relaxed",
        figures=figures,
        ratios=[
            ("largest median / smallest", max(few) / min(few), "at most 1.5"),
            (f"the same of {len(KINDS)} kinds", max(many) / min(many), "at most 1.5"),
            ("peak resident memory, MB", peak_memory_mb(), "under 80"),
        ],
    )


def _measure(stores: dict[str, Store]) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in stores}
    order = list(stores)
    for turn in range(WARM_UP + ROUNDS):
        random.shuffle(order)
        for name in order:
            store = stores[name]
            begin = time.perf_counter()
            (claim,) = store.claim(MANY if "kinds" in name else REQUEST, durable=False)
            took = time.perf_counter() - begin
            store.settle([Settlement(claim.id, claim.token, Succeeded())], durable=False)
            if turn >= WARM_UP:
                samples[name].append(took * 1e6)
    return samples


def _build(path: Path, backlog: int, *, crowded: bool = False, kinds: Sequence[str] = ("plain",)) -> Store:
    store = open_store(
        str(path),
        now=lambda: datetime.now(UTC),
        roll=random.random,
        feed=lambda changes: None,
        durability=Durability.RELAXED,
    )
    retry: dict[str, object] = {}
    store.register(
        [
            *(KindRow(kind, "default", 50, 5, None, None, retry) for kind in kinds),
            KindRow("capped", "default", 50, 5, None, 1, retry),
        ],
        [QueueRow("default")],
        [],
    )
    if crowded:
        _fill(store, (Draft("capped", "default", PAYLOAD, 100, 5) for _ in range(CAPPED)))
        _fill(store, (Draft("plain", "default", PAYLOAD, 100, 5, delay=86_400.0) for _ in range(FUTURE)))
        (running,) = store.claim(REQUEST, durable=False)
        assert running.kind == "capped"
    _fill(store, (Draft(kinds[number % len(kinds)], "default", PAYLOAD, 50, 5) for number in range(backlog)))
    store.checkpoint()
    return store


def _fill(store: Store, drafts: Iterator[Draft]) -> None:
    while chunk := list(islice(drafts, 5_000)):
        store.enqueue(chunk)
