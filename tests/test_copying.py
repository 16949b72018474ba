"""``jobs.backup()``: what it copies, and under which names it does not write."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import jobq
from jobq.testing import FakeClock

Again = Callable[..., jobq.JobQueue]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the backup goes."""
    return tmp_path / "backups" / "copy.db"


@pytest.fixture(autouse=True)
def _folder(target: Path) -> None:
    target.parent.mkdir()


def test_backup_is_the_whole_job_queue(jobs: jobq.JobQueue, target: Path, clock: FakeClock) -> None:
    """Jobs, texts, histories, schedules, and the host's own tables; ids go on where they were."""
    with jobs.transaction() as tx:
        tx.execute("CREATE TABLE orders (id INTEGER)")
        tx.execute("INSERT INTO orders VALUES (7)")
    large = jobs.enqueue("k", "x" * 10_000).id
    jobs.schedules.add("s", every="1h", kind="k")
    (lease,) = jobs.lease("k")
    jobs.fail(lease, "boom")

    size = jobs.backup(target)

    assert size == target.stat().st_size > 0
    assert [one.name for one in target.parent.iterdir()] == ["copy.db"]
    with jobq.open(target, create=False, clock=clock) as copy:
        assert copy.find() == jobs.find()
        assert copy.get(large).payload == "x" * 10_000
        assert copy.history(large) == jobs.history(large)
        assert [one.name for one in copy.schedules.list()] == ["s"]
        with copy.read() as snapshot:
            assert snapshot.execute("SELECT id FROM orders") == [(7,)]
        assert copy.enqueue("k").id == large + 1


def test_backup_may_be_read_by_its_owner_alone(jobs: jobq.JobQueue, target: Path) -> None:
    """Whatever the umask says: payloads are in it."""
    before = os.umask(0)
    try:
        jobs.backup(target)
    finally:
        os.umask(before)

    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_backup_does_not_overwrite_unless_told(jobs: jobq.JobQueue, target: Path) -> None:
    """A file of that name stays as it is; with force it is replaced as a whole."""
    target.write_bytes(b"precious")

    with pytest.raises(jobq.BackupRefused) as caught:
        jobs.backup(target)
    assert (caught.value.path, target.read_bytes()) == (str(target), b"precious")

    jobs.backup(target, force=True)
    jobq.open(target, create=False).close()


def test_name_that_is_taken_meanwhile_is_not_overwritten(jobs: jobq.JobQueue, target: Path) -> None:
    """The copy takes its name with a step that fails where there is one."""
    with pytest.raises(jobq.BackupRefused):
        jobs.backup(target, progress=lambda done, total: target.write_bytes(b"precious"))

    assert target.read_bytes() == b"precious"
    assert [one.name for one in target.parent.iterdir()] == ["copy.db"]


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("way", ["path", "symbolic link", "hard link", "wal", "shm", "directory"])
def test_backup_refuses_the_database_itself(jobs: jobq.JobQueue, target: Path, way: str, force: bool) -> None:
    """By whatever name, also its companions; and a directory."""
    jobs.enqueue("k")
    wanted = {"path": jobs.path, "wal": f"{jobs.path}-wal", "shm": f"{jobs.path}-shm", "directory": target.parent}
    if way == "symbolic link":
        target.symlink_to(jobs.path)
    elif way == "hard link":
        target.hardlink_to(jobs.path)

    with pytest.raises(jobq.BackupRefused) as caught:
        jobs.backup(wanted.get(way, target), force=force)

    assert caught.value.fix
    assert len(jobs.find()) == 1


def test_backup_refuses_a_database_that_is_open(jobs: jobq.JobQueue, target: Path) -> None:
    """The -wal file of another database would be taken for that of the copy."""
    with jobq.open(target) as other:
        other.enqueue("k")
        with pytest.raises(jobq.BackupRefused, match="-wal"):
            jobs.backup(target, force=True)
        assert len(other.find()) == 1


def test_backup_that_fails_leaves_nothing(jobs: jobq.JobQueue, target: Path) -> None:
    """What the progress raises comes out, and the half file is gone."""

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.backup(target, progress=interrupt)

    assert list(target.parent.iterdir()) == []


def test_backup_into_a_directory_that_is_not_there_is_a_store_error(jobs: jobq.JobQueue, target: Path) -> None:
    """It names the file and says what to check."""
    with pytest.raises(jobq.StoreUnavailable) as caught:
        jobs.backup(target.parent / "nowhere" / "copy.db")

    assert caught.value.path.endswith("copy.db")


def test_backup_that_finds_no_room_is_a_store_error(jobs: jobq.JobQueue, target: Path) -> None:
    """StoreFull, as with every write; nothing is left of it, and the database goes on."""
    resource = pytest.importorskip("resource")
    jobs.enqueue_many([jobq.NewJob("k", "x" * 5_000) for _ in range(300)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(jobq.StoreFull) as caught:
            jobs.backup(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert str(target.parent) in caught.value.path
    assert list(target.parent.iterdir()) == []
    assert jobs.enqueue("k").created


def test_backup_goes_without_hard_links(
    jobs: jobq.JobQueue, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems that have none: the name is taken by a rename, after a last look."""

    def link(source: str, name: str) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr("jobq.newfile.os.link", link)
    with pytest.raises(jobq.BackupRefused):
        jobs.backup(target, progress=lambda done, total: target.write_bytes(b"precious"))
    assert target.read_bytes() == b"precious"

    target.unlink()
    jobs.backup(target)
    jobq.open(target, create=False).close()


@pytest.mark.parametrize("path", ["", "a\0b", 5, None])
def test_path_that_is_none_is_refused(jobs: jobq.JobQueue, path: object) -> None:
    """Before anything is made."""
    with pytest.raises((jobq.ArgumentError, jobq.BackupRefused)):
        jobs.backup(path)  # type: ignore[arg-type]


def test_backup_is_refused_inside_a_transaction(jobs: jobq.JobQueue, target: Path) -> None:
    """What is not committed is in no copy."""
    with jobs.transaction(), pytest.raises(jobq.InsideTransaction):
        jobs.backup(target)


def test_backup_tells_how_far_it_is(jobs: jobq.JobQueue, target: Path) -> None:
    """Pages, up to all of them."""
    jobs.enqueue_many([jobq.NewJob("k", "x" * 5_000) for _ in range(600)])
    told: list[tuple[int, int]] = []

    jobs.backup(target, progress=lambda done, total: told.append((done, total)))

    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == target.stat().st_size // 4096
