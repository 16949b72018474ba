"""What do eight waiting threads cost while nothing happens?

A process of its own waits for five seconds, once it has been quiet for three; CPU is what the system counts for it,
statements are those of all its connections. Measured with the doorbell, and by polling alone where no socket can be.

The floors are processes of one thread that asks SQLite for the change counter, as often as jobq looks at it, and does
nothing else. Most of what waiting costs is that a core wakes with cold caches, which differs much between machines, and
between one that has other work and one that sleeps.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import apsw

import jobq
from benchmarks.bare import Bare
from benchmarks.report import Figure, Report
from benchmarks.rounds import alternate

THREADS, SETTLE, SECONDS = 8, 3.0, 5.0


#: How often each way of waiting looks at the change counter, per second.
LOOKS = {"with a doorbell": 1, "by polling": 20}


def run() -> Report:
    """Measure both ways, and their floors."""
    measures: dict[str, Callable[[], str]] = {
        "with a doorbell": partial(_measure, ""),
        "by polling": partial(_measure, "x" * 110),
        **{_floor(way): partial(_measure, "", str(looks)) for way, looks in LOOKS.items()},
    }
    statements: dict[str, list[float]] = {name: [] for name in measures}

    def share(name: str) -> float:
        cpu, count = json.loads(measures[name]())
        statements[name].append(count / SECONDS)
        return float(cpu / SECONDS * 100)

    samples = alternate({name: partial(share, name) for name in measures})
    middle = {name: median(taken) for name, taken in samples.items()}
    figures = [Figure(name=f"CPU, {name}", unit="% of a core", samples=taken) for name, taken in samples.items()]
    figures += [Figure(name=f"statements, {name}", unit="/s", samples=statements[name]) for name in LOOKS]
    return Report(
        question=f"Idle: a process with {THREADS} waiting threads",
        figures=figures,
        ratios=[
            ("with a doorbell, % of a core", middle["with a doorbell"], "under 0.3"),
            ("by polling, % of a core", middle["by polling"], "under 1"),
            *((f"{way} / floor", middle[way] / middle[_floor(way)], "no limit") for way in LOOKS),
        ],
    )


def _floor(way: str) -> str:
    return f"bare, {LOOKS[way]} looks a second"


def _measure(name: str, looks: str = "") -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.idle", str(Path(folder, name, "jobs.db")), looks]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _wait(path: str) -> None:
    """Be the process that waits."""
    count = 0

    def trace(*_: object) -> bool:
        nonlocal count
        count += 1
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    with jobq.open(path) as jobs:
        jobs.job(name="bench")(lambda payload: None)
        with jobq.Runner(jobs, workers={"default": THREADS}):
            time.sleep(SETTLE)
            before, count = _cpu(), 0
            time.sleep(SECONDS)
            print(json.dumps([_cpu() - before, count]))


def _wait_bare(path: str, looks: int) -> None:
    """Be the floor: the same file, and as few steps as there can be between two sleeps."""
    bare = Bare(path, synced=False)
    time.sleep(SETTLE)
    before = _cpu()
    for _ in range(round(SECONDS * looks)):
        time.sleep(1 / looks)
        bare.connection.execute("PRAGMA data_version").fetchall()
    print(json.dumps([_cpu() - before, SECONDS * looks]))
    bare.close()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    where, looks = sys.argv[1:]
    if looks:
        _wait_bare(where, int(looks))
    else:
        _wait(where)
