"""Waiting for a job to end."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from jobq import JobNotFound, JobQueue, JobState, WaitTimeout
from tests.conftest import PATIENCE

_ELSEWHERE = """
import sys, jobq
with jobq.open(sys.argv[1]) as jobs:
    sys.stdin.readline()
    jobs.cancel(int(sys.argv[2]))
"""


def in_background(wait: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Start to wait on another thread; the list gets the answer."""
    answers: list[object] = []
    # A daemon, so that a wait that never ends fails its test and does not hang the suite.
    thread = threading.Thread(target=lambda: answers.append(wait()), daemon=True)
    thread.start()
    return thread, answers


def test_wait_returns_a_job_that_has_ended_already(jobs: JobQueue) -> None:
    """At once, whatever the timeout."""
    made = jobs.enqueue("mail")
    jobs.cancel(made.id)

    assert jobs.wait(made.id, timeout=0) == jobs.get(made.id)
    assert made.wait(0).state == JobState.CANCELLED


def test_wait_is_woken_by_an_end_in_this_process(jobs: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the bus alone: the change counter stands still here."""
    made = jobs.enqueue("mail")
    looked = threading.Event()
    monkeypatch.setattr(jobs.store, "data_version", lambda: looked.set() or 1)
    thread, answers = in_background(lambda: made.wait())
    assert looked.wait(PATIENCE)

    jobs.cancel(made.id)
    thread.join(PATIENCE)

    assert answers == [jobs.get(made.id)]


def test_wait_sees_an_end_in_another_process(jobs: JobQueue) -> None:
    """Through the change counter of the file."""
    made = jobs.enqueue("mail")
    child = subprocess.Popen(
        [sys.executable, "-c", _ELSEWHERE, jobs.path, str(made.id)], stdin=subprocess.PIPE, env=os.environ
    )
    thread, answers = in_background(lambda: made.wait())

    child.communicate(b"go\n", timeout=PATIENCE)
    thread.join(PATIENCE)

    assert answers == [jobs.get(made.id)]
    assert jobs.get(made.id).state == JobState.CANCELLED


def test_wait_goes_on_over_a_retry(jobs: JobQueue) -> None:
    """A failed attempt is no end."""
    made = jobs.enqueue("mail")
    (lease,) = jobs.lease(worker="w")
    thread, answers = in_background(lambda: made.wait())

    jobs.fail(lease, "no luck")
    jobs.cancel(made.id)
    thread.join(PATIENCE)

    assert answers == [jobs.get(made.id)]


def test_wait_times_out_in_real_time(jobs: JobQueue) -> None:
    """The error says what the job is doing; the fake clock has nothing to do with it."""
    made = jobs.enqueue("mail")
    began = time.monotonic()

    with pytest.raises(WaitTimeout) as raised:
        jobs.wait(made.id, timeout="30ms")

    assert 0.02 < time.monotonic() - began < PATIENCE
    assert (raised.value.job_id, raised.value.state, raised.value.seconds) == (made.id, "queued", 0.03)
    assert isinstance(raised.value, TimeoutError)


def test_wait_for_an_unknown_job(jobs: JobQueue) -> None:
    """There is nothing to wait for."""
    with pytest.raises(JobNotFound):
        jobs.wait(99)


def test_wait_leaves_no_watcher_behind(jobs: JobQueue) -> None:
    """However it ends."""
    made = jobs.enqueue("mail")
    for job_id in (made.id, 99):
        with pytest.raises((WaitTimeout, JobNotFound)):
            jobs.wait(job_id, timeout=0)

    assert jobs.bus._watchers == ()
