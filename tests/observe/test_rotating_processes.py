"""One file of whole lines under several threads and processes, and after they were killed."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobq.observe.rotating import RotatedFile
from tests.interrupts import strikes

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    (tmp_path / "log").mkdir()
    return tmp_path / "log" / "a.log"


def hear(process: "subprocess.Popen[str]", word: str) -> None:
    """Wait until the process has said this."""
    assert process.stdout is not None
    assert any(json.loads(line) == word for line in process.stdout)


def go(processes: "list[subprocess.Popen[str]]") -> None:
    """Let them write."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts writers that wait for a line on their stdin; all are gone after the test."""
    running: list[subprocess.Popen[str]] = []

    def run(name: str, **settings: object) -> "subprocess.Popen[str]":
        told = json.dumps({"path": str(path), **settings})
        command = [sys.executable, "-m", "tests.observe.writer", name, told]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        hear(process, "ready")
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def lines(path: Path) -> list[str]:
    """Return all lines; each file ends with one."""
    texts = [file.read_text() for file in path.parent.iterdir()]
    assert all(not text or text.endswith("\n") for text in texts)
    return [line for text in texts for line in text.splitlines()]


@pytest.mark.parametrize("as_events", [pytest.param(False, id="lines"), pytest.param(True, id="events")])
@pytest.mark.parametrize("backups", [pytest.param(1_000, id="all kept"), pytest.param(5, id="most dropped")])
def test_b57_two_processes_of_four_threads_on_one_file(
    path: Path, tmp_path: Path, start: Start, backups: int, as_events: bool
) -> None:
    """10,000 lines under a limit of 4 kB: each parses, none is there twice, and kept + lost + dropped is exact."""
    database = str(tmp_path / "jobs.db") if as_events else ""
    settings = {"threads": 4, "lines": 1_250, "max_bytes": 4_096, "backups": backups, "database": database}
    writers = [start(name, **settings) for name in "ab"]
    go(writers)
    counts = [json.loads(writer.communicate(timeout=PATIENCE)[0].splitlines()[-1]) for writer in writers]

    found = [json.loads(line) for line in lines(path)]
    if as_events:
        assert {one["kind"] for one in found} == {"Written"}
        found = [one["data"] for one in found]
    written, lost, dropped = (sum(column) for column in zip(*counts, strict=True))

    assert written + lost == 10_000
    assert len(found) + lost + dropped == 10_000
    assert (dropped == 0) == (backups == 1_000)
    assert max(Counter((one["writer"], one["thread"], one["number"]) for one in found).values()) == 1
    assert dropped or {one["writer"] for one in found} == {"a", "b"}
    assert all(file.stat().st_size <= 4_096 for file in path.parent.iterdir())
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_b57_killed_writers_leave_whole_lines(path: Path, start: Start) -> None:
    """Killed among their writes, a few times; a line that was cut short is alone on its line."""
    for turn in range(3):
        writers = [start(f"{name}{turn}", threads=2, lines=0, max_bytes=4_096, backups=500) for name in "ab"]
        go(writers)
        for writer in writers:
            hear(writer, "busy")
            writer.kill()
            writer.wait(PATIENCE)
    file = RotatedFile(path, max_bytes=4_096, backups=500)
    file.append(["{}"])
    file.close()

    found = lines(path)
    assert sum(not parses(line) for line in found) <= 6
    assert len({json.loads(line).get("writer") for line in found if parses(line)}) == 7
    assert path.read_text().endswith("{}\n")


def parses(line: str) -> bool:
    """Whether a line is JSON."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_interrupt_at_any_moment_leaves_whole_lines_and_a_usable_file(path: Path) -> None:
    """Wherever Ctrl-C strikes, the next line is written, and none is there twice."""
    file = RotatedFile(path, max_bytes=60, backups=10_000)
    struck = 0
    for number in strikes(lambda: file.append(["struck"])):
        struck += 1
        file.append([str(number)])
    file.close()

    found = lines(path)
    assert struck > 10
    assert sorted(int(line) for line in found if line != "struck") == list(range(1, struck + 1))
