"""Who may read what the engine makes."""

import os
import stat
from pathlib import Path

import pytest

import jobq


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_a_new_file_follows_the_umask_and_its_helpers_follow_it(tmp_path: Path, umask: int) -> None:
    """As every file of the user does; the log of writes and its index are readable for no others."""
    before = os.umask(umask)
    try:
        with jobq.open(tmp_path / "jobs.db") as jobs:
            jobs.enqueue("any")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert modes["jobs.db"] == 0o666 & ~umask & 0o644
    assert {modes["jobs.db-wal"], modes["jobs.db-shm"]} == {modes["jobs.db"]}


def test_helpers_take_the_mode_that_the_file_was_given(tmp_path: Path) -> None:
    """A file that was made private stays so, whatever the umask of the process that opens it next."""
    with jobq.open(tmp_path / "jobs.db"):
        pass
    (tmp_path / "jobs.db").chmod(0o600)
    with jobq.open(tmp_path / "jobs.db") as jobs:
        jobs.enqueue("any")
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    assert modes == {0o600}
