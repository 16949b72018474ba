"""persist-queue: the queue with acknowledgements, one by one, and the plain one, with one for all that was taken."""

import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from persistqueue import Empty, SQLiteAckQueue, SQLiteQueue
from persistqueue.serializers import pickle

from benchmarks.rivals.rival import BATCH, BATCHES, GONE, PAYLOAD, SINGLE, Drain, Stopwatch

#: Seconds between two looks at an empty queue: its own wait does not see what another process puts.
POLL = 0.01


class Rival:
    """A database with both sorts of queue; it is as durable as SQLite is by itself."""

    durabilities = (True,)
    bulk = False

    def __init__(self, folder: Path, *, synced: bool) -> None:
        self._folder = str(folder)
        self._acknowledged: Any = SQLiteAckQueue(self._folder)
        self._plain: Any = SQLiteQueue(self._folder)

    def enqueue(self) -> None:
        """Put one item into the queue with acknowledgements."""
        self._acknowledged.put(PAYLOAD)

    def enqueue_many(self, count: int) -> None:
        """It has no such thing."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Insert the rows of both."""
        data = pickle.dumps(PAYLOAD)
        connection = sqlite3.connect(Path(self._folder, "data.db"))
        with connection:
            connection.executemany(
                "INSERT INTO ack_queue_default (data, timestamp, status) VALUES (?, 0, 0)", [(data,)] * count
            )
            connection.executemany("INSERT INTO queue_default (data, timestamp) VALUES (?, 0)", [(data,)] * count)
        connection.close()

    def drains(self) -> Mapping[str, Drain]:
        """Three ways, and three promises."""
        return {GONE: self._take, SINGLE: self._acknowledge, BATCHES: self._acknowledge_batches}

    def _take(self, stopwatch: Stopwatch) -> None:
        while not stopwatch.over.is_set():
            self._plain.get(block=False)
            stopwatch.lap()

    def _acknowledge(self, stopwatch: Stopwatch) -> None:
        # From the last one on: from the front it would step over all that are acknowledged.
        last = None
        while not stopwatch.over.is_set():
            item = self._acknowledged.get(block=False, raw=True, id=last, next_in_order=last is not None)
            last = item["pqid"]
            stopwatch.lap()
            self._acknowledged.ack(id=last)

    def _acknowledge_batches(self, stopwatch: Stopwatch) -> None:
        queue: Any = SQLiteQueue(self._folder, auto_commit=False)
        while not stopwatch.over.is_set():
            for _ in range(BATCH):
                queue.get(block=False)
                stopwatch.lap()
            queue.task_done()
        queue.close()

    def listen(self, answer: Callable[[], None]) -> None:
        """Get again and again."""
        while True:
            try:
                item = self._acknowledged.get(block=False, raw=True)
            except Empty:
                time.sleep(POLL)
                continue
            answer()
            self._acknowledged.ack(id=item["pqid"])

    def close(self) -> None:
        """Close both queues."""
        self._acknowledged.close()
        self._plain.close()
