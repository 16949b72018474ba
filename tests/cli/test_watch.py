"""``jobq watch`` and the numbers that it shares with ``jobq stats``."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

import jobq
from jobq.cli.figures import age
from jobq.cli.screen import draw
from jobq.model.progress import Progress
from jobq.model.runner import RunnerRow
from jobq.testing import FakeClock
from tests.cli.conftest import ROOT, Answer, finish, start

Cli = Callable[..., Answer]
SCREENS = Path(__file__).parent / "screens"


@pytest.fixture
def shop() -> Iterator[jobq.JobQueue]:
    """A job queue in which a bit of everything goes on."""
    clock = FakeClock()
    with jobq.open(clock=clock) as jobs:
        jobs.enqueue_many([jobq.NewJob("send_receipt", queue="mail")] * 1204)
        jobs.pause("mail", why="smtp is down until the evening")
        names = ["hash_file", "hash_file", "hash_file", "import_customers_from_the_old_system", "broken"]
        jobs.enqueue_many([jobq.NewJob(name, max_attempts=1) for name in names])
        leases = jobs.lease(kinds=names[:4], worker="build-7:2311:default-1", limit=4, length="1h")
        told = [Progress(64, 100, "chapter 3"), Progress(3, 100), Progress(1234.5, None, "\x1b[31mred")]
        for lease, progress in zip(leases, told, strict=False):
            jobs.store.report(lease.job.id, lease.token, progress.to_json())
        jobs.cancel(leases[1].job.id)
        clock.advance("3m5s")
        (lease,) = jobs.lease(kinds=["broken"], worker="w")
        error = "ConnectionError: smtp.example.org refused the connection after 30 seconds \x1b[31m"
        jobs.fail(lease, error, code="smtp")
        jobs.enqueue_many([jobq.NewJob("resize")] * 3)
        clock.advance("12s")
        now = clock.now()
        row = RunnerRow("r", "build-7", 2**40, {"default": 1}, (), "b", 0.0, now - timedelta(hours=1), now)
        jobs.store.beat_runner(row._replace(host="elsewhere"))
        yield jobs


def screen(jobs: jobq.JobQueue, width: int, height: int = 24) -> str:
    """Return what the live view shows on a terminal of this size without colours."""
    console = Console(record=True, width=width, height=height, file=io.StringIO(), no_color=True, force_terminal=True)
    console.print(draw(jobs.stats(), "/srv/shop/jobs.db", width=width, height=height))
    return "".join(f"{line.rstrip()}\n" for line in console.export_text().splitlines())


@pytest.mark.parametrize("width", [80, 120])
def test_screen_is_the_one_that_was_looked_at(shop: jobq.JobQueue, width: int) -> None:
    """Aligned, with units, nothing cut that matters, control characters escaped."""
    assert screen(shop, width) == (SCREENS / f"busy_{width}.txt").read_text(encoding="utf-8")


def test_screen_of_an_idle_job_queue_says_so(jobs: jobq.JobQueue) -> None:
    """In words instead of empty tables."""
    shown = screen(jobs, 80)

    for words in ("no jobs are running", "no job has failed", "no runnable job waits, no runners alive"):
        assert words in shown


@pytest.mark.parametrize(("width", "height"), [(1, 1), (20, 10), (40, 15), (80, 15), (80, 24), (80, 50), (200, 60)])
def test_screen_fits_the_terminal_and_counts_what_does_not(shop: jobq.JobQueue, width: int, height: int) -> None:
    """However much goes on; whole numbers are shown, names give way."""
    for number in range(60):
        shop.enqueue("thumbnail" * 9, queue=f"q{number}-" + "x" * 20)
    shop.lease(kinds=["thumbnail" * 9], worker="w" * 90, limit=55)

    lines = screen(shop, width, height).splitlines()

    assert len(lines) <= max(height, 15)
    assert max(map(len, lines)) <= width
    if width >= 40:
        assert any(line.startswith("and ") and "more are running" in line for line in lines)
    if width >= 80:
        assert any(line.split()[1:4] == ["1,204", "0", "0"] for line in lines)
        assert "running  kind" in "\n".join(lines)


def test_hidden_queue_is_shown_with_all_only(jobs: jobq.JobQueue) -> None:
    """As in other listings; the totals count its jobs."""
    config = jobq.Config(queues={"secret": jobq.QueueConfig(hidden=True)})
    with jobq.open(jobs.path, config=config) as configured:
        configured.enqueue("a", queue="secret")

    stats = jobs.stats()

    assert list(stats.by_queue()) == ["default"]
    assert list(stats.by_queue(hidden=True)) == ["default", "secret"]
    assert stats.total.states["queued"] == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0.9, "0s"), (59.9, "59s"), (60, "1m00s"), (3725, "1h02m"), (86_400 * 3 + 3600 * 4, "3d04h")],
)
def test_ages_have_two_units(seconds: float, text: str) -> None:
    """Short enough for a column, exact enough for a person."""
    assert age(seconds) == text


def test_off_a_terminal_a_line_is_written_when_something_changed(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Two looks at the same state are one line."""
    jobs.enqueue("a")

    answer = cli("watch", "--db", jobs.path, "--count", 2, "--interval", "1ms")

    (line,) = answer.out.splitlines()
    assert answer.code == 0
    assert "1 queued, 0 running" in line
    assert "the oldest runnable job waits 0s; no runners alive" in line
    assert "\x1b" not in answer.out


