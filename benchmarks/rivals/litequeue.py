"""litequeue: pop, then done."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import litequeue

from benchmarks.rivals.rival import PAYLOAD, SINGLE, Drain, Stopwatch

#: Seconds between two looks at an empty queue: it cannot be waited on.
POLL = 0.01


class Rival:
    """A database of litequeue's, which has one durability."""

    durabilities = (False,)
    bulk = True

    def __init__(self, folder: Path, *, synced: bool) -> None:
        self._queue = litequeue.LiteQueue(folder / "jobs.db")

    def enqueue(self) -> None:
        """Put one message."""
        self._queue.put(PAYLOAD)

    def enqueue_many(self, count: int) -> None:
        """Put messages in one transaction."""
        with self._queue.transaction("IMMEDIATE"):
            for _ in range(count):
                self._queue.put(PAYLOAD)

    def fill(self, count: int) -> None:
        """Put them all at once."""
        self.enqueue_many(count)

    def drains(self) -> Mapping[str, Drain]:
        """Pop and mark as done."""
        return {SINGLE: self._drain}

    def _drain(self, stopwatch: Stopwatch) -> None:
        while not stopwatch.over.is_set():
            message = self._queue.pop()
            stopwatch.lap()
            self._queue.done(message.message_id)

    def listen(self, answer: Callable[[], None]) -> None:
        """Pop again and again."""
        while True:
            message = self._queue.pop()
            if message is None:
                time.sleep(POLL)
                continue
            answer()
            self._queue.done(message.message_id)

    def close(self) -> None:
        """Close the connection."""
        self._queue.close()
