"""``jobs.doctor()``: each finding can be made to appear, and a healthy file has none."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import apsw
import attrs
import pytest

import jobq
from jobq.model.runner import RunnerRow
from jobq.store.sqlite import examine
from jobq.testing import FakeClock
from tests.conftest import ErrorLog

MIB = 1024 * 1024


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the test."""
    return tmp_path / "jobs.db"


@pytest.fixture
def ill(path: Path, clock: FakeClock) -> Iterator[jobq.JobQueue]:
    """A job queue on that file, in which a test makes something go wrong."""
    with jobq.open(path, clock=clock) as opened:
        yield opened


def wrong(jobs: jobq.JobQueue, *, deep: bool = False) -> dict[str, jobq.Finding]:
    """Return what is found to be wrong, by check."""
    return {finding.check: finding for finding in jobs.doctor(deep=deep) if not finding.ok}


def runner(jobs: jobq.JobQueue, *, ahead: str = "0s", **fields: object) -> RunnerRow:
    """Write the row of a live runner that serves one queue and one kind."""
    clock = FakeClock(jobs.clock.now())
    clock.advance(ahead)
    row = RunnerRow("r", "elsewhere", 1, {"default": 1}, ("k",), "b", 0.0, clock.now(), clock.now())._replace(**fields)
    jobs.store.beat_runner(row)
    return row


def healthy(jobs: jobq.JobQueue) -> None:
    """Some of everything, and all of it well."""
    runner(jobs)
    jobs.enqueue("k", "x" * 10_000)
    jobs.enqueue("k", delay="1h")
    jobs.schedules.add("s", every="1h", kind="k")
    (_,) = jobs.lease("k")
    jobs.cancel([job.id for job in jobs.find(state="queued", limit=1)])
    jobs.pause("default"), jobs.resume("default")


@pytest.mark.parametrize("deep", [False, True])
def test_healthy_file_has_no_finding(ill: jobq.JobQueue, deep: bool) -> None:
    """Every check says what it saw; only ``deep`` reads the whole file."""
    healthy(ill)
    findings = ill.doctor(deep=deep)

    assert [finding for finding in findings if not finding.ok] == []
    assert all(finding.detail and finding.fix is None for finding in findings)
    assert ("integrity" in {finding.check for finding in findings}) is deep
    assert len({finding.check for finding in findings}) == len(findings)


def test_doctor_changes_nothing(ill: jobq.JobQueue) -> None:
    """Not even where something is wrong."""
    ill.enqueue("k")
    ill.doctor()
    before = ill.store.data_version()

    ill.doctor(deep=True)

    assert ill.store.data_version() == before


def pile_up(jobs: jobq.JobQueue) -> None:
    """Leave a quarter of a file free that is not small."""
    made = jobs.enqueue_many([jobq.NewJob("k", "x" * (MIB - 100)) for _ in range(18)])
    jobs.cancel(ids := [one.id for one in made])
    jobs.store.prune(ids, state=jobq.JobState.CANCELLED, ended_before=jobs.clock.now())


def overdue(jobs: jobq.JobQueue) -> None:
    """Let a slot pass that nobody ticks."""
    jobs.schedules.add("s", every="1h", kind="k")
    jobs.clock.advance("1h2m")  # type: ignore[attr-defined]


def lapse(jobs: jobq.JobQueue) -> None:
    """Let a lease run out."""
    jobs.enqueue("k")
    jobs.lease("k", length="10s")
    jobs.clock.advance("13s")  # type: ignore[attr-defined]


def retire(jobs: jobq.JobQueue) -> None:
    """Leave a job of a kind that is retired."""
    jobs.enqueue("old")
    jobs.handlers.retire("old")
    jobs.register()


def pause(jobs: jobq.JobQueue) -> None:
    """Leave jobs in a paused queue."""
    jobs.enqueue("k")
    jobs.pause("default")


@pytest.mark.parametrize(
    ("make", "check", "says"),
    [
        pytest.param(lambda jobs: (jobs.enqueue("k"), jobs.store.remove_runner("r")), "runners", "none alive", id="no"),
        pytest.param(lambda jobs: (jobs.enqueue("k"), jobs.clock.advance("121s")), "runners", "elsewhere", id="silent"),
        pytest.param(lambda jobs: jobs.enqueue("k", queue="mail"), "queues", "mail", id="unserved queue"),
        pytest.param(lambda jobs: jobs.enqueue("new"), "kinds", "new", id="unknown kind"),
        pytest.param(retire, "retired kinds", "old", id="retired kind"),
        pytest.param(pause, "pauses", "default", id="pause"),
        pytest.param(lapse, "leases", "1 of 1 ran out: jobs 1", id="lease"),
        pytest.param(overdue, "schedules", "overdue: s", id="overdue schedule"),
        pytest.param(lambda jobs: runner(jobs, ahead="2m"), "rows' times", "runner r", id="runner ahead"),
        pytest.param(lambda jobs: (jobs.enqueue("k"), jobs.clock.jump("-2m")), "rows' times", "job 1", id="job ahead"),
        pytest.param(lambda jobs: os.chmod(jobs.path, 0o666), "permissions", "0666", id="everybody may write"),
        pytest.param(lambda jobs: os.utime(jobs.path, (2**31, 2**31)), "clock", "from now", id="file of the future"),
        pytest.param(pile_up, "free space", "MiB", id="free space"),
    ],
)
def test_finding_appears(
    ill: jobq.JobQueue, make: Callable[[jobq.JobQueue], object], check: str, says: str
) -> None:
    """What is wrong is told under its check, with what to do about it."""
    runner(ill)
    assert check not in wrong(ill)

    make(ill)

    found = wrong(ill)[check]
    assert says in found.detail
    assert found.fix


