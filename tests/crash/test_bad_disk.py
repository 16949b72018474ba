"""A disk that is full, a file that may only be read, and one whose bytes were flipped: typed errors, and no harm."""

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import pytest

import jobq
from jobq.errors import JobqError
from tests.conftest import ErrorLog
from tests.crash.conftest import PATIENCE, ROOT, Program
from tests.crash.verbs import open_world, prepare

Run = Callable[..., Program]
needs_prlimit = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux changes another's limits")


def cpu_seconds(pid: int) -> float:
    """Return how much processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@needs_prlimit
def test_b44_a_worker_waits_out_a_full_disk(run: Run, real_jobs: Callable[..., jobq.JobQueue]) -> None:
    """Every write of its process is refused for a second: it does not spin, loses nothing, and goes on afterwards."""
    jobs, pause = real_jobs(), threading.Event()
    program = run("work", workers={"first": 4})
    (pid,) = program.hear("working")
    made = [jobs.enqueue("ping") for _ in range(5)]
    for one in made:
        one.wait(PATIENCE)

    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    used = cpu_seconds(pid)
    made = [jobs.enqueue("ping") for _ in range(20)]
    pause.wait(1.0)
    used = cpu_seconds(pid) - used
    assert {jobs.get(one.id).state for one in made} == {"queued"}
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))

    assert {(job.state, job.attempts) for job in (one.wait(PATIENCE) for one in made)} == {("succeeded", 1)}
    assert used < 0.5
    assert program.finish() == 0


READ_ONLY = """
import os, stat, sys
import structlog                                        # while everything can be read
import jobq, jobq.cli
path = sys.argv[1]
with jobq.open(path) as jobs:
    jobs.enqueue("kept")
os.chmod(path, 0o444)
os.chmod(os.path.dirname(path), 0o555)
before = open(path, "rb").read()
if os.geteuid() == 0:
    os.seteuid(65534)                                   # root may write everywhere
try:
    with jobq.open(path) as jobs:
        jobs.enqueue("lost")
except jobq.StoreUnavailable as error:
    print("refused", bool(error.fix), flush=True)
if os.getuid() == 0:
    os.seteuid(0)
print("unchanged", open(path, "rb").read() == before, flush=True)
os.chmod(os.path.dirname(path), 0o755)
os.chmod(path, 0o644)
with jobq.open(path) as jobs:
    print(jobs.enqueue("again").id, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="the system has no users in this sense")
def test_b44_a_file_that_may_only_be_read_is_refused_and_unchanged(tmp_path: Path) -> None:
    """In a directory that may only be read: a typed error with a fix; once it may be written, work goes on."""
    (tmp_path / "script.py").write_text(READ_ONLY)
    # Not below pytest's own directory, which is closed to others.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        command = [sys.executable, str(tmp_path / "script.py"), os.path.join(place, "jobs.db")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.stdout.split("\n")[:3] == ["refused True", "unchanged True", "2"], done.stderr


HELD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("SELECT count(*) FROM jobq_job").fetchall()
print("held", flush=True)
sys.stdin.read()
"""
READ_ONLY_FOR_A_WHILE = """
import encodings.idna, os, subprocess, sys
import structlog, jobq                                  # while everything can be read
place, path = os.path.dirname(sys.argv[1]), sys.argv[1]

def as_nobody(*modes):
    os.seteuid(0) if os.getuid() == 0 else None
    for mode, name in zip(modes, [place, *(f"{path}{end}" for end in ("", "-wal", "-shm"))]):
        os.chown(name, 65534, 65534) if os.getuid() == 0 else None
        os.chmod(name, mode)
    os.seteuid(65534) if os.getuid() == 0 else None

