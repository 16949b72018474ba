"""What the job queues of one file in one process share, and opening them."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq import (
    ArgumentError,
    CancelToken,
    Config,
    ConfigError,
    Handlers,
    JobQueue,
    JobStateChanged,
    QueueClosed,
    RetryPolicy,
    SystemClock,
)
from jobq.database import LiveRuns
from jobq.testing import FakeClock
from tests.conftest import PATIENCE

Again = Callable[..., JobQueue]


def test_two_opens_of_one_path_share_bus_gates_and_live_runs(tmp_path: Path) -> None:
    """By the file, not by the text of its path; another file shares nothing."""
    (tmp_path / "link.db").symlink_to(tmp_path / "jobs.db")
    with (
        jobq.open(tmp_path / "jobs.db") as one,
        jobq.open(str(tmp_path / "link.db")) as two,
        jobq.open(tmp_path / "other.db") as other,
    ):
        assert one.bus is two.bus
        assert one.live is two.live
        assert one.gate("llm", permits=3) is two.gate("llm")
        assert one.bus is not other.bus
        assert one.gate("llm") is not other.gate("llm")


def test_two_opens_have_their_own_handlers_configuration_and_clock(tmp_path: Path) -> None:
    """They share the data, not the settings."""
    clock, handlers = FakeClock(), Handlers()
    handlers.job(name="mail")(lambda payload: None)
    with (
        jobq.open(tmp_path / "jobs.db", clock=clock, handlers=handlers, config=Config(hand=1)) as one,
        jobq.open(tmp_path / "jobs.db") as two,
    ):
        made = one.enqueue("mail")

        assert (one.handlers.kinds(), two.handlers.kinds()) == (("mail",), ())
        assert (one.config.hand, two.config.hand) == (1, 32)
        assert (one.clock, type(two.clock)) == (clock, SystemClock)
        assert two.get(made.id).created_at == clock.now()


def test_event_of_one_job_queue_is_heard_through_the_other(jobs: JobQueue, open_again: Again) -> None:
    """One bus per file and process."""
    told: list[JobStateChanged] = []
    jobs.bus.subscribe(JobStateChanged, told.append)

    made = open_again().enqueue("mail")

    assert [event.job_id for event in told] == [made.id]


def test_last_close_ends_the_sharing(tmp_path: Path) -> None:
    """The first leaves the other at work; after the last the file is opened afresh."""
    one, two = jobq.open(tmp_path / "jobs.db"), jobq.open(tmp_path / "jobs.db")
    bus = one.bus
    made = one.enqueue("mail")

    one.close()
    one.close()
    assert two.get(made.id).kind == "mail"
    two.close()
    with jobq.open(tmp_path / "jobs.db") as three:
        assert three.bus is not bus
        assert three.get(made.id).kind == "mail"


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(lambda jobs: jobs.enqueue("mail"), id="enqueue"),
        pytest.param(lambda jobs: jobs.get(1), id="get"),
        pytest.param(lambda jobs: jobs.cancel(1), id="cancel"),
        pytest.param(lambda jobs: jobs.lease(worker="w"), id="lease"),
        pytest.param(lambda jobs: jobs.wait(1, 0), id="wait"),
        pytest.param(lambda jobs: jobs.pause("default"), id="pause"),
        pytest.param(lambda jobs: jobs.doctor(), id="doctor"),
    ],
)
def test_verbs_after_close_are_refused(open_again: Again, verb: Callable[[JobQueue], object]) -> None:
    """Although another job queue keeps the file open."""
    jobs = open_again()
    jobs.close()

    with pytest.raises(QueueClosed):
        verb(jobs)


def test_temporary_job_queue_vanishes_with_its_last_close(clock: FakeClock) -> None:
    """Its directory is private, and removed."""
    jobs = jobq.open(clock=clock)
    directory = Path(jobs.path).parent
    jobs.enqueue("mail")
    again = jobq.open(jobs.path)

    assert directory.stat().st_mode & 0o077 == 0
    jobs.close()
    assert len(again.find()) == 1
    again.close()
    assert not directory.exists()


_FORGETFUL = """
import os, jobq
jobs = jobq.open()
jobs.enqueue("mail")
child = os.fork()
if child == 0:
    raise SystemExit(0 if jobs.find() else 1)
