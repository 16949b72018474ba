"""huey on SQLite: its consumer."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import huey

from benchmarks.rivals.rival import GONE, PAYLOAD, Drain, Stopwatch

#: Seconds between two looks at an empty queue; by default huey waits from 0.1 s on up to 10 s.
POLL = 0.01


class Rival:
    """A database of huey's."""

    durabilities = (False, True)
    bulk = False

    def __init__(self, folder: Path, *, synced: bool) -> None:
        self._huey = huey.SqliteHuey("bench", filename=str(folder / "jobs.db"), fsync=synced)
        # As was found best here: unsynced, more of them only wait for the lock.
        self._workers = 4 if synced else 1
        self._run: Callable[[], None] = lambda: None

        @self._huey.task()  # type: ignore[untyped-decorator]
        def bench(payload: str) -> None:
            self._run()

        self._bench = bench

    def enqueue(self) -> None:
        """Call the task."""
        self._bench(PAYLOAD)

    def enqueue_many(self, count: int) -> None:
        """It has no such thing."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Insert the rows."""
        data = self._huey.serialize_task(self._bench.s(PAYLOAD))
        with self._huey.storage.db(commit=True) as cursor:
            cursor.executemany("INSERT INTO task (queue, data) VALUES ('bench', ?)", [(data,)] * count)

    def drains(self) -> Mapping[str, Drain]:
        """Its consumer, which deletes what it takes."""
        return {GONE: self._drain}

    def _drain(self, stopwatch: Stopwatch) -> None:
        self._run = stopwatch.lap
        consumer = self._huey.create_consumer(workers=self._workers, periodic=False)
        consumer.start()
        stopwatch.over.wait()
        consumer.stop(graceful=True)

    def listen(self, answer: Callable[[], None]) -> None:
        """Run its consumer, which looks every so many seconds."""
        self._run = answer
        self._huey.create_consumer(workers=1, periodic=False, initial_delay=POLL, max_delay=POLL).start()
        threading.Event().wait()

    def close(self) -> None:
        """Close the connection of this thread."""
        self._huey.storage.close()