with jobq.open(path) as jobs:
    jobs.enqueue("kept")
    jobs.counts()
    other = subprocess.Popen([sys.executable, sys.argv[2], path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()                             # so that the -wal and -shm files stay
with jobq.open(path) as jobs:
    as_nobody(0o555, 0o444, 0o444, 0o444)
    print("read", jobs.counts()["queued"], flush=True)
    for block in (False, True):
        try:
            with jobs.transaction() if block else jobs.read():
                jobs.enqueue("lost")
        except jobq.StoreUnavailable as error:
            print("refused", bool(error.fix), flush=True)
        print("read", jobs.counts()["queued"], flush=True)
    as_nobody(0o755, 0o644, 0o644, 0o644)
    print(jobs.enqueue("again").id, flush=True)
    other.communicate()
"""


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="the system has no users in this sense")
def test_b44_what_was_opened_on_a_read_only_disk_is_opened_again(tmp_path: Path) -> None:
    """Reads go on, writes are refused; the first write works when the disk takes writes again.

    Another process has the file open, so that its -shm file is there: handles that were opened for reading only keep
    all others of their process from writing.
    """
    (tmp_path / "script.py").write_text(READ_ONLY_FOR_A_WHILE)
    (tmp_path / "held.py").write_text(HELD)
    with tempfile.TemporaryDirectory() as place:
        path, script, held = os.path.join(place, "jobs.db"), tmp_path / "script.py", tmp_path / "held.py"
        command = [sys.executable, str(script), path, str(held)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.stdout.split("\n") == ["read 1", *["refused True", "read 1"] * 2, "2", ""], done.stderr


def flip(path: Path, dice: random.Random, flips: int) -> None:
    """Turn some bits of a file over."""
    data = bytearray(path.read_bytes())
    for _ in range(flips):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def schema(path: Path) -> list[object] | None:
    """Return the text of the schema, or None where it cannot be read."""
    connection = apsw.Connection(str(path))
    try:
        return connection.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
    except (apsw.Error, UnicodeDecodeError):
        return None
    finally:
        connection.close()


def use(path: Path, lease: jobq.Lease) -> None:
    """Look at everything and do some of everything; an error that jobq knows ends one step, and not the others."""
    with open_world(path, lease) as world:
        jobs = world.jobs
        steps: list[Callable[[], object]] = [
            lambda: [jobs.get(job.id) for job in jobs.find(limit=None)],
            lambda: [jobs.history(number) for number in range(1, 8)],
            jobs.counts, jobs.queues, jobs.kinds, jobs.changes, jobs.stats, jobs.schedules.list, jobs.doctor,
            lambda: jobs.enqueue("lies", {}),
            lambda: jobs.complete(lease, {"pad": "x"}),
            lambda: jobs.requeue([2, 4]),
            lambda: jobs.prune(older_than=0),
            world.runner.scheduler.tick,
            world.runner.maintenance.tick,
            lambda: world.runner.drain(limit=5),
        ]  # fmt: skip
        for step in steps:
            try:
                step()
            except JobqError:
                continue


@pytest.mark.parametrize(
    "seeds",
    [
        # 90: a count is NULL, which no column takes. 3740: the file says that it has an older schema.
        pytest.param((*range(25), 90, 3_740), id="short"),
        pytest.param(range(2_000), id="long", marks=pytest.mark.storm),
    ],
)
def test_flipped_bytes_are_a_typed_error_or_one_bad_row(tmp_path: Path, errors: ErrorLog, seeds: Sequence[int]) -> None:
    """Nothing but errors of ours comes out of any verb; the file is left to whoever can mend it.

    A schema that still compiles and says something else, such as another CHECK, is not told from one that was made so.
    """
    original, path = tmp_path / "original.db", tmp_path / "jobs.db"
    lease = prepare(original)
    whole = schema(original)
    for seed in seeds:
        for old in tmp_path.glob("jobs.db*"):
            old.unlink()
        shutil.copy(original, path)
        dice = random.Random(seed)
        flip(path, dice, dice.choice([1, 10, 200]))
        if schema(path) not in (whole, None):
            continue
        try:
            use(path, lease)
        except JobqError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        errors.take()
        assert path.exists()
