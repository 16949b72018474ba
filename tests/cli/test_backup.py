"""``jobq backup``."""

from collections.abc import Callable
from pathlib import Path

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


def test_backup_copies_and_says_how_much(cli: Cli, jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """The copy is a job queue."""
    jobs.enqueue("k")
    answer = cli("backup", "copy.db", "--db", jobs.path)

    size = (tmp_path / "copy.db").stat().st_size
    assert (answer.code, answer.out) == (0, f"{size:,} bytes in {tmp_path / 'copy.db'}\n")
    assert "copying: " in answer.err
    assert len(cli("job", "list", "--db", "copy.db", "--json").json) == 1


def test_backup_speaks_json(cli: Cli, jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """One document, and no progress in it."""
    answer = cli("backup", "copy.db", "--db", jobs.path, "--json")

    assert answer.json == {"path": str(tmp_path / "copy.db"), "bytes": (tmp_path / "copy.db").stat().st_size}


def test_backup_refuses_to_overwrite(cli: Cli, jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """Exit code 4 and a fix; --force replaces."""
    (tmp_path / "copy.db").write_text("precious")
    answer = cli("backup", "copy.db", "--db", jobs.path)

    assert (answer.code, answer.out) == (4, "")
    assert "force" in answer.err
    assert (tmp_path / "copy.db").read_text() == "precious"
    assert cli("backup", "copy.db", "--db", jobs.path, "--force").code == 0


def test_backup_of_nothing_is_not_found(cli: Cli, tmp_path: Path) -> None:
    """No file is made, under neither name."""
    answer = cli("backup", "copy.db", "--db", "nowhere.db")

    assert answer.code == 3
    assert list(tmp_path.iterdir()) == []
