"""The ear: a bell that other processes ring too, and that leaves nothing behind."""

import os
import stat
import threading
from pathlib import Path

import pytest

import jobq
from jobq.doorbell import Doorbell
from jobq.runtime.ear import Ear, listen
from tests.runtime.conftest import PATIENCE


@pytest.fixture
def ear(jobs: jobq.JobQueue) -> Ear:
    """An ear at the door of a file, closed with it."""
    found = listen(jobs.doorbell)
    assert found is not None
    return found


def ring_from_outside(ear: Ear, path: str) -> None:
    """Ring as another process does."""
    door = Doorbell(path)
    door.want()
    door.ring()
    door.close()


def test_it_is_a_bell(ear: Ear) -> None:
    """Rung before the wait it ends that at once; two rings are one; a cleared one rings no more."""
    assert not ear.wait(0)
    ear.ring()
    ear.ring()
    assert ear.wait(PATIENCE)
    ear.clear()
    assert not ear.wait(0)
    assert not ear.take_called()
    ear.close()


def test_it_wakes_the_thread_that_waits(ear: Ear) -> None:
    """Also one that waits without a limit."""
    thread = threading.Thread(target=ear.wait, daemon=True)
    thread.start()
    ear.ring()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    ear.close()


def test_rings_of_others_wait_until_it_listens(ear: Ear, jobs: jobq.JobQueue) -> None:
    """A runner whose threads are all busy is not disturbed, and does not miss them either."""
    ring_from_outside(ear, jobs.path)
    assert not ear.wait(0)
    ear.clear()
    ear.listening = True
    assert ear.wait(PATIENCE)
    assert [ear.take_called(), ear.take_called()] == [True, False]
    ear.clear()
    assert not ear.wait(0)
    ear.close()


def test_rung_as_often_as_a_pipe_takes_it_goes_on(ear: Ear) -> None:
    """A thread that rings is never held up."""
    for _ in range(70_000):
        ear.ring()
    assert ear.wait(0)
    ear.close()


def test_closed_it_is_gone(ear: Ear, jobs: jobq.JobQueue) -> None:
    """The last one removes the directory, and rings of threads that do not know yet do nothing."""
    other = listen(jobs.doorbell)
    assert other is not None
    ear.close()
    ear.close()
    ear.ring()
    assert len(os.listdir(jobs.doorbell.folder)) == 1
    other.close()

    assert not os.path.exists(jobs.doorbell.folder)
    assert not jobs.doorbell.own


def test_a_forked_child_leaves_the_parents_socket_alone(ear: Ear, jobs: jobq.JobQueue) -> None:
    """It closes its copies of the descriptors and touches nothing on the disk."""
    ear.after_fork()
    ear.close()

    assert len(os.listdir(jobs.doorbell.folder)) == 1


@pytest.mark.parametrize(("database", "folder", "bell"), [(0o600, 0o700, 0o600), (0o660, 0o770, 0o660)])
def test_who_may_write_the_database_may_ring(tmp_path: Path, database: int, folder: int, bell: int) -> None:
    """And nobody else."""
    mask = os.umask(0)
    try:
        with jobq.open(tmp_path / "a.db") as jobs:
            os.chmod(jobs.path, database)
            ear = listen(jobs.doorbell)
            assert ear is not None
            (name,) = os.listdir(jobs.doorbell.folder)
            modes = [os.lstat(path).st_mode for path in (jobs.doorbell.folder, Path(jobs.doorbell.folder, name))]
            ear.close()
    finally:
        os.umask(mask)

    assert [stat.S_IMODE(mode) for mode in modes] == [folder, bell]


@pytest.mark.parametrize("place", ["too long", "not writable"])
def test_where_it_cannot_be_there_is_none(tmp_path: Path, place: str) -> None:
    """A path that no socket address holds, or a directory that takes no socket: the runner polls."""
    folder = tmp_path / ("x" * 120) if place == "too long" else tmp_path
    folder.mkdir(exist_ok=True)
    with jobq.open(folder / "a.db") as jobs:
        if place == "not writable":
            Path(jobs.doorbell.folder).write_text("a file where the directory would be")
        assert listen(jobs.doorbell) is None
        assert not jobs.doorbell.own
