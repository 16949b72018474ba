"""A process killed before any one of its SQL statements loses nothing that it acknowledged."""

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

import jobq
from jobq.testing import FakeClock
from tests.conftest import ErrorLog

#: More statements than the workload has; the last round runs to its end and proves it.
ROUNDS = 400


def workload(path: Path, acknowledge: Callable[[str, int], None]) -> None:
    """Enqueue, run, fail, cancel and requeue, and tell each acknowledged enqueue and each start."""
    jobs = jobq.open(path, config=jobq.Config(lease=60))

    @jobs.job
    def works(payload: dict) -> dict:
        acknowledge("started", payload["n"])
        return {"done": payload["n"]}

    @jobs.job(max_attempts=2, retry=jobq.RetryPolicy(base=0))
    def fails(payload: dict) -> None:
        acknowledge("started", payload["n"])
        raise ValueError("no")

    for number in range(2):
        acknowledge("enqueued", jobs.enqueue("works", {"n": number, "pad": "x" * 3000}).id)
    failing = jobs.enqueue("fails", {"n": 2}, dedupe_key="once")
    acknowledge("enqueued", failing.id)
    waiting = jobs.enqueue("works", {"n": 3}, delay="1h")
    acknowledge("enqueued", waiting.id)
    runner = jobq.Runner(jobs)
    while runner.run_once():
        pass
    jobs.cancel(waiting.id)
    jobs.requeue(failing.id)
    jobs.close()


def kill_before_statement(number: int) -> list[int]:
    """Make every connection of this process count its statements; the one with this number kills the process."""
    seen = [0]

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        seen[0] += 1
        if seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    return seen


def run_and_die(path: Path, number: int) -> tuple[bool, list[tuple[str, int]]]:
    """Run the workload in a child that dies before its Nth statement; return whether it died and what it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            kill_before_statement(number)
            workload(path, lambda what, n: os.write(writing, f"{what} {n}\n".encode()) and None)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = [line.split() for line in told]
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), [(what, int(n)) for what, n in lines]


@pytest.mark.parametrize("stride", [pytest.param(5, id="short"), pytest.param(1, id="long", marks=pytest.mark.storm)])
def test_b14_killed_before_each_statement_nothing_acknowledged_is_lost(
    memory: Path, stride: int, errors: ErrorLog
) -> None:
    """Every acknowledged job is a row and ends after a restart; a killed run has used up its attempt."""
    finished = False
    for number in range(1, ROUNDS, stride):
        path = memory / f"{number}.db"
        died, told = run_and_die(path, number)
        finished = finished or not died
        enqueued = [n for what, n in told if what == "enqueued"]
        clock = FakeClock(datetime.now(UTC) + timedelta(days=1))
        with jobq.open(path, clock=clock) as jobs:
            rows = {job.id: job for job in jobs.find(limit=None)}
            assert set(enqueued) <= set(rows), f"lost an acknowledged job before statement {number}"

            @jobs.job
            def works(payload: dict) -> dict:
                return {"done": payload["n"]}

            @jobs.job(max_attempts=2)
            def fails(payload: dict) -> None:
                raise ValueError("no")

            jobq.Runner(jobs).drain(until="1d")
            after = jobs.find(limit=None)
            assert all(job.state.terminal for job in after), f"something hangs after statement {number}"
            assert all(job.attempts <= job.max_attempts for job in after)
            assert jobs.counts()[jobq.JobState.RUNNING] == 0
            assert set(errors.take()) <= {"jobq.job.failed"}
        connection = apsw.Connection(str(path))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        if finished:
            break
    assert finished, "the workload has more statements than rounds"
