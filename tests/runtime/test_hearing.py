"""The watch and the doorbell: a ring brings a look, and who does not hear polls."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.doorbell import Doorbell
from jobq.runtime.ear import Ear
from jobq.runtime.hand import Hand
from jobq.runtime.watch import HEARING
from jobq.service import IN_USE
from tests.runtime.conftest import PATIENCE
from tests.runtime.test_watch import Watched

Open = Callable[..., jobq.JobQueue]

#: A runner that polls once a minute, and says when its threads wait.
PROGRAM = """
import sys, time, jobq
import jobq.runtime.watch
jobq.runtime.watch.FAST = 600
jobs = jobq.open(sys.argv[1], config=jobq.Config(poll=60))
@jobs.job
def note(payload):
    return "heard"
with jobq.Runner(jobs, workers={"default": 2}) as runner:
    watch = runner._parts.watch
    while not (all(pool.idle for pool in runner._crew.pools) and watch._ear.listening and watch._resting >= 60):
        time.sleep(0.01)
    print("idle", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hearing(jobs: jobq.JobQueue) -> Iterator[tuple[Watched, Ear]]:
    """A watch over an idle pool, with an ear, and without the thread that would wait."""
    watched = Watched(jobs)
    bell = watched.parts.watch.make_bell()
    assert isinstance(bell, Ear)
    watched.parts.watch.pause()
    yield watched, bell
    bell.close()
    watched.close()


def test_a_job_of_another_process_needs_no_poll(tmp_path: Path) -> None:
    """A runner that would look in minutes takes it at once, because the other process rings."""
    path = str(tmp_path / "a.db")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "idle\n"
        with jobq.open(path) as jobs:
            ended = jobs.enqueue("note").wait(PATIENCE)
        process.communicate("")

    assert ended.result == "heard"
    assert process.returncode == 0


def test_a_ring_brings_one_look(hearing: tuple[Watched, Ear], open_again: Any) -> None:
    """Many rings too, and where nothing was committed meanwhile it is the change counter that is read, no more."""
    watched, ear = hearing
    door = Doorbell(watched.jobs.path)
    for _ in range(5):
        door.want()
        door.ring()
    door.close()
    assert ear.wait(PATIENCE)
    ear.clear()
    watched.parts.watch.tick()

    assert watched.verbs.calls == {"data_version": 1}
    assert not ear.wait(0)


def test_who_hears_polls_less_often(hearing: tuple[Watched, Ear]) -> None:
    """The pause grows beyond that of a runner that only polls."""
    watch = hearing[0].parts.watch
    for _ in range(50):
        watch.tick()

    assert watch.pause() == HEARING > hearing[0].jobs.config.poll


def test_who_runs_jobs_looks_for_cancel_requests_all_the_same(hearing: tuple[Watched, Ear]) -> None:
    """They come without a ring, and are to reach the handler within a second."""
    jobs, parts = hearing[0].jobs, hearing[0].parts
    jobs.enqueue("note")
    claims: list[Any] = []
    parts.exchange.settle_and_claim((), claims, workers=("w",), queues=None, hand=1)
    parts.held.add(Hand(claims, claimed_at=jobs.clock.monotonic()))
    for _ in range(50):
        parts.watch.tick()

    assert parts.watch.pause() == IN_USE


def test_a_job_that_came_without_a_ring_makes_it_poll_as_if_deaf(hearing: tuple[Watched, Ear], open_again: Any) -> None:
    """Somebody commits who cannot reach its socket; his next job is not to wait for so long."""
    watched, _ = hearing
    open_again().enqueue("note")
    watched.parts.watch.tick()
    assert watched.woken
    for _ in range(50):
        watched.parts.watch.tick()

    assert watched.parts.watch._longest() == watched.jobs.config.poll


def test_it_does_not_listen_while_every_thread_is_busy(open_real: Open) -> None:
    """Rings would disturb those who work; who becomes idle finds them."""
    jobs = open_real(poll=60)
    began, proceed = threading.Event(), threading.Event()

    @jobs.job
    def slow(payload: Any) -> None:
        began.set()
        assert proceed.wait(PATIENCE)

    jobs.enqueue("slow")
    with jobq.Runner(jobs, workers={"default": 1}) as runner:
        assert began.wait(PATIENCE)
        watch = runner._parts.watch
        watch.pause()
        assert watch._ear is not None
        assert not watch._ear.listening
        proceed.set()


def test_a_drain_has_no_ear(jobs: jobq.JobQueue) -> None:
    """It looks for work by itself."""
    made = jobq.Runner(jobs)

    assert not isinstance(made._parts.watch.make_bell(), Ear)
