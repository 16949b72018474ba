"""Do claims keep their latency while a million ended jobs are pruned, and is the space given back?

One file with 1,000,000 ended jobs and enough queued ones. Four threads claim a job, work on it for a millisecond and
settle it, all the time; the time of each claim is taken. First nobody else is there, then ``jobs.prune()`` removes the
million from a fifth thread of the same process, and its cutting back of the file is part of it.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

import jobq
from benchmarks.report import Figure, Report
from jobq.model.lease import ClaimRequest, Settlement
from jobq.model.outcome import Succeeded
from jobq.store.base import Draft

ENDED, QUEUED, CHUNK = 1_000_000, 300_000, 5_000
WORKERS, HANDLER, ALONE = 4, 0.001, 15.0
MIB = 2**20
PAYLOAD = '{"path": "' + "x" * 80 + '"}'

FILL = """
WITH RECURSIVE numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < ?3)
INSERT INTO jobq_job (kind, queue, state, priority, payload, result, actor, attempts, max_attempts, run_at, created_at,
                      started_at, finished_at)
SELECT 'plain', 'default', 'succeeded', 50, ?1, '{"ok": true}', 'system', 1, 5, ?2 + value, ?2 + value, ?2 + value,
       ?2 + value
FROM numbers
"""


def run() -> Report:
    """Build the file, measure the claims alone and beside the prune, and look at the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.db"
        with jobq.open(path) as jobs:
            _build(jobs)
            alone: list[float] = []
            with _workers(jobs, alone):
                time.sleep(ALONE)
            beside: list[float] = []
            with _workers(jobs, beside):
                begin = time.perf_counter()
                gone = jobs.prune(older_than="30d")
                took = time.perf_counter() - begin
            assert gone.total == ENDED, gone
            status = jobs.store.engine.status()  # type: ignore[attr-defined]
    p99 = [_percentile(samples, 0.99) for samples in (alone, beside)]
    return Report(
        question="Claims of four worker threads while 1,000,000 ended jobs are pruned, durability balanced",
        figures=[
            Figure(name=f"{name}, {len(samples):,} claims", unit="µs", samples=samples)
            for name, samples in (("alone", alone), ("during the prune", beside))
        ],
        ratios=[
            ("p99 of a claim during the prune / alone", p99[1] / p99[0], "at most 2"),
            ("free pages of the file after it, percent", 100 * status.free_pages / status.pages, "under 5"),
        ],
        notes=[
            f"p99 alone {p99[0]:,.0f} µs, during the prune {p99[1]:,.0f} µs",
            f"the prune took {took:.1f} s, {ENDED / took:,.0f} jobs a second",
            f"after it the file has {status.pages * status.page_size / MIB:.0f} MiB",
            f"and its WAL {status.wal_bytes / MIB:.1f} MiB",
        ],
    )


@contextmanager
def _workers(jobs: jobq.JobQueue, samples: list[float]) -> Iterator[None]:
    """Let the worker threads run, each adding the times of its claims."""
    over = threading.Event()
    threads = [threading.Thread(target=_work, args=(jobs, f"w{n}", over, samples)) for n in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _work(jobs: jobq.JobQueue, name: str, over: threading.Event, samples: list[float]) -> None:
    request = ClaimRequest(workers=(name,), lease_length=60.0, kinds=("plain",), queues=("default",))
    while not over.is_set():
        begin = time.perf_counter()
        (claim,) = jobs.store.claim(request, durable=False)
        samples.append((time.perf_counter() - begin) * 1e6)
        time.sleep(HANDLER)
        jobs.store.settle([Settlement(claim.id, claim.token, Succeeded("{}"))], durable=False)


def _build(jobs: jobq.JobQueue) -> None:
    print(f"building {ENDED:,} ended and {QUEUED:,} queued jobs ...", file=sys.stderr, flush=True)
    jobs.store.enqueue([Draft("plain", "default", PAYLOAD, 50, 5)])
    long_ago = int(time.time() * 1000) - 60 * 86_400_000
    connection = apsw.Connection(jobs.path)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(FILL, (PAYLOAD, long_ago, ENDED))
    connection.execute("COMMIT")
    connection.close()
    for _ in range(QUEUED // CHUNK):
        jobs.store.enqueue([Draft("plain", "default", PAYLOAD, 50, 5)] * CHUNK)
    jobs.store.checkpoint()


def _percentile(samples: list[float], share: float) -> float:
    return sorted(samples)[int(len(samples) * share)]
