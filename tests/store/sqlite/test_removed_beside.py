"""Somebody removes the -wal or the -shm file while the database is open: it is noticed, and said once."""

import os
from pathlib import Path

import pytest

import jobq
from jobq.errors import StoreCorrupt
from jobq.testing import FakeClock

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not list descriptors")


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_removed_file_beside_the_database_is_noticed_by_the_next_checkpoint(tmp_path: Path, end: str) -> None:
    """It is corrupt to a runner; the doctor names the file; nothing is made in its place; what was told is kept."""
    path, clock = tmp_path / "jobs.db", FakeClock()
    with jobq.open(path, clock=clock) as jobs:
        runner = jobq.Runner(jobs)
        made = jobs.enqueue("a")
        assert not [one for one in jobs.doctor() if one.check == "removed file" and not one.ok]
        os.unlink(f"{path}{end}")
        clock.advance("1m")

        with pytest.raises(StoreCorrupt, match=f"its {end} file was removed while it was open"):
            runner.maintenance.tick()
        assert [one.detail for one in jobs.doctor() if one.check == "removed file"] == [
            f"the {end} file was removed while it was open"
        ]
        assert not os.path.exists(f"{path}{end}")
    with jobq.open(path) as jobs:
        assert jobs.get(made.id).state == "queued"


def test_a_directory_that_is_renamed_and_comes_back_has_lost_nothing(tmp_path: Path) -> None:
    """Meanwhile each verb says that the file is gone, and none writes where nobody would find it."""
    place, aside = tmp_path / "place", tmp_path / "aside"
    place.mkdir()
    with jobq.open(place / "jobs.db", clock=FakeClock()) as jobs:
        made = jobs.enqueue("a")
        place.rename(aside)
        for verb in (lambda: jobs.enqueue("b"), jobs.counts, lambda: jobs.lease("a", worker="w")):
            with pytest.raises(StoreCorrupt, match="unlinked"):
                verb()
        assert not place.exists()
        aside.rename(place)
        later = jobs.enqueue("c")

        assert [job.id for job in jobs.find()] == [later.id, made.id]


def test_another_file_that_was_removed_is_not_ours(tmp_path: Path) -> None:
    """Descriptors of files with like names are left alone."""
    with jobq.open(tmp_path / "jobs.db") as jobs, open(tmp_path / "other.db-wal", "w"):
        jobs.enqueue("a")
        os.unlink(tmp_path / "other.db-wal")
        jobs.store.checkpoint()
