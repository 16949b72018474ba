"""localqueue: its Worker, which leases, runs and acknowledges one job after the other."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from localqueue import DurabilityMode, SimpleQueue, Worker

from benchmarks.rivals.rival import PAYLOAD, SINGLE, Drain, Stopwatch

#: Seconds for which a worker waits at a time; it looks every 10 ms at first, then less often.
POLL = 0.01


class Rival:
    """A directory of localqueue's."""

    durabilities = (False, True)
    bulk = True

    def __init__(self, folder: Path, *, synced: bool) -> None:
        durability = DurabilityMode.DURABLE if synced else DurabilityMode.RELAXED
        self._queue: Any = SimpleQueue(str(folder), durability=durability)

    def enqueue(self) -> None:
        """Put one job."""
        self._queue.put(PAYLOAD)

    def enqueue_many(self, count: int) -> None:
        """Put jobs with one call."""
        self._queue.put_many([PAYLOAD] * count)

    def fill(self, count: int) -> None:
        """Put them all at once."""
        self.enqueue_many(count)

    def drains(self) -> Mapping[str, Drain]:
        """Run a worker."""
        return {SINGLE: self._drain}

    def _drain(self, stopwatch: Stopwatch) -> None:
        worker = Worker(self._queue, lambda job: stopwatch.lap())
        while not stopwatch.over.is_set():
            worker.run_once()

    def listen(self, answer: Callable[[], None]) -> None:
        """Run a worker."""
        Worker(self._queue, lambda job: answer(), poll_interval=POLL).run()

    def close(self) -> None:
        """Close the database."""
        self._queue.close()
