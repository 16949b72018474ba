"""B48: a fork in each state that a job queue can be in; the child enqueues or is refused, the parent goes on."""

import subprocess
import sys
from pathlib import Path

import apsw
import attrs
import pytest

from tests.crash.conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the system has no fork")

PROGRAM = """
import os, sys, threading
import jobq

# Each state in a process of its own, which was forked before anything was opened.
for state in sys.argv[3:]:
    path = os.path.join(sys.argv[1], state + ".db")
    pid = os.fork()
    if not pid:
        break
    os.waitpid(pid, 0)
else:
    sys.exit()
CHILD, PARENT = 20, int(sys.argv[2])
config = jobq.Config(durability="relaxed")


def fork():
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        own = jobs if state != "not-open" else jobq.open(path, config=config)
        if state == "closed":
            own = jobq.open(path, config=config)
        for _ in range(CHILD):
            own.enqueue("child")
        assert not runner or (runner.health().workers, runner.health().running) == (0, False)
        code = 0
    except jobq.ForkedHandle as error:
        code = 42 if error.fix else 43
    finally:
        os._exit(code)


def fork_in_handler(payload, job):
    codes.append(fork())


codes, runner, jobs = [], None, None
if state == "not-open":
    codes.append(fork())
jobs = jobq.open(path, config=config)
jobs.job(name="forks", queue="forks")(fork_in_handler)
jobs.job(name="quick", queue="forks")(lambda payload: None)
if state not in ("not-open", "not-used"):
    jobs.enqueue("before")
if state in ("not-used", "used"):
    codes.append(fork())
elif state == "reading":
    with jobs.read():
        codes.append(fork())
elif state == "writing":
    with jobs.transaction():
        codes.append(fork())
elif state == "leasing":
    jobs.enqueue("quick")
    (lease,) = jobs.lease("quick", worker="w")
    codes.append(fork())
    jobs.complete(lease)
elif state == "watching":
    stream = jobs.bus.stream()
    codes.append(fork())
    stream.close()
elif state == "draining":
    jobs.enqueue("forks")
    jobq.Runner(jobs).drain()
elif state == "closed":
    jobs.close()
    codes.append(fork())
    jobs = jobq.open(path, config=config)
elif state in ("running", "busy", "stopped", "in-a-handler"):
    runner = jobq.Runner(jobs, workers={"forks": 2})
    runner.start()
    if state == "busy":
        made = [jobs.enqueue("quick") for _ in range(100)]
    if state == "stopped":
        runner.stop()
    if state == "in-a-handler":
        jobs.enqueue("forks").wait(20)
    else:
        codes.append(fork())
    runner.stop()
for _ in range(PARENT):
    jobs.enqueue("parent")
print(state, codes, len(jobs.find(kind="parent", limit=None)), len(jobs.find(kind="child", limit=None)))
jobs.close()
"""
#: Where a handle cannot be closed before the fork, because it is in use by the thread that forks.
REFUSED = ("reading", "writing")
STATES = (
    "not-open", "not-used", "used", "reading", "writing", "leasing", "watching", "draining", "closed", "running",
    "busy", "stopped", "in-a-handler",
)  # fmt: skip


@attrs.frozen
class Ended:
    """Where the files of all states are, how many jobs the parent made, what was printed and what complained of."""

    place: Path
    jobs: int
    told: dict[str, str]
    complaints: str


@pytest.fixture(
    scope="module", params=[pytest.param(200, id="short"), pytest.param(1_000, id="long", marks=pytest.mark.storm)]
)
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All states were forked in."""
    place = tmp_path_factory.mktemp("states")
    program = place / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", program, place, str(request.param), *STATES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    return Ended(place, request.param, dict(line.split(" ", 1) for line in done.stdout.splitlines()), done.stderr)


@pytest.mark.parametrize("state", STATES)
def test_b48_a_fork_in_each_state_loses_nothing(ended: Ended, state: str) -> None:
    """The child's jobs are there, or none and it was told why; all of the parent's are, and the file is sound."""
    code, children = (42, 0) if state in REFUSED else (0, 20)
    assert ended.told.get(state) == f"[{code}] {ended.jobs} {children}", ended.complaints
    connection = apsw.Connection(str(ended.place / f"{state}.db"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