assert os.waitpid(child, 0)[1] == 0
assert os.path.exists(jobs.path)
assert len(jobs.find()) == 1
print(os.path.dirname(jobs.path))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_temporary_job_queue_vanishes_when_its_maker_exits() -> None:
    """Not when a forked child does, which leaves the parent's file alone."""
    done = subprocess.run([sys.executable, "-c", _FORGETFUL], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert not os.path.exists(done.stdout.strip())


def test_b48_fork_leaves_the_child_a_fresh_bus_and_no_live_runs() -> None:
    """The child tells its own changes, although the parent was telling one when it forked."""
    script = """
import os, jobq
jobs = jobq.open()
told = []
jobs.bus.subscribe(jobq.JobStateChanged, told.append)
jobs.live[(1, "t")] = jobq.CancelToken(jobs.clock)
gate = jobs.gate("llm")
gate.try_acquire()
jobs.bus._events._handing_on._who = jobs
child = os.fork()
if child == 0:
    jobs.enqueue("child")
    os._exit(0 if (len(told), len(jobs.live), gate.free) == (1, 0, 1) else 1)
jobs.bus._events._handing_on._who = None
assert os.waitpid(child, 0)[1] == 0
assert (len(jobs.live), gate.free) == (1, 0)
jobs.enqueue("parent")
assert [event.kind for event in told] == ["parent"]
assert [job.kind for job in jobs.find()] == ["parent", "child"]
jobs.close()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(":memory:", id="memory"),
        pytest.param("", id="empty"),
        pytest.param("file:jobs.db?mode=memory", id="URI"),
        pytest.param("a\0b", id="NUL"),
        pytest.param(b"jobs.db", id="bytes"),
        pytest.param(7, id="number"),
    ],
)
def test_open_refuses_what_is_no_file(path: Any) -> None:
    """With the advice to use a temporary one."""
    with pytest.raises(ArgumentError) as raised:
        jobq.open(path)

    assert "jobq.open()" in str(raised.value.fix)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        pytest.param("handlers", [1], id="handlers"),
        pytest.param("handlers", 5, id="handlers a number"),
        pytest.param("config", {"lease": 5}, id="config a dict"),
        pytest.param("redact", "secret", id="redact a text"),
    ],
)
def test_open_refuses_arguments_of_the_wrong_type(argument: str, value: Any, tmp_path: Path) -> None:
    """Before anything is opened."""
    with pytest.raises(ArgumentError) as raised:
        jobq.open(tmp_path / "jobs.db", **{argument: value})

    assert raised.value.argument == argument
    assert list(tmp_path.iterdir()) == []


def test_open_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither a handle nor a share, nor an attachment to the registries."""
    one, two = Handlers(), Handlers()
    mail = one.job(name="mail")(lambda payload: None)
    two.job(name="mail")(lambda payload: None)

    with pytest.raises(ConfigError):
        jobq.open(tmp_path / "jobs.db", handlers=[one, two])
    with jobq.open(tmp_path / "jobs.db", handlers=one):
        assert mail.enqueue().created


def test_open_takes_several_registries(jobs: JobQueue, open_again: Again) -> None:
    """Their handlers stand side by side."""
    one, two = Handlers(), Handlers()
    one.job(name="mail")(lambda payload: None)
    two.job(name="letter")(lambda payload: None)

    assert open_again(handlers=(one, two)).handlers.kinds() == ("letter", "mail")


def test_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that changes its directory later still finds its file."""
    monkeypatch.chdir(tmp_path)
    with jobq.open("jobs.db") as jobs:
        monkeypatch.chdir("/")
        jobs.enqueue("mail")

        assert jobs.path == str(tmp_path / "jobs.db")


def test_clock_that_is_fake_takes_the_jitter_away(jobs: JobQueue, clock: FakeClock, open_again: Again) -> None:
    """A test can name the instant of each retry."""
    handlers = Handlers()
    handlers.job(name="mail", retry=RetryPolicy(base=100, jitter=1))(lambda payload: None)
    consumer = open_again(handlers=handlers)
    consumer.enqueue("mail")
    (lease,) = consumer.lease(worker="w")

    consumer.fail(lease, "no")

    assert (jobs.get(lease.id).run_at - clock.now()).total_seconds() == 100


def test_opening_and_closing_from_many_threads(tmp_path: Path) -> None:
    """The shared parts are made once at a time and never closed under a user."""
    start, failures = threading.Barrier(8), []

    def use() -> None:
        start.wait(PATIENCE)
        for _ in range(5):
            try:
                with jobq.open(tmp_path / "jobs.db") as jobs:
                    assert jobs.enqueue("mail").created
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert failures == []
    with jobq.open(tmp_path / "jobs.db") as jobs:
        assert len(jobs.find(limit=None)) == 40


def test_live_runs_tells_the_runs_by_job(clock: FakeClock) -> None:
    """Each with its job's id, whatever the lease token."""
    live, tokens = LiveRuns(), [CancelToken(clock) for _ in range(3)]
    live[(1, "a")], live[(2, "b")], live[(1, "c")] = tokens

    assert live.now() == [(1, tokens[0]), (2, tokens[1]), (1, tokens[2])]
