"""Backups beside workers and writers of other processes, and backups that are killed."""

import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import jobq
from tests.crash.conftest import PATIENCE, Program

Open = Callable[..., jobq.JobQueue]
Run = Callable[..., Program]


def check(path: Path) -> None:
    """Make sure that a copy is a sound database."""
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def test_backup_beside_workers_and_writers_is_of_one_instant(run: Run, real_jobs: Open, tmp_path: Path) -> None:
    """It does not start over however much is written, nobody waits for it, and the copy is a working job queue."""
    jobs, target = real_jobs(durability="relaxed"), tmp_path / "copy.db"
    jobs.enqueue_many([jobq.NewJob("unserved", "x" * 1_000) for _ in range(10_000)])
    before = [one.id for one in jobs.find(limit=None)]
    told: list[tuple[int, int]] = []
    programs = [run("write", config={"durability": "relaxed"}), run("work", log=str(tmp_path / "log"))]
    programs[0].hear("writing"), programs[1].hear("working")

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        assert len(told) < 100, "it started over"
        # Somebody else's commits come between any two steps.
        seen = jobs.store.data_version()
        while jobs.store.data_version() == seen:
            pass
        assert jobs.enqueue("ping", queue="default").wait(PATIENCE).state == "succeeded"

    jobs.backup(target, progress=progress)
    assert [program.finish() for program in programs] == [0, 0]

    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1]
    check(target)
    with jobq.open(target) as copy:
        there = {one.id for one in copy.find(limit=None)}
        assert set(before) <= there
        assert len(there) < len(jobs.find(limit=None))
        # As of one instant: what was enqueued during it is not there.
        assert copy.find(kind="ping") == []
        assert jobq.Runner(copy).bootstrap() is not None
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("old", [None, b"an older backup"], ids=["new name", "over an older one"])
@pytest.mark.parametrize("steps", [1, 3])
def test_killed_backup_leaves_no_half_file(
    run: Run, real_jobs: Open, tmp_path: Path, steps: int, old: bytes | None
) -> None:
    """Under its name is what was there before; the next backup is not in its way."""
    jobs, target = real_jobs(), tmp_path / "copy.db"
    made = jobs.enqueue_many([jobq.NewJob("unserved", "x" * 1_000) for _ in range(6_000)])
    if old is not None:
        target.write_bytes(old)
    program = run("backup", target=str(target), steps=steps)
    done, total = program.hear("copying")
    assert done < total

    program.kill()

    assert (target.read_bytes() if target.exists() else None) == old
    jobs.backup(target, force=old is not None)
    check(target)
    with jobq.open(target) as copy:
        assert len(copy.find(limit=None)) == len(made)
