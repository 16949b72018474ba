"""Does a process stay as small as it was, and the WAL, while a million jobs pass through it?

Jobs are enqueued a thousand at a time and run by four threads of the same process, never more than five thousand
behind; memory and WAL are looked at after each ten thousand. It takes a few minutes.
"""

import os
import tempfile
import threading
from pathlib import Path

import jobq
from benchmarks.bare import KIND, PAYLOAD
from benchmarks.report import Figure, Report
from jobq.model.events import Change

JOBS, BATCH, BEHIND, LOOK, WARM_UP = 1_000_000, 1_000, 5_000, 10_000, 50_000


class Count:
    """Counts ended jobs, and lets a producer wait for them."""

    def __init__(self) -> None:
        self.ended = 0
        self._more = threading.Condition()

    def on_change(self, change: Change) -> None:
        """Take note of a change."""
        if change.state.terminal:
            with self._more:
                self.ended += 1
                self._more.notify_all()

    def wait_for(self, count: int) -> None:
        """Return once so many have ended."""
        with self._more:
            assert self._more.wait_for(lambda: self.ended >= count, timeout=120), "no job has ended for too long"


def run(jobs: int = JOBS) -> Report:
    """Let them pass, and look."""
    resident, wal = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "jobs.db"))
        with jobq.open(path, config=jobq.Config(durability="relaxed")) as queue:
            queue.job(name=KIND)(_pass)
            count = Count()
            queue.bus.watch(count.on_change)
            with jobq.Runner(queue, workers={"default": 4}):
                for made in range(BATCH, jobs + 1, BATCH):
                    queue.enqueue_many(jobq.NewJob(KIND, PAYLOAD) for _ in range(BATCH))
                    count.wait_for(made - BEHIND)
                    if made % LOOK == 0:
                        wal.append(os.stat(f"{path}-wal").st_size / 1e6)
                        if made >= WARM_UP:
                            resident.append(_resident())
                count.wait_for(jobs)
    return Report(
        question=f"Memory: {jobs:,} jobs through one process",
        durability="relaxed",
        figures=[
            Figure(name=f"resident, after the first {WARM_UP:,}", unit="MB", samples=resident),
            Figure(name="WAL", unit="MB", samples=wal),
        ],
        ratios=[
            ("most above the first, MB", max(resident) - resident[0], "under 10"),
            ("largest WAL, MB", max(wal), "under 16"),
        ],
    )


def _pass(payload: object) -> None:
    pass


def _resident() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
