"""The pytest plugin, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

_TESTS = """
import os, threading
import jobq, pytest
from jobq.testing import FakeClock

PATHS = []

def test_retries_after_backoff(jobq_clock):
    with jobq.open(clock=jobq_clock) as jobs:
        @jobs.job(retry=jobq.RetryPolicy(base=2, jitter=0.25))
        def flaky(payload, job):
            if job.attempt == 1:
                raise ValueError("once")
        flaky.enqueue()
        assert jobq.Runner(jobs).drain().retried == 1
        assert jobq.Runner(jobs).drain().claimed == 0
        jobq_clock.advance("2s")
        assert jobq.Runner(jobs).drain().succeeded == 1

def test_fixtures_belong_together(jobq_queue, jobq_runner, jobq_clock):
    PATHS.append(jobq_queue.path)
    assert isinstance(jobq_clock, FakeClock)
    assert jobq_queue.clock is jobq_clock
    jobq_queue.job(name="mail")(lambda payload: payload)
    made = jobq_queue.enqueue("mail", 5)
    assert jobq_runner.drain().succeeded == 1
    assert jobq_queue.get(made.id).result == 5

def test_nothing_is_left_behind():
    assert not os.path.exists(PATHS[0])
    assert threading.active_count() == 1
"""


def run_pytest(directory: Path, tests: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a test file in a new process that has no other plugin than ours."""
    (directory / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "jobq.pytest_plugin", "-q", "-p", "no:cacheprovider", *options]
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": root}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=60)


def test_fixtures_drive_jobs_without_waiting(tmp_path: Path) -> None:
    """A clock, a temporary queue on it, a runner for it; gone after the test."""
    done = run_pytest(tmp_path, _TESTS)

    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_plugin_does_nothing_by_itself(tmp_path: Path) -> None:
    """A test that asks for no fixture of ours gets none: no automatic ones, no hooks."""
    done = run_pytest(tmp_path, "def test_it(request):\n    assert request.fixturenames == ['request']\n")

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_fixtures_are_listed_with_what_they_are(tmp_path: Path) -> None:
    """``pytest --fixtures`` documents them."""
    done = run_pytest(tmp_path, "", "--fixtures")

    for fixture in ("jobq_clock", "jobq_queue", "jobq_runner"):
        assert fixture in done.stdout
        assert f"{fixture} -- no docstring" not in done.stdout
