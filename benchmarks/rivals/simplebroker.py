"""simplebroker: read, or move to another queue and delete, or read in batches that commit after the last."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from simplebroker import Queue, QueueWatcher, resolve_config

from benchmarks.rivals.rival import BATCHES, GONE, PAYLOAD, SINGLE, Drain, Stopwatch


class Rival:
    """A database with a queue of jobs and one of jobs that run."""

    durabilities = (False, True)
    bulk = False

    def __init__(self, folder: Path, *, synced: bool) -> None:
        config = resolve_config(override={"BROKER_SYNC_MODE": "FULL" if synced else "NORMAL"})
        self._waiting, self._running = (
            Queue(name, db_path=str(folder / "jobs.db"), persistent=True, config=config) for name in ("jobs", "running")
        )

    def enqueue(self) -> None:
        """Write one message."""
        self._waiting.write(PAYLOAD)

    def enqueue_many(self, count: int) -> None:
        """It has no such thing, but for restoring a dump."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Insert them as if from a dump, under ids that follow each other."""
        first = self._waiting.generate_timestamp() - 2 * count
        self._waiting.insert_messages([(PAYLOAD, first + number) for number in range(count)])

    def drains(self) -> Mapping[str, Drain]:
        """Three ways, and three promises."""
        return {GONE: self._read, SINGLE: self._move, BATCHES: self._read_in_batches}

    def _read(self, stopwatch: Stopwatch) -> None:
        while not stopwatch.over.is_set():
            self._waiting.read_one()
            stopwatch.lap()

    def _move(self, stopwatch: Stopwatch) -> None:
        while not stopwatch.over.is_set():
            moved: Any = self._waiting.move_one(self._running, with_timestamps=True)
            stopwatch.lap()
            self._running.delete(message_id=moved[1])

    def _read_in_batches(self, stopwatch: Stopwatch) -> None:
        with closing(self._waiting.read_generator(delivery_guarantee="at_least_once")) as messages:
            for _ in messages:
                stopwatch.lap()
                if stopwatch.over.is_set():
                    return

    def listen(self, answer: Callable[[], None]) -> None:
        """Run its watcher, which takes each message for good before it runs."""
        QueueWatcher(self._waiting, lambda message, number: answer()).run_forever()

    def close(self) -> None:
        """Close both queues."""
        self._waiting.close()
        self._running.close()
