"""The file of whole lines: rotation, modes, torn lines, several writers, and what it counts."""

import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobq.errors import ConfigError
from jobq.observe.filelock import lock
from jobq.observe.rotating import RotatedFile
from tests.conftest import ErrorLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "a.log"


def files(path: Path) -> list[Path]:
    """Return the file and its backups, the oldest first."""
    backups = sorted(path.parent.glob(f"{path.name}.*"), key=lambda one: -int(one.suffix[1:]))
    return [*backups, *([path] if path.exists() else [])]


def lines(path: Path) -> list[str]:
    """Return the lines of the file and its backups, the oldest first."""
    return [line for file in files(path) for line in file.read_text().splitlines()]


def mode(path: Path) -> int:
    """Return the permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lines_are_appended_in_order(path: Path) -> None:
    """Also behind what an earlier process left."""
    for start in (0, 5):
        file = RotatedFile(path)
        for number in range(start, start + 5):
            file.append([str(number)])
        assert (file.written, file.lost, file.dropped) == (5, 0, 0)
        file.close()

    assert path.read_text() == "".join(f"{number}\n" for number in range(10))


def test_line_break_and_surrogate_in_a_line_are_escaped(path: Path) -> None:
    """A line stays one line, and is stored whatever it holds."""
    file = RotatedFile(path)
    file.append(["a\nb", "c\ud800"])
    file.close()

    assert path.read_text() == "a\\nb\nc\\ud800\n"


def test_b57_every_file_is_for_its_owner_only(path: Path) -> None:
    """The file, also when it existed with another mode or under another umask, its new backups and its old ones."""
    path.write_text("x" * 30 + "\n")
    path.chmod(0o644)
    old = path.with_name("a.log.1")
    old.write_text("old\n")
    old.chmod(0o666)
    file = RotatedFile(path, max_bytes=40, backups=3)
    before = os.umask(0o000)
    try:
        for number in range(3):
            file.append([f"{number}" * 30])
    finally:
        os.umask(before)
        file.close()

    assert len(files(path)) == 4
    assert {mode(one) for one in files(path)} == {0o600}


def test_file_is_rotated_before_it_is_too_large(path: Path) -> None:
    """No file is larger than the limit, the newest lines are kept, and the dropped ones are counted."""
    file = RotatedFile(path, max_bytes=50, backups=3)
    for number in range(100):
        file.append([f"{number:09}"])
    file.close()

    assert [one.name for one in files(path)] == ["a.log.3", "a.log.2", "a.log.1", "a.log"]
    assert all(one.stat().st_size <= 50 for one in files(path))
    assert lines(path) == [f"{number:09}" for number in range(80, 100)]
    assert (file.written, file.lost, file.dropped) == (100, 0, 80)


def test_many_lines_at_once_are_spread_over_files(path: Path) -> None:
    """One call may fill several files."""
    file = RotatedFile(path, max_bytes=50, backups=30)
    file.append(f"{number:09}" for number in range(98))
    file.close()

    assert lines(path) == [f"{number:09}" for number in range(98)]
    assert len(files(path)) == 20


def test_line_longer_than_a_file_gets_one_of_its_own(path: Path) -> None:
    """It is neither cut nor lost."""
    file = RotatedFile(path, max_bytes=50, backups=3)
    file.append(["a", "b" * 100, "c"])
    file.close()

    assert [one.read_text() for one in files(path)] == ["a\n", "b" * 100 + "\n", "c\n"]


def test_without_backups_a_full_file_is_dropped(path: Path) -> None:
    """One file is all there is."""
    file = RotatedFile(path, max_bytes=50, backups=0)
    file.append(f"{number:09}" for number in range(12))
    file.close()

    assert (lines(path), file.dropped) == (["000000010", "000000011"], 10)
    assert len(files(path)) == 1


def test_b57_torn_line_is_ended_by_the_next_writer(path: Path) -> None:
    """What a killed process left is a line of its own, also when another one has the file open already."""
    file = RotatedFile(path)
    file.append(["whole"])
    with path.open("a") as killed:
        killed.write('{"torn')

    file.append(["next"])
    file.close()

    assert path.read_text() == 'whole\n{"torn\nnext\n'


def test_two_writers_share_a_file_and_its_rotation(path: Path) -> None:
    """One that finds its file renamed goes on in the new one; nothing is lost or in two places."""
    one, two = (RotatedFile(path, max_bytes=50, backups=50) for _ in range(2))
    for number in range(0, 100, 2):
        one.append([f"{number:09}"])
        two.append([f"{number + 1:09}"])
    one.close()
    two.close()

    assert lines(path) == [f"{number:09}" for number in range(100)]
    assert one.lost == two.lost == 0


def test_file_that_vanished_is_made_again(path: Path) -> None:
    """Somebody removed the file, then a backup: the next line goes on, and a hole is where backups move up to."""
    file = RotatedFile(path, max_bytes=10, backups=3)
    file.append(["a"])
    path.unlink()
    for text in ("b" * 9, "c" * 9, "d" * 9, "e" * 9):
        file.append([text])
    path.with_name("a.log.2").unlink()
    file.append(["f" * 9])
    file.close()

    assert [line[0] for line in lines(path)] == ["b", "d", "e", "f"]
    assert (file.lost, file.dropped) == (0, 0)
    assert mode(path) == 0o600


def test_directory_that_vanished_costs_counted_lines_and_one_report(path: Path, errors: ErrorLog) -> None:
    """Nothing is raised; once it is there again, so is the log, and that is reported once."""
    home = path.parent / "logs"
    home.mkdir()
    file = RotatedFile(home / "a.log")
    file.append(["a"])
    (home / "a.log").unlink()
    home.rmdir()

    for text in ("b", "c"):
        file.append([text])
    assert (file.written, file.lost) == (1, 2)
    assert errors.take() == ["jobq.logfile.failed"]
    home.mkdir()
    file.append(["d"])
    file.close()

    assert (home / "a.log").read_text() == "d\n"
    assert (file.written, file.lost) == (2, 2)


def test_full_disk_leaves_whole_lines_and_an_exact_count(path: Path, errors: ErrorLog) -> None:
    """A line that does not fit any more leaves no part of itself; each change of state is reported once."""
    file = RotatedFile(path)
    with full_disk(95):
        file.append(f"{number:09}" for number in range(12))
        file.append(["x" * 9])
        assert path.read_text() == "".join(f"{number:09}\n" for number in range(9))
        assert (file.written, file.lost) == (9, 4)
        assert errors.take() == ["jobq.logfile.failed"]
    file.append(["y" * 9])
    file.close()

    assert lines(path)[-1] == "y" * 9
    assert (file.written, file.lost) == (10, 4)


def test_writer_that_is_stopped_with_the_lock_stops_nobody(path: Path, errors: ErrorLog) -> None:
    """The lock is waited for once and then only tried; lines are counted as lost until it is free."""
    file = RotatedFile(path, patience=0.01)
    file.append(["a"])
    with path.open("rb") as stopped:
        lock(stopped.fileno(), patience=0)
        file.append(["b"])
        file.append(["c"])
        assert (file.lost, errors.take()) == (2, ["jobq.logfile.failed"])
    file.append(["d"])
    file.close()

    assert lines(path) == ["a", "d"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path / "missing" / "a.log", id="no directory"),
        pytest.param(lambda path: path, id="a directory"),
        pytest.param(lambda path: (path / "file").write_text("") or path / "file" / "a.log", id="below a file"),
        pytest.param(lambda path: os.mkfifo(path / "pipe") or path / "pipe", id="a pipe"),
        pytest.param(lambda path: path / "a\0b", id="a NUL"),
    ],
)
def test_place_that_cannot_be_written_is_a_configuration_error(tmp_path: Path, make: object) -> None:
    """It names the key and the file, and says what to do."""
    file = RotatedFile(make(tmp_path))  # type: ignore[operator]

    with pytest.raises(ConfigError, match=r"events_file: .*: \w+") as caught:
        file.require("events_file")
    assert caught.value.fix


def test_require_makes_the_file(path: Path) -> None:
    """Whoever was told that it works finds it."""
    file = RotatedFile(path)
    file.require("events_file")
    file.close()

    assert (path.read_text(), mode(path)) == ("", 0o600)


def in_child(work: Callable[[], bool]) -> int:
    """Fork, and return 0 if the work answered True in the child."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_forked_child_opens_the_file_anew(path: Path) -> None:
    """Parent and child write to one file, and each counts its own lines."""
    file = RotatedFile(path)
    file.append(["parent"])

    def write() -> bool:
        file.append(["child"])
        return (file.written, file.lost) == (1, 0)

    assert in_child(write) == 0
    file.append(["parent"])
    file.close()

    assert lines(path) == ["parent", "child", "parent"]


def test_forked_child_does_not_share_the_lock_of_its_parent(path: Path) -> None:
    """What the parent has locked is locked for the child."""
    file = RotatedFile(path, patience=0.01)
    file.require("file")
    assert file._file is not None
    lock(file._file.descriptor, patience=0)

    def write() -> bool:
        file.append(["child"])
        return file.lost == 1

    assert in_child(write) == 0
    file.close()
