"""Two to four processes that do everything at once and are killed at random moments: what they promised holds."""

import collections
import json
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jobq
from tests.crash.churn import CAP, RUNNING, handlers, host_of, outbox_of
from tests.crash.conftest import PATIENCE, ROOT
from tests.crash.test_kill_in_transaction import is_sound

LEASE = 0.5


class Crowd:
    """Processes of ``tests.crash.churn`` on one file; each killed one is followed by another."""

    def __init__(self, path: Path, size: int, dice: random.Random) -> None:
        self._path = path
        self._dice = dice
        self._processes = [self._start() for _ in range(size)]
        self._pause = threading.Event()

    def _start(self) -> subprocess.Popen[str]:
        settings = {"seed": self._dice.randrange(10**9), "log": f"{self._path}.told", "lease": LEASE}
        command = [sys.executable, "-m", "tests.crash.churn", str(self._path), json.dumps(settings)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill_one(self) -> None:
        """Kill one of them, mostly while it works, now and then while it opens the file; start another."""
        place = self._dice.randrange(len(self._processes))
        process = self._processes[place]
        if self._dice.random() < 0.8:
            assert process.stdout is not None
            assert process.stdout.readline() == "working\n", process.communicate()[1]
        self._pause.wait(self._dice.random() * 0.3)
        self._end(process)
        self._processes[place] = self._start()

    def close(self) -> None:
        """Kill all of them."""
        for process in self._processes:
            self._end(process)

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        # Nothing but the kill may have ended it.
        assert process.wait(PATIENCE) == -9, process.communicate()[1]
        process.communicate()


@pytest.fixture
def told(tmp_path: Path) -> Any:
    """Reads what the processes were told is done: values by word."""

    def read() -> dict[str, set[Any]]:
        found: dict[str, set[Any]] = collections.defaultdict(set)
        for line in (tmp_path / "jobs.db.told").read_text().splitlines():
            word, value = json.loads(line)
            found[word].add(tuple(value) if isinstance(value, list) else value)
        return found

    return read


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[jobq.JobQueue]:
    """The test's own look at the file."""
    with jobq.open(tmp_path / "jobs.db", handlers=handlers(), config=jobq.Config(lease=LEASE)) as queue:
        yield queue


def check_now(jobs: jobq.JobQueue) -> None:
    """No moment has more running jobs of a kind than its cap, nor a key twice; a running job has a lease."""
    with jobs.read() as snapshot:
        ((running,),) = snapshot.execute(RUNNING)
        keys = snapshot.execute(
            "SELECT dedupe_key FROM jobq_job WHERE state IN ('queued', 'running') AND dedupe_key IS NOT NULL"
        )
        bare = snapshot.execute("SELECT id FROM jobq_job WHERE state = 'running' AND (token IS NULL OR worker IS NULL)")
    assert running <= CAP
    assert len(keys) == len(set(keys))
    assert not bare
    assert not [found.detail for found in jobs.doctor(deep=True) if found.check == "integrity" and not found.ok]


def end_everything(jobs: jobq.JobQueue) -> None:
    """Run what is left with one more runner, as a restart does, until every job has ended."""
    for schedule in jobs.schedules.list():
        jobs.schedules.remove(schedule.name)
    jobs.resume("side")
    jobs.resume(kind="ails")
    jobs.job(name="outside")(lambda payload: None)
    pause, outbox = threading.Event(), outbox_of(jobs)
    with jobq.Runner(jobs, workers={"default": 4, "side": 2}, outboxes=[outbox]):
        for _ in range(int(PATIENCE / 0.05)):
            check_now(jobs)
            staged, counts = outbox.pending().count, jobs.counts()
            if not staged + counts[jobq.JobState.QUEUED] + counts[jobq.JobState.RUNNING]:
                return
            pause.wait(0.05)
    raise AssertionError(f"not everything ended: {jobs.counts()}")


def check_shop(path: Path, jobs: jobq.JobQueue, staged: set[str]) -> None:
    """What was staged and committed in the host's database was shipped, once; and a job heals three times at most."""
    connection = sqlite3.connect(host_of(str(path)))
    ordered = {name for (name,) in connection.execute("SELECT name FROM orders").fetchall()}
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    with jobs.read() as snapshot:
        shipped = {name for (name,) in snapshot.execute("SELECT name FROM shipped")}
        made = snapshot.execute("SELECT subject, state FROM jobq_job WHERE kind = 'ship'")
        ((heals,),) = snapshot.execute("SELECT max(heals) FROM jobq_job WHERE kind = 'ails'")
    assert staged <= ordered
    assert shipped == ordered
    assert sorted(made) == sorted((name, "succeeded") for name in ordered), "a row of the outbox made two jobs"
    assert heals is None or heals <= 3


@pytest.mark.parametrize(
    ("seed", "size", "kills"),
    [
        pytest.param(1, 3, 4, id="short"),
        *(pytest.param(seed, 2 + seed % 3, 100, id=f"long-{seed}", marks=pytest.mark.storm) for seed in range(2, 6)),
    ],
)
def test_b14_killed_at_random_nothing_that_was_promised_is_lost(
    tmp_path: Path, told: Any, jobs: jobq.JobQueue, caplog: Any, seed: int, size: int, kills: int
) -> None:
    """Acknowledged jobs are rows, all end, caps and keys hold, rows and jobs of one transaction are there together."""
    crowd = Crowd(tmp_path / "jobs.db", size, random.Random(seed))
    try:
        for _ in range(kills):
            crowd.kill_one()
            check_now(jobs)
    finally:
        crowd.close()
    end_everything(jobs)

    rows = {job.id: job for job in jobs.find(limit=None)}
    promised = told()
    assert len(promised["made"]) > 10 * kills, "the storm was none"
    assert promised.keys() >= {"made", "ordered", "cancelling", "staged", "routed"}, "some verbs were not called"
    assert not promised["over"], "more of a kind ran than its cap allows"
    assert promised["made"] - set(rows) <= promised["cancelling"], "an acknowledged job is gone, and was not cancelled"
    with jobs.read() as snapshot:
        ended = {job_id for (job_id,) in snapshot.execute("SELECT job FROM ended")}
        orders = {name for (name,) in snapshot.execute("SELECT id FROM orders")}
    assert {job.id for job in rows.values() if job.kind == "own" and job.state == "succeeded"} == ended
    assert promised["ordered"] <= orders
    check_shop(tmp_path / "jobs.db", jobs, promised["staged"])
    assert {(job_id, rows[job_id].queue) for job_id, _ in promised["routed"] if job_id in rows} <= promised["routed"]
    ordered = [job.subject for job in rows.values() if job.kind == "order"]
    assert len(ordered) == len(set(ordered))
    assert set(ordered) <= orders
    slots = [(job.schedule, job.slot) for job in rows.values() if job.slot is not None]
    assert len(slots) == len(set(slots))
    assert all(job.attempts <= job.max_attempts for job in rows.values())
    assert {job.state for job in rows.values()} <= {"succeeded", "failed", "cancelled"}
    jobs.close()
    assert is_sound(tmp_path / "jobs.db")
