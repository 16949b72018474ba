"""How soon is jobq there, and how much memory does a process hold that waits for work?

Whole processes, from their start to their end: the interpreter with apsw and attrs, and the same with jobq besides;
with the first enqueue into a file that is there, and the first with a runner. The command line's help is compared with
an interpreter that imports apsw, attrs and argparse.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

import jobq
from benchmarks.report import Figure, Report
from benchmarks.rounds import alternate

ROUNDS = 11
_ENQUEUE = "import jobq, sys\nwith jobq.open(sys.argv[1]) as jobs:\n    jobs.enqueue('note')"
_RUNNER = "import jobq, sys\nwith jobq.open(sys.argv[1]) as jobs, jobq.Runner(jobs): pass"
_WAITING = """
import jobq, sys, time
jobs = jobq.open(sys.argv[1])
jobs.job(name="note")(lambda payload: None)
with jobq.Runner(jobs):
    jobs.enqueue("note").wait(30)
    time.sleep(1)
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]))
"""


def run() -> Report:
    """Measure, and take the differences."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "jobs.db"))
        jobq.open(path).close()
        python = (sys.executable, "-c")
        samples = alternate(
            {
                "apsw, attrs": partial(_timed, (*python, "import apsw, attrs")),
                "apsw, attrs, jobq": partial(_timed, (*python, "import apsw, attrs, jobq")),
                "jobq, first enqueue": partial(_timed, (*python, _ENQUEUE, path)),
                "jobq, a runner started and stopped": partial(_timed, (*python, _RUNNER, path)),
                "apsw, attrs, argparse": partial(_timed, (*python, "import apsw, attrs, argparse")),
                "jobq --help": partial(_timed, (sys.executable, "-m", "jobq", "--help")),
            },
            ROUNDS,
        )
        memory = [_memory(path) for _ in range(3)]
    middle = {name: median(taken) for name, taken in samples.items()}
    figures = [Figure(name=name, unit="ms", samples=taken) for name, taken in samples.items()]
    return Report(
        question="Start: milliseconds of a whole process, and the memory of one that waits",
        figures=[*figures, Figure(name="resident, an idle runner", unit="MB", samples=memory)],
        ratios=[
            ("import jobq over apsw and attrs, ms", middle["apsw, attrs, jobq"] - middle["apsw, attrs"], "under 60"),
            ("jobq --help / argparse alone", middle["jobq --help"] / middle["apsw, attrs, argparse"], "under 2.5"),
            ("resident memory of an idle runner, MB", median(memory), "under 40"),
        ],
    )


def _timed(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1_000


def _memory(path: str) -> float:
    answer = subprocess.run((sys.executable, "-c", _WAITING, path), check=True, capture_output=True, text=True)
    return int(answer.stdout) * os.sysconf("SC_PAGE_SIZE") / 1e6
