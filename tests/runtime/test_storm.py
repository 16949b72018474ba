"""Everything at once: runners, kinds, cancels, pauses and restarts; every job ends and nothing is left over."""

import collections
import random
import threading
from typing import Any

import pytest

import jobq
from tests.runtime.conftest import PATIENCE

KINDS = {"plain": {}, "capped": {"concurrency": 2}, "gated": {"gate": "g"}, "once": {"max_attempts": 1}}


class Storm:
    """The handlers, and what they saw."""

    def __init__(self, jobs: jobq.JobQueue) -> None:
        self._lock = threading.Lock()
        self._running: collections.Counter[str] = collections.Counter()
        self._pause = threading.Event()
        self.peak: collections.Counter[str] = collections.Counter()
        self.starts: collections.Counter[int] = collections.Counter()
        jobs.gate("g", permits=2)
        for name, options in KINDS.items():
            jobs.job(name=name, **options)(self.run)  # type: ignore[arg-type]

    def run(self, payload: float, job: jobq.RunningJob) -> None:
        """Take a while, or none; fail, defer, heed the token, or succeed, as the payload says."""
        with self._lock:
            self._running[job.kind] += 1
            self.peak[job.kind] = max(self.peak[job.kind], self._running[job.kind])
            self.starts[job.id] += 1
        try:
            self._end(payload, job)
        finally:
            with self._lock:
                self._running[job.kind] -= 1

    def _end(self, payload: float, job: jobq.RunningJob) -> None:
        if payload < 0.1:
            self._pause.wait(payload / 4)
        job.cancel_token.raise_if_requested()
        if 0.10 < payload < 0.16 and job.attempt == 1:
            raise ValueError("once")
        if 0.16 < payload < 0.20 and not job.deferrals:
            raise jobq.Deferred(delay=0.01)
        if 0.20 < payload < 0.23:
            raise jobq.PermanentJobError("for good")


@pytest.mark.parametrize("seed", [1, 2])
def test_every_job_of_a_storm_ends(open_real: Any, seed: int, caplog: Any) -> None:
    """Caps and gates hold throughout, each start is accounted for, and tokens, permits and threads are back."""
    jobs = open_real(lease=5, backoff_base=0.01, backoff_max=0.05)
    dice = random.Random(seed)
    storm = Storm(jobs)
    runners = [jobq.Runner(jobs, workers={"default": 3, "other": 1}) for _ in range(2)]
    ids: list[int] = []
    for runner in runners:
        runner.start()
    for _ in range(30):
        batch = [
            jobq.NewJob(
                dice.choice(list(KINDS)),
                dice.random(),
                queue=dice.choice(["default", "other"]),
                priority=dice.choice([10, 50]),
                delay=dice.choice([0, 0, 0.03]),
            )
            for _ in range(dice.choice([1, 5, 40]))
        ]
        ids += [one.id for one in jobs.enqueue_many(batch)]
        jobs.cancel(dice.sample(ids, 1))
        if dice.random() < 0.2:
            jobs.pause("default")
            jobs.resume("default")
        if dice.random() < 0.2:
            again = dice.choice(runners)
            again.stop(grace=1)
            again.start()
    ended = [jobs.wait(job_id, PATIENCE) for job_id in ids]
    for runner in runners:
        runner.stop()

    assert all(job.attempts + job.deferrals == storm.starts[job.id] for job in ended if job.state == "succeeded")
    assert storm.peak["capped"] <= 2
    assert storm.peak["gated"] <= 2
    assert jobs.gate("g").free == 2
    assert not jobs.live
    assert [runner.health().held for runner in runners] == [0, 0]
