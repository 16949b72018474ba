"""The buffer of log lines: bounded, exact about what it lost, never losing what a database did not take."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from jobq import lines
from jobq.lines import Lines
from jobq.model.lines import MOST_EVENT, MOST_FIELDS, Line
from jobq.model.redact import REDACTOR_FAILED, WINDOW, Redactor

REDACTOR = Redactor()


def line(event: str = "event", fields: str = "{}", redactor: Redactor = REDACTOR) -> Line:
    """Return a line."""
    return Line(1, 1, datetime(2024, 1, 1, tzinfo=UTC), "info", event, fields, redactor)


def drained(buffer: Lines) -> list[str]:
    """Take everything, and return the events."""
    found: list[str] = []
    buffer.drain(lambda batch: found.extend(one.event for one in batch))
    return found


def test_lines_come_out_in_order_and_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once."""
    monkeypatch.setattr(lines, "BATCH", 3)
    buffer, sizes = Lines(), []
    for number in range(8):
        buffer.put(line(str(number)))

    buffer.drain(lambda batch: sizes.append([one.event for one in batch]))

    assert sizes == [["0", "1", "2"], ["3", "4", "5"], ["6", "7"]]
    assert (len(buffer), drained(buffer)) == (0, [])


def test_a_batch_that_is_not_taken_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost by a database in trouble, and nothing comes twice."""
    monkeypatch.setattr(lines, "BATCH", 2)
    buffer, taken = Lines(), []
    for number in range(5):
        buffer.put(line(str(number)))

    def full(batch: list[Line]) -> None:
        if taken:
            raise ZeroDivisionError
        taken.extend(one.event for one in batch)

    with pytest.raises(ZeroDivisionError):
        buffer.drain(full)

    assert taken + drained(buffer) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("bound", ["MOST_LINES", "MOST_SIZE"])
def test_what_finds_no_room_is_counted_exactly(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """By number of lines, and by their size; kept + lost is what was put, from several threads."""
    monkeypatch.setattr(lines, bound, {"MOST_LINES": 50, "MOST_SIZE": 350}[bound])
    buffer = Lines()
    barrier = threading.Barrier(4, timeout=20)

    def write() -> None:
        barrier.wait()
        for _ in range(100):
            buffer.put(line("event"))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert (len(drained(buffer)), buffer.lost) == (50, 350)
    buffer.put(line("room again"))
    assert drained(buffer) == ["room again"]


def test_one_thread_drains_at_a_time() -> None:
    """A second one goes away, also from within."""
    buffer, within = Lines(), []
    buffer.put(line())

    buffer.drain(lambda batch: within.extend([drained(buffer), [one.event for one in batch]]))

    assert within == [[], ["event"]]


def test_a_forked_child_begins_empty() -> None:
    """The parent keeps what waits."""
    buffer = Lines()
    buffer.put(line())
    buffer.after_fork()
    assert (drained(buffer), buffer.lost) == ([], 0)


def test_a_huge_line_takes_little_room() -> None:
    """What is never looked at again is dropped at once."""
    buffer, found = Lines(), []
    buffer.put(line("e" * 10**7, "f" * 10**7))
    buffer.drain(found.extend)
    assert found[0].size < 3 * WINDOW


def test_b26_a_line_is_redacted_then_cut() -> None:
    """A secret that straddles the cut is not shown in part."""
    secret = "hunter2hunter2hunter2"
    for pad, most in ((MOST_EVENT, MOST_EVENT), (MOST_FIELDS, MOST_FIELDS)):
        for shift in range(0, 60, 7):
            text = "x" * (pad - shift) + f" password={secret} and more"
            kept = line(text, f'{{"note": "{text}"}}').clean()
            assert "hunter" not in kept.event + str(kept.fields)
            assert len(kept.event) <= MOST_EVENT
            assert len(str(kept.fields["text" if "text" in kept.fields else "note"])) <= most or most == MOST_EVENT


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        pytest.param('{"a": 1, "b": [true, null]}', {"a": 1, "b": [True, None]}, id="json"),
        pytest.param('{"password": "hunter2", "a": 1}', {"password": "[redacted]", "a": 1}, id="secret name"),
        pytest.param('{"h": {"Authorization": "Bearer abcdefghi"}}', {"h": {"Authorization": "[redacted]"}}, id="deep"),
        pytest.param('{"a": "' + "b" * 9_000 + '"}', None, id="too long"),
    ],
)
def test_fields_stay_json(fields: str, kept: Any) -> None:
    """A redacted value is still a value; what had to be cut is one text."""
    found = line(fields=fields).clean().fields
    assert found == kept if kept is not None else (list(found) == ["text"] and len(str(found["text"])) == MOST_FIELDS)


@pytest.mark.parametrize(
    "extra",
    [lambda text: text.replace('"', ""), lambda text: 1 / 0],
    ids=["breaks JSON", "raises"],
)
def test_b26_a_redactor_of_the_host_that_breaks_the_json_leaves_a_text(extra: Callable[[str], str]) -> None:
    """What it returned is kept as it is, and a constant where it raised."""
    found = line(fields='{"a": "b"}', redactor=Redactor(extra)).clean()
    assert found.fields in ({"text": "{a: b}"}, {"text": REDACTOR_FAILED})
