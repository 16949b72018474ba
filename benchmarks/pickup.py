"""How soon does a job start: in this process, in another one, steadily and after ten seconds of silence?

The time runs from before the enqueue to the first line of the handler. Polling alone is measured where no socket can
be: in a directory with a name that no socket address holds.

The floors are a thread that waits for a lock, and a process that waits for a datagram, told after a bare insert; each
then claims one row with bare apsw. How long a core takes to wake differs much between machines, and between one that
has other work and one that sleeps.
"""

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from subprocess import PIPE, Popen

import jobq
from benchmarks.bare import Bare
from benchmarks.report import Figure, Report
from benchmarks.worker import Worker

JOBS, PAUSE, WARM_UP = 250, 0.02, 20
SILENCE, FILES, TURNS = 10.0, 4, 3
_LONG = "x" * 110


def run() -> Report:
    """Measure one after the other: they would disturb each other."""
    samples = {
        "bare, same process": _bare_thread(),
        "bare, another process": _bare(),
        "same process": _same_process(),
        "another process": _other_process(""),
        "another process, polling": _other_process(_LONG),
        **_after_silence(),
    }
    limits = {
        "bare, same process": ("floor", "floor"),
        "bare, another process": ("floor", "floor"),
        "same process": ("under 1", "under 5"),
        "another process": ("under 1", "under 8"),
        "another process, polling": ("under 4", "under 15"),
        f"after {SILENCE:g} s, polling": ("no limit", "under 60"),
    }
    return Report(
        question="Pick-up: milliseconds from the enqueue to the handler, one job at a time",
        durability="relaxed",
        figures=[Figure(name=name, unit="ms", samples=taken) for name, taken in samples.items()],
        ratios=[
            (f"{name}, {share}, ms", value, limit)
            for name, held in limits.items()
            for share, value, limit in zip(("p50", "p99"), _p50_p99(samples[name]), held, strict=True)
        ]
        + [
            (f"{name}, p50 / floor", median(samples[name]) / median(samples[f"bare, {name}"]), "no limit")
            for name in ("same process", "another process")
        ],
    )


def _p50_p99(samples: Sequence[float]) -> tuple[float, float]:
    cut = quantiles(samples, n=100, method="inclusive")
    return cut[49], cut[98]


def _config() -> jobq.Config:
    return jobq.Config(durability="relaxed")


def _same_process() -> list[float]:
    taken: list[float] = []
    with jobq.open(config=_config()) as jobs:

        @jobs.job
        def answer(payload: float) -> None:
            taken.append((time.monotonic() - payload) * 1_000)

        with jobq.Runner(jobs, workers={"default": 2}):
            for _ in range(WARM_UP + JOBS):
                time.sleep(PAUSE)
                jobs.enqueue("answer", time.monotonic()).wait(30)
    return taken[WARM_UP:]


def _other_process(name: str) -> list[float]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = _path(folder, name)
        worker = stack.enter_context(Worker(path, threads=2))
        jobs = stack.enter_context(jobq.open(path, config=_config()))
        return [_ask(jobs, worker, PAUSE) for _ in range(WARM_UP + JOBS)][WARM_UP:]


def _after_silence() -> dict[str, list[float]]:
    """Several files at once, asked one after the other: each has been silent for so long."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        asked: dict[str, list[tuple[jobq.JobQueue, Worker]]] = {}
        for kind, name in (("bell", ""), ("polling", _LONG)):
            for number in range(FILES):
                path = _path(folder, f"{name}{number}")
                pair = Worker(path, threads=8), jobq.open(path, config=_config())
                worker, jobs = (stack.enter_context(one) for one in pair)
                asked.setdefault(kind, []).append((jobs, worker))  # type: ignore[arg-type]
        taken: dict[str, list[float]] = {f"after {SILENCE:g} s, {kind}": [] for kind in asked}
        for _ in range(TURNS):
            time.sleep(SILENCE)
            for (jobs, worker), samples in (
                (pair, taken[f"after {SILENCE:g} s, {kind}"]) for kind, pairs in asked.items() for pair in pairs
            ):
                samples.append(_ask(jobs, worker, PAUSE))
    return taken


def _ask(jobs: jobq.JobQueue, worker: Worker, pause: float) -> float:
    time.sleep(pause)
    asked = time.monotonic()
    jobs.enqueue("answer")
    return (float(worker.hear()) - asked) * 1_000


def _path(folder: str, name: str) -> str:
    Path(folder, name).mkdir(exist_ok=True)
    return str(Path(folder, name, "jobs.db"))


def _bare() -> list[float]:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        path, door = str(Path(folder, "jobs.db")), str(Path(folder, "bell"))
        bare = Bare(path, synced=False)
        with Popen([sys.executable, "-m", "benchmarks.pickup", path, door], stdout=PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            taken = []
            for _ in range(WARM_UP + JOBS):
                time.sleep(PAUSE)
                asked = time.monotonic()
                bare.insert_one()
                bell.sendto(b"", door)
                taken.append((float(process.stdout.readline()) - asked) * 1_000)
            bell.sendto(b"end", door)
        bare.close()
    return taken[WARM_UP:]


def _bare_thread() -> list[float]:
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        bare, other = (Bare(str(Path(folder, "jobs.db")), synced=False) for _ in range(2))
        bell, done = threading.Lock(), threading.Lock()
        bell.acquire()
        done.acquire()
        asked = 0.0

        def wait() -> None:
            for _ in range(WARM_UP + JOBS):
                bell.acquire()
                other.claim_one()
                taken.append((time.monotonic() - asked) * 1_000)
                other.drain(1)
                done.release()

        waiting = threading.Thread(target=wait)
        waiting.start()
        for _ in range(WARM_UP + JOBS):
            time.sleep(PAUSE)
            asked = time.monotonic()
            bare.insert_one()
            bell.release()
            done.acquire()
        waiting.join()
        bare.close()
        other.close()
    return taken[WARM_UP:]


def _wait_bare(path: str, door: str) -> None:
    """Be the other process of the floor."""
    bare = Bare(path, synced=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.bind(door)
        print("ready", flush=True)
        while not bell.recv(8):
            bare.claim_one()
            print(time.monotonic(), flush=True)
            bare.drain(1)
    bare.close()


if __name__ == "__main__":
    _wait_bare(*sys.argv[1:])
