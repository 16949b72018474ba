"""B70: many jobs, of which some fail, some are cancelled, and all say something; afterwards nothing of them is left."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Bytes; what a process may have grown by since it has warmed up.
MOST_GROWTH = 10 * 1024 * 1024

#: In a process of its own: pytest keeps each line of the log, and that would count.
PROGRAM = """
import gc, json, logging, os, sys, threading, time
import jobq
from jobq.observe.loglines import LogLines

count, batch = int(sys.argv[1]), int(sys.argv[2])
jobs = jobq.open("leaks.db", config=jobq.Config(
    trace_file="trace.log", trace_max_bytes=100_000, trace_backups=1, file_max_bytes=100_000, file_backups=1,
    durability="relaxed", payload_max_bytes=1000,
))
logger = logging.getLogger("jobq.handler")
logger.setLevel(logging.INFO)
logger.addHandler(LogLines(jobs).handler())
jobs.gate("narrow", permits=2)


def say(job):
    job.progress(1, 2, "half")
    job.progress(2, 2)
    if job.id % 10 == 0:
        job.log.info("said", n=job.id)
        job.trace("sent", "x" * 100)


@jobs.job(timeout="30s")
def works(payload, job):
    say(job)
    return payload


@jobs.job(gate="narrow", timeout="30s")
def fails(payload, job):
    say(job)
    try:
        raise ValueError(payload)
    except ValueError as error:
        raise jobq.PermanentJobError("no", code="no") from error


@jobs.job
def stops(payload, job):
    job.cancel_token.on_cancel(lambda: None)
    jobs.cancel(job.id)
    job.cancel_token.raise_if_requested()


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_batch(number):
    kinds = ("works", "fails", "stops")
    placed = jobs.enqueue_many([jobq.NewJob(kinds[n % 3], {"n": n}) for n in range(batch)])
    # A third of what is to be cancelled never starts.
    jobs.cancel([one.id for one in placed if one.id % 9 == 0])
    closed = jobs.bus.stream(jobq.JobStateChanged, maxsize=10)
    jobs.bus.stream(private=True, maxsize=10)             # dropped without a word
    with jobs.bus.stream(jobq.JobProgressed, maxsize=10):
        deadline = time.monotonic() + 60
        while any(jobs.counts()[state] for state in ("queued", "running")):
            assert time.monotonic() < deadline, jobs.counts()
            idle.wait(0.01)
    closed.close()


idle = threading.Event()
runner = jobq.Runner(jobs, workers={"default": 4})
runner.start()
warm = max(1, count // batch // 5)
for number in range(warm):
    one_batch(number)
before = resident()
for number in range(count // batch - warm):
    one_batch(number)
runner.maintenance.tick()
after = resident()
parts = runner._parts
runner.stop()
jobs.bus.publish(jobq.HealthChanged(component="test", healthy=True, detail=""))
left = {
    "live": len(jobs.live), "held": len(parts.held), "budgets": len(parts.overseer._budgets),
    "hands": len(parts.overseer._hands), "stuck": len(parts.overseer._told), "lines": len(jobs.lines),
    "streams": len(jobs.bus._audience), "permits": 2 - jobs.gate("narrow").free, "lost": jobs.lines.lost,
    "trace": jobs.tracing.file.lost, "threads": threading.active_count() - 1,
}
counts = {str(state): number for state, number in jobs.counts().items()}
jobs.close()
print(json.dumps({"growth": after - before, "left": left, "counts": counts}))
"""


@pytest.mark.parametrize(
    ("count", "batch"),
    [
        pytest.param(6_000, 500, id="short"),
        pytest.param(100_000, 1_000, id="long", marks=pytest.mark.storm),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory is used")
def test_b70_nothing_is_left_of_many_jobs(tmp_path: Path, count: int, batch: int) -> None:
    """Tokens, leases, streams, budgets, permits, lines: all back; the process has not grown."""
    (tmp_path / "leaks.py").write_text(PROGRAM)
    command: list[Any] = [sys.executable, "leaks.py", str(count), str(batch)]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=3000)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["left"].values()) == {0}, found["left"]
    counts = found["counts"]
    assert sum(counts.values()) == count
    assert min(counts["succeeded"], counts["failed"], counts["cancelled"]) > count / 4
    assert found["growth"] < MOST_GROWTH, found
