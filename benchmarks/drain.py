"""How many no-op jobs pass per second, against bare SQLite?

10,000 jobs of a hundred bytes wait in a paused queue while the processes start; the time is that from the first claim
to the last end, as the rows tell it. The floors are one thread of bare apsw: a hundred jobs finished and the next
hundred claimed in each transaction, and the same one by one.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import jobq
from benchmarks.bare import Bare
from benchmarks.report import Figure, Report
from benchmarks.rounds import alternate
from benchmarks.worker import Worker

JOBS = 10_000
NO_HANDS = 1


def run() -> Report:
    """Measure, and relate the medians to the floors."""
    samples = alternate(measures())
    middle = {name: median(taken) for name, taken in samples.items()}
    hundred, single, single_synced = (middle[name] for name in ("bare, 100 a time", "bare, one", "bare, one, synced"))
    best = max(middle[f"{threads} threads"] for threads in (1, 4, 8))
    single_best = max(middle[f"{threads} threads, no hands"] for threads in (1, 4))
    return Report(
        question=f"Drain: {JOBS:,} no-op jobs",
        durability="relaxed, but for what is called synced (full)",
        figures=[Figure(name=name, unit="jobs/s", samples=taken) for name, taken in samples.items()],
        ratios=[
            ("best thread count / floor of 100 a time", best / hundred, "at least 0.30"),
            ("no hands / floor one by one", single_best / single, "at least 0.50"),
            ("no hands, synced / the same", middle["1 threads, no hands, synced"] / single_synced, "at least 0.50"),
            ("2 processes x 4 threads / 1 x 4", middle["2 x 4 threads"] / middle["4 threads"], "at least 1"),
        ],
    )


def measures() -> dict[str, Callable[[], float]]:
    """Return what is measured."""
    bare = {
        "bare, 100 a time": partial(_bare, 100),
        "bare, one": partial(_bare, 1),
        "bare, one, synced": partial(_bare, 1, synced=True, count=2_000),
    }
    hands = {f"{threads} threads": partial(_jobq, threads=threads) for threads in (1, 4, 8)}
    single = {f"{threads} threads, no hands": partial(_jobq, threads=threads, hand=NO_HANDS) for threads in (1, 4)}
    return {
        **bare,
        **hands,
        **single,
        "1 threads, no hands, synced": partial(_jobq, threads=1, hand=NO_HANDS, durability="full", count=2_000),
        "2 x 4 threads": partial(_jobq, processes=2, threads=4),
    }


def _bare(batch: int, *, synced: bool = False, count: int = JOBS) -> float:
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(str(Path(folder, "jobs.db")), synced=synced)
        bare.insert_many(count)
        bare.drain(batch)
        seconds = bare.work()
        bare.close()
    return count / seconds


def _jobq(
    *, threads: int, processes: int = 1, hand: int = 32, durability: str = "relaxed", count: int = JOBS
) -> float:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = str(Path(folder, "jobs.db"))
        bare = Bare(path, synced=False)
        stack.callback(bare.close)
        bare.insert_many(count)
        jobs = stack.enter_context(jobq.open(path))
        jobs.pause("default")
        for _ in range(processes):
            stack.enter_context(Worker(path, threads=threads, hand=hand, durability=durability))
        jobs.resume("default")
        wait_for(bare, count)
        return count / bare.work()


def wait_for(bare: Bare, count: int) -> None:
    """Return once so many jobs have succeeded."""
    done = "SELECT count(*) FROM jobq_job WHERE state = 'succeeded'"
    while bare.connection.execute(done).fetchone()[0] < count:
        time.sleep(0.05)