def test_schedule_that_cannot_fire_is_found(ill: jobq.JobQueue, clock: FakeClock, errors: ErrorLog) -> None:
    """With the error that the tick has found."""
    ill.schedules.add("s", every="1h", kind="k")
    ill.handlers.retire("k")
    clock.advance("1h")
    jobq.Runner(ill).scheduler.tick()

    assert wrong(ill)["schedules"].detail == "s: RetiredKind: the kind 'k' is retired"
    assert errors.take() == ["jobq.schedule.failed"]


def test_journal_mode_that_somebody_changed_is_found(path: Path, ill: jobq.JobQueue) -> None:
    """Before the first verb no handle is open, so another program can do it."""
    other = apsw.Connection(str(path))
    other.execute("PRAGMA journal_mode = DELETE").fetchall()
    other.close()

    assert "delete" in wrong(ill)["journal"].detail


def test_foreign_handle_is_found(ill: jobq.JobQueue) -> None:
    """Somebody who opens the file as a plain one drops SQLite's locks when closing it."""
    ill.enqueue("k")
    with open(f"{ill.path}-shm", "rb"):
        assert wrong(ill)["foreign handle"].fix


def test_write_ahead_log_that_nobody_can_move_is_found(ill: jobq.JobQueue) -> None:
    """A reader that stays makes it grow; what matters is its size."""
    status = ill.store.engine.status()  # type: ignore[attr-defined]
    large = attrs.evolve(status, wal_bytes=examine.LARGE_WAL + 1)

    assert [one.check for one in examine.sizes(large) if not one.ok] == ["size"]
    assert [one.check for one in examine.sizes(status) if not one.ok] == []


def test_file_that_was_not_made_by_jobq_is_told_how_to_shrink(path: Path, clock: FakeClock) -> None:
    """It has no incremental vacuum, which only VACUUM could give it."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE hosts (id)").fetchall()
    connection.close()
    with jobq.open(path, clock=clock) as jobs:
        pile_up(jobs)
        assert "VACUUM" in (wrong(jobs)["free space"].fix or "")


@pytest.mark.parametrize("name", ["nfs4", "cifs", "fuse.sshfs", "9p", "virtiofs"])
def test_network_file_system_is_found(tmp_path: Path, name: str) -> None:
    """By the mount that the file lies under, the nearest one."""
    table = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"30 22 0:40 / {tmp_path} rw - {name} server:/export rw,vers=4.2\n"
        f"31 22 0:41 / {tmp_path}/jobs rw - tmpfs tmpfs rw\n"
    )

    found = examine.file_system(str(tmp_path / "jobs.db"), table)

    assert (found.ok, found.detail) == (False, name)
    assert examine.file_system("/elsewhere/jobs.db", table).detail == "ext4"
    assert examine.file_system("/elsewhere/jobs.db", "").ok


def test_mount_points_with_blanks_are_read(tmp_path: Path) -> None:
    """The table escapes them in octal."""
    (tmp_path / "my disk").mkdir()
    table = f"30 22 0:40 / {tmp_path}/my\\040disk rw - nfs server:/export rw\n"

    assert not examine.file_system(str(tmp_path / "my disk" / "jobs.db"), table).ok


def damage(path: Path, *, page: int) -> None:
    """Overwrite a page of a closed file."""
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)


def test_damaged_file_is_found_by_a_deep_look(path: Path, clock: FakeClock) -> None:
    """A page in the middle, which nothing else reads."""
    with jobq.open(path, clock=clock) as jobs:
        jobs.enqueue("k", "x" * 50_000)
        jobs.store.prune([], state=jobq.JobState.FAILED, ended_before=clock.now())
    damage(path, page=path.stat().st_size // 4096 - 3)

    with jobq.open(path, clock=clock) as jobs:
        runner(jobs)
        assert wrong(jobs) == {}
        found = wrong(jobs, deep=True)["integrity"]
    assert "backup" in (found.fix or "")
    assert len(found.detail) < 1_000


def test_file_that_cannot_be_read_any_more_is_a_finding(path: Path, clock: FakeClock) -> None:
    """Not an error: the other findings are told as well."""
    with jobq.open(path, clock=clock) as jobs:
        jobs.enqueue("k")
        with jobs.read() as snapshot:
            root = snapshot.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'jobq_queue'")[0][0]
    damage(path, page=root)

    with jobq.open(path, clock=clock) as jobs:
        found = wrong(jobs)
    assert "backup" in (found["reading"].fix or "")


def test_rows_that_name_what_is_gone_are_found_by_a_deep_look(path: Path, ill: jobq.JobQueue) -> None:
    """As after a repair by hand with foreign keys off."""
    ill.enqueue("k", "x" * 10_000)
    with ExitStack() as stack:
        other = apsw.Connection(str(path))
        stack.callback(other.close)
        other.execute("DELETE FROM jobq_job").fetchall()

    assert "jobq_payload" in wrong(ill, deep=True)["integrity"].detail
