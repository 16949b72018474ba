"""What commands print."""

import io
import os
import threading
from datetime import UTC, datetime

import pytest

from jobq.cli import output
from jobq.model.job import LoggedChange
from tests.cli.conftest import Terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain äß 語", "plain äß 語", id="letters"),
        pytest.param("a\nb\tc\r", "a\\nb\\tc\\r", id="lines"),
        pytest.param("\x1b[2J\x07\0", "\\x1b[2J\\x07\\x00", id="terminal"),
        pytest.param("\x9b31m\x7f", "\\x9b31m\\x7f", id="c1"),
        pytest.param("\u202etxt.exe\u2066", "\\u202etxt.exe\\u2066", id="direction"),
        pytest.param("\udcff\ud800", "\\udcff\\ud800", id="surrogates"),
        pytest.param("\u2028\U000e0001", "\\u2028\\U000e0001", id="separators"),
    ],
)
def test_escape_leaves_letters_and_shows_what_does_not_print(text: str, shown: str) -> None:
    """Nothing that is printed can move the cursor or reverse the text."""
    assert output.escape(text) == shown


def test_plain_makes_json_of_values() -> None:
    """Times become ISO text and attrs values objects."""
    at = datetime(2024, 1, 1, tzinfo=UTC)
    change = LoggedChange(id=1, at=at, actor="user", what="requeued", job_id=7, subject=None,
                          before={}, after={"n": (1, 2)})  # fmt: skip

    assert output.plain([change])[0] == {
        "id": 1,
        "at": "2024-01-01T00:00:00+00:00",
        "actor": "user",
        "what": "requeued",
        "job_id": 7,
        "subject": None,
        "before": {},
        "after": {"n": [1, 2]},
    }


def test_json_escapes_every_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON for programs is plain ASCII without control characters."""
    output.say_json({"text": "\x7f\x9b\x1b\u202e"}, line=True)

    printed = capsys.readouterr().out
    assert printed.rstrip("\n").isprintable()
    assert printed.isascii()


def test_table_aligns_and_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are as wide as their widest cell, and a cell stays on its line."""
    output.table(("id", "what"), [(1, None), (200, "a\nb")], none="nothing")

    assert capsys.readouterr().out == "id   what\n1    -\n200  a\\nb\n"


def test_empty_table_says_so_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """No row is no data."""
    output.table(("id",), [], none="nothing")

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "nothing\n")


class _Slow(io.StringIO):
    """A stream that lets other threads run in the middle of each write, and keeps what was written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.inside = self.overlaps = 0

    def write(self, text: str) -> int:
        self.inside += 1
        for _ in range(100):
            os.sched_yield()
        self.overlaps += self.inside > 1
        self.writes.append(text)
        self.inside -= 1
        return len(text)


def test_lines_of_several_threads_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is one write, and one at a time: on standard error, and for a stream of JSON."""
    err, out = _Slow(), _Slow()
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setattr("sys.stdout", out)
    barrier = threading.Barrier(8)

    def tell(number: int) -> None:
        barrier.wait(10)
        for _ in range(20):
            output.note(f"line {number}")
            output.say_json({"line": number}, line=True)

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert (err.overlaps, out.overlaps) == (0, 0)
    assert sorted(set(err.writes)) == [f"line {number}\n" for number in range(8)]
    assert all(text.endswith("}\n") for text in out.writes)
    assert len(err.writes) == len(out.writes) == 160


@pytest.mark.parametrize(
    ("name", "value", "colors"),
    [
        pytest.param("NO_COLOR", "1", False, id="no_color"),
        pytest.param("NO_COLOR", "", True, id="empty"),
        pytest.param("TERM", "dumb", False, id="dumb"),
    ],
)
def test_colors_need_a_terminal_that_wants_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, colors: bool
) -> None:
    """NO_COLOR and a dumb terminal turn colours off, and a pipe has none."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)

    assert output.colored(Terminal()) is colors
    assert not output.colored(io.StringIO())