def test_watch_and_stats_carry_the_same_numbers(cli: Cli, jobs: jobq.JobQueue) -> None:
    """One document; an age may have grown."""
    jobs.enqueue("a", queue="mail")
    jobs.fail(jobs.lease(kinds=["a"], worker="w")[0], "no")
    jobs.lease(kinds=[jobs.enqueue("b").job.kind], worker="w")  # type: ignore[union-attr]

    (watched,) = cli("watch", "--db", jobs.path, "--json", "--count", 1).lines
    counted = cli("stats", "--db", jobs.path, "--json").json

    for document in (watched, counted):
        document.pop("at")
        document.pop("oldest_runnable")
        for name in ("queues", "kinds"):
            for tally in document[name].values():
                tally.pop("oldest_runnable")
    assert watched == counted
    assert [job["kind"] for job in watched["running"]] == ["b"]
    assert watched["queues"]["mail"]["last_minute"] == {"succeeded": 0, "failed": 0, "cancelled": 0}


def test_watch_follows_other_processes_without_the_write_lock_and_leaves_quietly(jobs: jobq.JobQueue) -> None:
    """It reads while somebody holds the lock, sees the commit, and ends with exit code 0 on Ctrl-C."""
    with jobs.transaction():
        jobs.enqueue("a")
        process = start("watch", "--db", jobs.path, "--json", "--interval", "10ms", cwd=ROOT)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["states"]["queued"] == 0
    while json.loads(process.stdout.readline())["states"]["queued"] == 0:
        pass

    process.send_signal(signal.SIGINT)
    answer = finish(process)

    assert (answer.code, answer.err) == (0, "")


def test_live_view_fills_a_terminal_and_gives_it_back(jobs: jobq.JobQueue) -> None:
    """The other screen, no colours with NO_COLOR, and no traceback at the end."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}
    command = [sys.executable, "-m", "jobq", "watch", "--db", jobs.path, "--interval", "50ms"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while b"no job has failed" not in shown:
        shown += os.read(ours, 65_536)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    while b"\x1b[?1049l" not in shown:
        shown += os.read(ours, 65_536)
    os.close(ours)

    assert b"\x1b[?1049h" in shown
    assert b"\x1b[3" not in shown.replace(b"\x1b[3J", b"")
    assert b"Traceback" not in shown
