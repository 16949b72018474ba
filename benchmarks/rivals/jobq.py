"""jobq: worker threads with hands, or with one job for each claim."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jobq
from benchmarks.bare import KIND, Bare
from benchmarks.rivals.rival import BATCHES, PAYLOAD, SINGLE, Drain, Stopwatch

THREADS = 8


class Rival:
    """A database; with ``full`` durability where it is synced, else ``relaxed``."""

    durabilities = (False, True)
    bulk = True

    def __init__(self, folder: Path, *, synced: bool) -> None:
        self._path = str(folder / "jobs.db")
        self._durability = "full" if synced else "relaxed"
        self._jobs = jobq.open(self._path, config=jobq.Config(durability=self._durability))

    def enqueue(self) -> None:
        """Enqueue a job."""
        self._jobs.enqueue(KIND, PAYLOAD)

    def enqueue_many(self, count: int) -> None:
        """Enqueue with one call."""
        self._jobs.enqueue_many(jobq.NewJob(KIND, PAYLOAD) for _ in range(count))

    def fill(self, count: int) -> None:
        """Insert the rows."""
        bare = Bare(self._path, synced=False)
        bare.insert_many(count)
        bare.close()

    def drains(self) -> Mapping[str, Drain]:
        """With the configured hands and without."""
        hands = jobq.Config().hand
        return {BATCHES: partial(self._drain, hand=hands), SINGLE: partial(self._drain, hand=1)}

    def _drain(self, stopwatch: Stopwatch, *, hand: int) -> None:
        with jobq.open(self._path, config=jobq.Config(durability=self._durability, hand=hand)) as jobs:

            @jobs.job(name=KIND)
            def bench(payload: Any) -> None:
                stopwatch.lap()

            with jobq.Runner(jobs, workers={"default": THREADS}):
                stopwatch.over.wait()

    def listen(self, answer: Callable[[], None]) -> None:
        """Have two threads wait."""

        @self._jobs.job(name=KIND)
        def bench(payload: Any) -> None:
            answer()

        with jobq.Runner(self._jobs, workers={"default": 2}):
            threading.Event().wait()

    def close(self) -> None:
        """Close the database."""
        self._jobs.close()
