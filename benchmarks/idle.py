"""What do eight waiting threads cost while nothing happens?

A process of its own waits for five seconds, once it has been quiet for three; CPU is what the system counts for it,
statements are those of all its connections. Measured with the doorbell, and by polling alone where no socket can be.
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
from benchmarks.report import Figure, Report
from benchmarks.rounds import alternate

THREADS, SETTLE, SECONDS, ROUNDS = 8, 3.0, 5.0, 3


def run() -> Report:
    """Measure both ways."""
    measures: dict[str, Callable[[], str]] = {
        "with a doorbell": partial(_measure, ""),
        "by polling": partial(_measure, "x" * 110),
    }
    statements: dict[str, list[float]] = {name: [] for name in measures}

    def share(name: str) -> float:
        cpu, count = json.loads(measures[name]())
        statements[name].append(count / SECONDS)
        return float(cpu / SECONDS * 100)

    samples = alternate({name: partial(share, name) for name in measures}, ROUNDS)
    figures = [Figure(name=f"CPU, {name}", unit="% of a core", samples=taken) for name, taken in samples.items()]
    figures += [Figure(name=f"statements, {name}", unit="/s", samples=taken) for name, taken in statements.items()]
    return Report(
        question=f"Idle: a process with {THREADS} waiting threads",
        figures=figures,
        ratios=[
            ("with a doorbell, % of a core", median(samples["with a doorbell"]), "under 0.3"),
            ("by polling, % of a core", median(samples["by polling"]), "under 1"),
        ],
    )


def _measure(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.idle", str(Path(folder, name, "jobs.db"))]
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


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _wait(*sys.argv[1:])
