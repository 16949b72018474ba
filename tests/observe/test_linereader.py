"""Reading lines across rotations, while they are written."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobq.observe.linereader import LineReader
from jobq.observe.rotating import RotatedFile
from tests.conftest import PATIENCE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "a.log"


@pytest.fixture
def reader(path: Path) -> Iterator[LineReader]:
    """A reader of it."""
    with contextlib.closing(LineReader(str(path))) as made:
        yield made


@pytest.fixture
def write(path: Path) -> Iterator[Callable[[range], None]]:
    """Writes numbers, five to a file."""
    with contextlib.closing(RotatedFile(path, max_bytes=50, backups=4)) as file:
        yield lambda numbers: [file.append([f"{number:09}"]) for number in numbers]  # type: ignore[func-returns-value]


def newest(reader: LineReader, count: int) -> list[int]:
    """Return the newest numbers."""
    return reader.newest(count, int)


def more(reader: LineReader) -> list[int]:
    """Return the numbers that came."""
    return [int(line) for line in reader.more()]


@pytest.mark.parametrize("count", [1, 2, 5, 6, 11, 23])
def test_newest_lines_are_found_in_all_files(
    reader: LineReader, write: Callable[[range], None], count: int
) -> None:
    """In their order, however many files they are in."""
    write(range(23))

    assert newest(reader, count) == list(range(23 - count, 23))


def test_more_than_there_are_is_all(reader: LineReader, write: Callable[[range], None]) -> None:
    """What was dropped is gone."""
    write(range(33))

    assert newest(reader, 1_000) == list(range(10, 33))


def test_lines_that_are_passed_over_do_not_count(reader: LineReader, write: Callable[[range], None]) -> None:
    """The newest wanted ones are looked for further back."""
    write(range(23))

    assert reader.newest(3, lambda line: int(line) if int(line) % 7 == 0 else None) == [7, 14, 21]


def test_more_follows_over_rotations(reader: LineReader, write: Callable[[range], None]) -> None:
    """Each line once, also where several rotations lie between two looks."""
    write(range(3))
    assert newest(reader, 1) == [2]
    assert more(reader) == []
    for begin, end in ((3, 4), (4, 5), (5, 6), (6, 16), (16, 30)):
        write(range(begin, end))
        assert more(reader) == list(range(begin, end))
    assert reader.gaps == 0


def test_file_that_comes_later_is_read_from_its_beginning(reader: LineReader, write: Callable[[range], None]) -> None:
    """The directory may not be there either."""
    assert newest(reader, 5) == more(reader) == newest(LineReader("/nowhere/at/all"), 1) == []

    write(range(8))

    assert more(reader) == list(range(8))


def test_line_without_an_end_is_not_read_until_it_has_one(reader: LineReader, path: Path) -> None:
    """Somebody is writing it, or was killed."""
    path.write_text("1\n2")
    assert newest(reader, 5) == [1]
    assert more(reader) == []

    with path.open("a") as file:
        file.write("3\n4\n")

    assert more(reader) == [23, 4]


def test_torn_line_in_a_file_that_was_rotated_is_passed_over(reader: LineReader, path: Path) -> None:
    """Nobody will end it."""
    path.write_text("3\n")
    path.with_name("a.log.1").write_text("1\n2")

    assert newest(reader, 5) == [1, 3]


def test_reader_that_was_too_slow_goes_on_and_says_so(reader: LineReader, write: Callable[[range], None]) -> None:
    """Its file was dropped; the oldest one that is left is next."""
    write(range(3))
    newest(reader, 1)
    write(range(3, 43))

    assert more(reader) == [3, 4, *range(20, 43)]
    assert reader.gaps == 1


def test_file_that_somebody_removed_does_not_bring_old_lines_again(
    reader: LineReader, write: Callable[[range], None], path: Path
) -> None:
    """The backups were read before; what is written anew follows."""
    write(range(12))
    assert newest(reader, 1) == [11]
    path.unlink()
    assert more(reader) == []
    os.utime(path.with_name("a.log.1"), (0, 0))
    write(range(12, 14))

    assert more(reader) == [12, 13]


def test_file_that_somebody_emptied_is_read_from_its_beginning(reader: LineReader, path: Path) -> None:
    """As ``tail -f`` does."""
    path.write_text("1\n2\n")
    newest(reader, 1)
    path.write_text("3\n")

    assert more(reader) == [3]


def test_reader_sees_each_line_once_while_others_write(path: Path, reader: LineReader) -> None:
    """Two writers rotate all the time; nothing is missing, nothing comes twice, nothing is torn."""
    ended = threading.Event()

    def write(start: int) -> None:
        with contextlib.closing(RotatedFile(path, max_bytes=400, backups=1_000)) as file:
            for number in range(start, start + 1_000):
                file.append([f"{number:09}"])

    writers = [threading.Thread(target=write, args=(start,)) for start in (0, 1_000)]
    found: list[int] = []

    def follow() -> None:
        while not ended.is_set():
            found.extend(more(reader))
        found.extend(more(reader))

    follower = threading.Thread(target=follow)
    for thread in (follower, *writers):
        thread.start()
    for thread in writers:
        thread.join(PATIENCE)
    ended.set()
    follower.join(PATIENCE)

    assert sorted(found) == list(range(2_000))
    assert reader.gaps == 0
