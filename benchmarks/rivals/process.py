"""One job queue measured in a process of its own: ``python -m benchmarks.rivals.process NAME WHAT``; JSON on stdout."""

import importlib
import json
import random
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen

from benchmarks.rivals.rival import Rival, Stopwatch

#: How many jobs are enqueued one by one, in bulk, and wait before a drain.
SYNCED, UNSYNCED, BULK, BACKLOG = 200, 1_000, 10_000, 10_000
#: A drain is timed for so many seconds at most.
SECONDS = 0.3
#: Pick-up: so many jobs after some that do not count; the waiting process is watched for WATCH seconds.
JOBS, WARM_UP, WATCH = 100, 10, 2.0
#: Seconds between two jobs, at random between these: a steady beat could fall in step with somebody's polling.
PAUSE = (0.01, 0.03)


def rates(rival: type[Rival]) -> dict[str, float]:
    """Return the jobs per second of everything that it does, at each durability that it has."""
    measured: dict[str, float] = {}
    for synced in rival.durabilities:
        _in_folder(rival, synced, partial(_enqueue, synced=synced, measured=measured))
        _drain(rival, synced, BACKLOG, measured)
    return measured


def depth(rival: type[Rival], backlog: int) -> dict[str, float]:
    """Return the jobs per second of its ways to drain where so many jobs wait, at the least durability that it has."""
    measured: dict[str, float] = {}
    _drain(rival, rival.durabilities[0], backlog, measured)
    return measured


def pickup(name: str, rival: type[Rival]) -> dict[str, list[float]]:
    """Return the milliseconds until another process starts each job, and what part of a core that costs it, idle."""
    with tempfile.TemporaryDirectory() as folder:
        queue = rival(Path(folder), synced=rival.durabilities[0])
        command = [sys.executable, "-m", "benchmarks.rivals.process", name, "listen", folder]
        with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
            try:
                taken = [_ask(queue, process) for _ in range(WARM_UP + JOBS)][WARM_UP:]
                time.sleep(WATCH)
                before = _cpu_of(process)
                time.sleep(WATCH)
                idle = (_cpu_of(process) - before) / WATCH * 100
            finally:
                process.kill()
        queue.close()
    return {"pick-up": taken, "waiting": [idle]}


def listen(rival: type[Rival], folder: str) -> None:
    """Be the other process, until killed: say the time at each job, and the CPU seconds used at each line read."""
    queue = rival(Path(folder), synced=rival.durabilities[0])
    threading.Thread(target=_tell_cpu, daemon=True).start()
    queue.listen(lambda: print(time.monotonic(), flush=True))


def _in_folder(rival: type[Rival], synced: bool, work: Callable[[Rival], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        queue = rival(Path(folder), synced=synced)
        work(queue)
        queue.close()


def _drain(rival: type[Rival], synced: bool, backlog: int, measured: dict[str, float]) -> None:
    ways: list[str] = []
    _in_folder(rival, synced, lambda queue: ways.extend(queue.drains()))
    for way in ways:
        stopwatch = Stopwatch(jobs=backlog, seconds=SECONDS)

        def drain(queue: Rival, way: str = way, stopwatch: Stopwatch = stopwatch) -> None:
            queue.fill(backlog)
            queue.drains()[way](stopwatch)

        _in_folder(rival, synced, drain)
        measured[f"drain {way}, {backlog:,} waiting, {_ending(synced)}"] = stopwatch.rate


def _enqueue(queue: Rival, *, synced: bool, measured: dict[str, float]) -> None:
    count = SYNCED if synced else UNSYNCED
    queue.enqueue()
    begin = time.perf_counter()
    for _ in range(count):
        queue.enqueue()
    measured[f"enqueue one by one, {_ending(synced)}"] = count / (time.perf_counter() - begin)
    if queue.bulk:
        begin = time.perf_counter()
        queue.enqueue_many(BULK)
        measured[f"enqueue {BULK:,} in one call, {_ending(synced)}"] = BULK / (time.perf_counter() - begin)


def _ending(synced: bool) -> str:
    return "synced" if synced else "unsynced"


def _ask(queue: Rival, process: Popen[str]) -> float:
    assert process.stdout is not None
    time.sleep(random.uniform(*PAUSE))
    asked = time.monotonic()
    queue.enqueue()
    return (float(process.stdout.readline()) - asked) * 1_000


def _cpu_of(process: Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _tell_cpu() -> None:
    for _ in sys.stdin:
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(used.ru_utime + used.ru_stime, flush=True)


def main(name: str, what: str, *more: str) -> None:
    """Measure one thing and print it."""
    rival: type[Rival] = importlib.import_module(f"benchmarks.rivals.{name}").Rival
    if what == "listen":
        listen(rival, *more)
        return
    measures: dict[str, Callable[[], object]] = {
        "rates": lambda: rates(rival),
        "depth": lambda: depth(rival, *map(int, more)),
        "pickup": lambda: pickup(name, rival),
    }
    print(json.dumps(measures[what]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
