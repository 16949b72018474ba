"""The guarantees hold in simulated worlds, whatever the dice choose.

A seed means the same only as long as the simulation is the same, so what one has found is pinned by a test of its own:
``test_clock_jumps.py::test_an_outside_worker_takes_nothing_of_runners_that_slept`` was found so.
"""

import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest

import jobq
from tests.conftest import ErrorLog
from tests.sim.simulation import Simulation

STEPS = 160
SEEDS = 200
#: Where the seeds must come, all together; else the simulation does not look where faults are.
PLACES = {
    "a cap was full",
    "a failed job was requeued",
    "a job was pruned",
    "a key was held through a retry",
    "a process was killed",
    "a queue was paused",
    "a requeue met a newer holder of its key",
    "a run was cancelled",
    "a run was deferred",
    "a run was failed",
    "a run was released",
    "a run was retried",
    "a run was succeeded",
    "a running job was asked to cancel",
    "a sleep guard held back a reclaim",
    "a relay died before its mark",
    "a slot fired",
    "a staged job was published",
    "a transaction was rolled back",
    "a zombie settled late",
    "an expired lease was taken back",
    "an outside worker lost its lease",
    "the clock leapt",
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new file, to be copied."""
    path = tmp_path_factory.mktemp("sim") / "empty.db"
    jobq.open(path).close()
    return path


@pytest.fixture(autouse=True)
def _quiet(errors: ErrorLog) -> Iterator[None]:
    """Simulated processes lose leases all the time; their log is not what is looked at."""
    logger = logging.getLogger("jobq")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def simulate(empty: Path, folder: Path, seed: int) -> Counter[str]:
    """Run one seed; where it fails, say which and what led to it."""
    story: list[str] = []
    path = folder / "jobs.db"
    shutil.copy(empty, path)
    try:
        return Simulation(path, seed, tell=story.append).run(STEPS)
    except Exception as error:
        error.add_note("\n".join([f"seed {seed}, step {len(story)}, which came after:", *story[-25:]]))
        raise
    finally:
        for file in folder.glob("jobs.db*"):
            file.unlink()


def simulate_all(empty: Path, folder: Path, seeds: Iterable[int]) -> Counter[str]:
    """Run seeds and return what they reached together."""
    reached: Counter[str] = Counter()
    for seed in seeds:
        reached += simulate(empty, folder, seed)
    return reached


def test_the_guarantees_hold_for_many_seeds(empty: Path, memory: Path) -> None:
    """After each step of each seed the rows agree with everything that was acknowledged and told."""
    reached = simulate_all(empty, memory, range(SEEDS))

    assert reached.keys() >= PLACES, f"not reached: {PLACES - reached.keys()}"


@pytest.mark.storm
def test_the_guarantees_hold_for_as_long_as_one_likes(empty: Path, memory: Path) -> None:
    """New seeds for the seconds of JOBQ_STORM_SECONDS, 300 unless set, from JOBQ_STORM_SEED on."""
    until = time.monotonic() + float(os.environ.get("JOBQ_STORM_SECONDS", "300"))
    for seed in count(int(os.environ.get("JOBQ_STORM_SEED", time.time_ns() // 1_000_000))):
        simulate(empty, memory, seed)
        if time.monotonic() >= until:
            return
