"""A process that works: ``python -m benchmarks.worker PATH THREADS HAND DURABILITY``, until its stdin is closed."""

import subprocess
import sys
from types import TracebackType
from typing import Any

import jobq
from benchmarks.bare import KIND


class Worker:
    """Such a process, ready when the constructor returns."""

    def __init__(self, path: str, *, threads: int, hand: int = 32, durability: str = "relaxed") -> None:
        command = [sys.executable, "-m", "benchmarks.worker", path, str(threads), str(hand), durability]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hear()

    def hear(self) -> str:
        """Return the next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.communicate("")


def main(path: str, threads: str, hand: str, durability: str) -> None:
    """Run jobs; one with a payload that says ``answer`` tells the time, by the clock that all processes share."""
    clock = jobq.SystemClock()
    with jobq.open(path, config=jobq.Config(hand=int(hand), durability=durability)) as jobs:

        @jobs.job(name=KIND)
        def bench(payload: Any) -> None:
            pass

        @jobs.job(name="answer")
        def answer(payload: Any) -> None:
            print(clock.monotonic(), flush=True)

        with jobq.Runner(jobs, workers={"default": int(threads)}):
            print("ready", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
