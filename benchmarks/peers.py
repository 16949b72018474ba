"""How fast is jobq beside other job queues that need no server, at equal durability, and what does each promise?

Jobs of a hundred bytes with handlers that do nothing. Each round measures each of them in a process of its own, in an
order of its own; a drain runs for a third of a second at most. Who needs no acknowledgement, and loses what a killed
worker had taken, is measured apart. jobq runs its worker threads; its ``drain()`` is for tests, and slower.
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, quantiles

from benchmarks.report import Figure, Report
from benchmarks.rivals.known import JOBQ, PEERS, Known
from benchmarks.rounds import ROUNDS

#: How many jobs wait in the drains beside those of 10,000; and how often these are measured.
DEPTHS, DEPTH_ROUNDS = (1_000, 100_000), 3

#: For each thing that is done, the samples of everyone who does it.
Samples = dict[str, dict[str, list[float]]]


def run() -> Report:
    """Measure everyone who is installed, and relate jobq to the best of the others."""
    here = [JOBQ, *(peer for peer in PEERS if peer.version)]
    speeds: Samples = {}
    for _ in range(ROUNDS):
        _round(here, ("rates",), speeds)
    for depth in DEPTHS:
        for _ in range(DEPTH_ROUNDS):
            _round(here, ("depth", str(depth)), speeds)
    speeds = {what: speeds[what] for what in sorted(speeds)}
    waits: Samples = {}
    _round(here, ("pickup",), waits)
    return Report(
        question="Peers: job queues without a server, jobs of a hundred bytes",
        durability="synced: each commit; unsynced: survives a killed process, may lose the last moments to a power cut",
        figures=[*_figures(speeds, "jobs/s"), *_figures({"pick-up": waits["pick-up"]}, "ms"), *_idle(waits)],
        ratios=[*_ratios(speeds)],
        notes=[*_pickup_notes(waits["pick-up"]), *_promises(here), *missing(PEERS)],
    )


def _round(here: Sequence[Known], what: Sequence[str], samples: Samples) -> None:
    for one in random.sample(here, len(here)):
        command = [sys.executable, "-m", "benchmarks.rivals.process", one.name, *what]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for key, value in json.loads(done.stdout).items():
            taken = samples.setdefault(key, {}).setdefault(one.name, [])
            taken.extend(value if isinstance(value, list) else [value])


def _figures(samples: Samples, unit: str) -> Iterator[Figure]:
    for what, everyone in samples.items():
        for name in sorted(everyone, key=lambda name: median(everyone[name]), reverse=unit == "jobs/s"):
            yield Figure(name=f"{what}: {name}", unit=unit, samples=everyone[name])


def _idle(waits: Samples) -> Iterator[Figure]:
    return _figures({"a process that waits": waits["waiting"]}, "% of a core")


def _ratios(speeds: Samples) -> Iterator[tuple[str, float, str]]:
    for what, everyone in speeds.items():
        middle = {name: median(taken) for name, taken in everyone.items()}
        mine = middle.pop(JOBQ.name, None)
        if mine is not None and middle:
            best = max(middle, key=lambda name: middle[name])
            yield f"{what}: jobq / {best}", mine / middle[best], "over 1"


def _pickup_notes(taken: Mapping[str, Sequence[float]]) -> Iterator[str]:
    for name, samples in taken.items():
        cut = quantiles(samples, n=100, method="inclusive")
        yield f"pick-up, p50 / p99, ms: {name} {cut[49]:.1f} / {cut[98]:.1f}"


def _promises(here: Sequence[Known]) -> Iterator[str]:
    for one in here:
        yield f"{one.distribution} {one.version}: {one.promise}."
        yield f"  {one.setting}"


def missing(peers: Sequence[Known]) -> Iterator[str]:
    """Yield a line that names those who are not installed, if there are any."""
    names = [peer.distribution for peer in peers if not peer.version]
    if names:
        yield f"not installed, left out: {', '.join(names)}"
