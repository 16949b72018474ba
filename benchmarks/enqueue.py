"""How fast are jobs accepted, one by one, from four threads and in bulk, against bare SQLite?

Jobs of a hundred bytes into a new file. The floors are one connection of bare apsw that inserts the same rows, one in
each transaction, or all in one with one statement.
"""

import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import jobq
from benchmarks.bare import KIND, PAYLOAD, Bare
from benchmarks.report import Figure, Report
from benchmarks.rounds import alternate

UNSYNCED, SYNCED, BULK = 2_000, 400, 20_000


def run() -> Report:
    """Measure, and relate the medians to the floors."""
    samples = alternate(
        {
            "bare, one by one": partial(_bare, UNSYNCED, synced=False),
            "one by one": partial(_jobq, UNSYNCED, threads=1, synced=False),
            "one by one, 4 threads": partial(_jobq, UNSYNCED, threads=4, synced=False),
            "bare, one by one, synced": partial(_bare, SYNCED, synced=True),
            "one by one, synced": partial(_jobq, SYNCED, threads=1, synced=True),
            "one by one, 4 threads, synced": partial(_jobq, SYNCED, threads=4, synced=True),
            "bare, in bulk": _bare_bulk,
            "in bulk": _jobq_bulk,
        }
    )
    middle = {name: median(taken) for name, taken in samples.items()}
    sync = 1e6 / middle["bare, one by one, synced"] - 1e6 / middle["bare, one by one"]
    return Report(
        question="Enqueue: jobs accepted per second",
        durability="relaxed, but for what is called synced (balanced)",
        figures=[Figure(name=name, unit="jobs/s", samples=taken) for name, taken in samples.items()],
        ratios=[
            ("one by one / floor", middle["one by one"] / middle["bare, one by one"], "at least 0.60"),
            ("synced / floor", middle["one by one, synced"] / middle["bare, one by one, synced"], "at least 0.60"),
            (
                "4 threads / 1 thread, synced",
                middle["one by one, 4 threads, synced"] / middle["one by one, synced"],
                "at least 2 where a sync costs over 300 µs",
            ),
            ("in bulk / floor", middle["in bulk"] / middle["bare, in bulk"], "at least 0.50"),
        ],
        notes=[f"a sync costs {sync:,.0f} µs here"],
    )


def _rate(count: int, work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def _bare(count: int, *, synced: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(str(Path(folder, "jobs.db")), synced=synced)
        try:
            return _rate(count, lambda: bare.insert_singly(count))
        finally:
            bare.close()


def _bare_bulk() -> float:
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(str(Path(folder, "jobs.db")), synced=False)
        try:
            return _rate(BULK, lambda: bare.insert_many(BULK))
        finally:
            bare.close()


def _open() -> jobq.JobQueue:
    return jobq.open(config=jobq.Config(durability="relaxed"))


def _jobq(count: int, *, threads: int, synced: bool) -> float:
    with jobq.open(config=jobq.Config(durability="balanced" if synced else "relaxed")) as jobs:
        jobs.enqueue(KIND, PAYLOAD)

        def produce() -> None:
            for _ in range(count // threads):
                jobs.enqueue(KIND, PAYLOAD)

        def work() -> None:
            others = [threading.Thread(target=produce) for _ in range(threads - 1)]
            for other in others:
                other.start()
            produce()
            for other in others:
                other.join()

        return _rate(count, work)


def _jobq_bulk() -> float:
    with _open() as jobs:
        jobs.enqueue(KIND, PAYLOAD)
        return _rate(BULK, lambda: jobs.enqueue_many(jobq.NewJob(KIND, PAYLOAD) for _ in range(BULK)))
