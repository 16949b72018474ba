"""How many no-op jobs pass per second, against bare SQLite, and when a million wait behind them?

10,000 jobs of a hundred bytes wait in a paused queue while the processes start; the time is that from the first claim
to the last end, as the rows tell it. Of a million the queue is paused again when 10,000 have passed. The floors are one
thread of bare apsw: a hundred jobs finished and the next hundred claimed in each transaction, and the same one by one.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median

import jobq
from benchmarks.bare import Bare
from benchmarks.report import Figure, Report
from benchmarks.rounds import alternate
from benchmarks.worker import Worker

JOBS, MANY = 10_000, 1_000_000
NO_HANDS = 1


def run() -> Report:
    """Measure, and relate the medians to the floors."""
    with tempfile.TemporaryDirectory() as folder:
        crowded = str(Path(folder, "jobs.db"))
        with closing(Bare(crowded, synced=False)) as bare:
            bare.insert_many(MANY)
        samples = alternate(measures(crowded))
    middle = {name: median(taken) for name, taken in samples.items()}
    hundred, single, single_synced = (middle[name] for name in ("bare, 100 a time", "bare, one", "bare, one, synced"))
    best = max(middle[f"{threads} threads"] for threads in (1, 4, 8))
    single_best = max(middle[f"{threads} threads, no hands"] for threads in (1, 4, 8))
    return Report(
        question=f"Drain: {JOBS:,} no-op jobs",
        durability="relaxed, but for what is called synced (full)",
        figures=[Figure(name=name, unit="jobs/s", samples=taken) for name, taken in samples.items()],
        ratios=[
            ("best thread count / floor of 100 a time", best / hundred, "at least 0.30"),
            ("no hands / floor one by one", single_best / single, "at least 0.50"),
            ("no hands, synced / the same", middle["1 threads, no hands, synced"] / single_synced, "at least 0.50"),
            ("2 processes x 4 threads / 1 x 4", middle["2 x 4 threads"] / middle["4 threads"], "at least 1"),
            ("4 threads / the same of a million", middle["4 threads"] / middle["4 threads of a million"], "up to 1.3"),
        ],
    )


def measures(crowded: str) -> dict[str, Callable[[], float]]:
    """Return what is measured; a million jobs wait in the file ``crowded``."""
    bare = {
        "bare, 100 a time": partial(_bare, 100),
        "bare, one": partial(_bare, 1),
        "bare, one, synced": partial(_bare, 1, synced=True, count=2_000),
    }
    hands = {f"{threads} threads": partial(_jobq, threads=threads) for threads in (1, 4, 8)}
    single = {f"{threads} threads, no hands": partial(_jobq, threads=threads, hand=NO_HANDS) for threads in (1, 4, 8)}
    return {
        **bare,
        **hands,
        **single,
        "1 threads, no hands, synced": partial(_jobq, threads=1, hand=NO_HANDS, durability="full", count=2_000),
        "2 x 4 threads": partial(_jobq, processes=2, threads=4),
        "4 threads of a million": partial(_crowded, crowded),
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
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "jobs.db"))
        with closing(Bare(path, synced=False)) as bare:
            bare.insert_many(count)
            workers = [partial(Worker, path, threads=threads, hand=hand, durability=durability)] * processes
            return _passed(bare, path, workers, count)


def _crowded(path: str) -> float:
    """Let 10,000 of a million pass, and put as many behind the others."""
    with closing(Bare(path, synced=False)) as bare:
        rate = _passed(bare, path, [partial(Worker, path, threads=4)], JOBS)
        bare.insert_many(bare.delete_succeeded())
    return rate


def _passed(bare: Bare, path: str, workers: Sequence[Callable[[], Worker]], count: int) -> float:
    with jobq.open(path) as jobs, ExitStack() as stack:
        jobs.pause("default")
        for start in workers:
            stack.enter_context(start())
        jobs.resume("default")
        while bare.succeeded() < count:
            time.sleep(0.05)
        jobs.pause("default")
        return bare.succeeded() / bare.work()


