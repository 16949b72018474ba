"""The worker in POSIX shell, exactly as README.rst prints it, against a real file and ``kill -9``."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import jobq
from tests.crash.conftest import PATIENCE, ROOT

#: The command that the workers run: the first run of payload 2 never ends, payload 3 fails.
COMMAND = """\
#!/bin/sh
payload=$(cat)
echo "$payload" >>ran
case $payload in
*2*) mkdir hung 2>/dev/null && exec sleep 1000 ;;
*3*) echo "no such page" >&2; exit 7 ;;
esac
printf '{"saw": %s}\\n' "$payload"
"""


def script() -> str:
    """Return the script that the README prints."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    _, _, rest = text.partition(".. code-block:: sh\n   :name: worker.sh\n\n")
    block, _, _ = rest.partition("\n\n")
    return textwrap.dedent(block) + "\n"


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[jobq.JobQueue]:
    """A job queue in a file that counts how often each of its jobs ended."""
    with jobq.open(tmp_path / "jobs.db") as opened:
        opened.queues()
        with closing(apsw.Connection(opened.path)) as connection:
            connection.execute("""
                CREATE TABLE ended (job INTEGER, state TEXT);
                CREATE TRIGGER note_end AFTER UPDATE ON jobq_job WHEN new.finished_at IS NOT NULL
                BEGIN INSERT INTO ended VALUES (new.id, new.state); END
            """)
        yield opened


@pytest.fixture
def start_worker(jobs: jobq.JobQueue, tmp_path: Path) -> Iterator[Callable[[], "subprocess.Popen[bytes]"]]:
    """Starts the script as a process; what it leaves behind is killed after the test."""
    (tmp_path / "worker.sh").write_text(script())
    (tmp_path / "command").write_text(COMMAND)
    (tmp_path / "jobq").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jobq "$@"\n')
    for name in ("command", "jobq"):
        (tmp_path / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JOBQ_")}
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**kept, "PATH": path, "PYTHONPATH": str(ROOT), "JOBQ_DB": jobs.path, "LENGTH": "3"}
    started: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            ["sh", "worker.sh", "page", "./command"],
            cwd=tmp_path,
            env={**environment, "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a worker has done something."""
    pause = threading.Event()
    for _ in range(int(3 * PATIENCE / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("it did not happen in time")


def test_a_shell_worker_that_is_killed_loses_nothing(
    jobs: jobq.JobQueue, start_worker: Callable[[], "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    """It keeps its lease alive while it lives; then another takes the job over, and each job ends once."""
    made = [jobs.enqueue("page", n, max_attempts=1 if n == 3 else 5).id for n in (1, 2, 3)]
    first = start_worker()
    wait_for((tmp_path / "hung").exists)
    stuck = jobs.find(state="running")[0]
    wait_for(lambda: jobs.get(stuck.id).lease_until > stuck.lease_until)  # type: ignore[operator]
    first.kill()
    first.wait(PATIENCE)

    start_worker()
    wait_for(lambda: jobs.counts()["queued"] + jobs.counts()["running"] == 0)

    found = {job.payload: job for job in map(jobs.get, made)}
    assert (found[1].result, found[2].result) == ({"saw": 1}, {"saw": 2})
    assert (found[3].state, found[3].last_error) == ("failed", "exit 7: no such page")
    assert [run.error for run in jobs.history(found[2].id)] == ["lease expired"]
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2", "2", "3"]
    with jobs.read() as snapshot:
        assert sorted(snapshot.execute("SELECT job FROM ended")) == [(job_id,) for job_id in made]
