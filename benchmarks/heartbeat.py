"""How long does a beat take while two other processes write back to back?

A runner holds a hundred leases and renews them with one statement; the floor is the same UPDATE by bare apsw on the
same file, in the same storm. Each writer commits a hundred rows at a time.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles

import jobq
from benchmarks.bare import KIND, PAYLOAD, Bare
from benchmarks.report import Figure, Report

LEASES, BEATS, PAUSE, WRITERS = 100, 100, 0.02, 2
_RENEW = "UPDATE jobq_job SET lease_until = lease_until + 1 WHERE state = 'running' AND lease_until > 0"


def run() -> Report:
    """Measure in peace, then in the storm."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = str(Path(folder, "jobs.db"))
        bare = Bare(path, synced=False)
        stack.callback(bare.close)
        jobs = stack.enter_context(jobq.open(path, config=jobq.Config(durability="relaxed")))
        jobs.enqueue_many(jobq.NewJob(KIND, PAYLOAD) for _ in range(LEASES))
        leases = [(one.job.id, one.token) for one in jobs.lease(kinds=KIND, worker="bench", limit=LEASES)]

        def beat() -> None:
            assert len(jobs.store.extend(leases, durable=False)) == LEASES

        def floor() -> None:
            bare.connection.execute("BEGIN IMMEDIATE")
            bare.connection.execute(_RENEW)
            bare.connection.execute("COMMIT")

        peace = _alternate(floor, beat)
        for _ in range(WRITERS):
            command = [sys.executable, "-m", "benchmarks.heartbeat", path]
            stack.callback(subprocess.Popen(command).terminate)
        time.sleep(1)
        storm = _alternate(floor, beat)
    names = ("bare, in peace", "a beat, in peace", "bare, in the storm", "a beat, in the storm")
    figures = [Figure(name=name, unit="ms", samples=taken) for name, taken in zip(names, (*peace, *storm), strict=True)]
    worst = quantiles(storm[1], n=100, method="inclusive")[98]
    return Report(
        question=f"Heartbeat: {LEASES} leases renewed, while {WRITERS} processes write back to back",
        durability="relaxed",
        figures=figures,
        ratios=[
            ("a beat / bare, in the storm", figures[3].median / figures[2].median, "about 1"),
            ("p99 of a beat in the storm, ms", worst, "under 20,000: the beat of a lease of 60 s"),
        ],
    )


def _alternate(floor: Callable[[], None], beat: Callable[[], None]) -> tuple[list[float], list[float]]:
    taken: tuple[list[float], list[float]] = [], []
    for _ in range(BEATS):
        for samples, work in zip(taken, (floor, beat), strict=True):
            time.sleep(PAUSE)
            begin = time.perf_counter()
            work()
            samples.append((time.perf_counter() - begin) * 1_000)
    return taken


def _storm(path: str) -> None:
    """Be one of the writers."""
    writer = Bare(path, synced=False)
    while True:
        writer.insert_many(100)


if __name__ == "__main__":
    _storm(*sys.argv[1:])
