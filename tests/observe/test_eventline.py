"""What a line of the event log says of an event, and what it never says."""

import json
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import attrs
import pytest

import jobq
from jobq.model.events import JobStateChanged
from jobq.model.job import JobState
from jobq.model.redact import Redactor
from jobq.observe.eventline import EventLines

NOW = datetime(2024, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
SECRET = "hunter2-is-the-word"


class Color(Enum):
    """Some enum."""

    RED = "red"


class Size(IntEnum):
    """Another one."""

    BIG = 3


class Word(StrEnum):
    """And one of words."""

    YES = "yes"


class Hidden(str):
    """Text that was made to hide itself."""

    __slots__ = ()


class Opaque:
    """Something that nobody knows."""

    def __repr__(self) -> str:
        return SECRET


@attrs.frozen
class Address:
    """A value inside an event."""

    town: str
    street: str = attrs.field(metadata=jobq.PRIVATE)
    seen: datetime | None = None


@attrs.frozen(kw_only=True)
class Shipped(jobq.Event):
    """An event of a host."""

    value: Any
    secret: Any = attrs.field(default=SECRET, metadata={**jobq.PRIVATE, "other": 1})


@attrs.frozen(kw_only=True)
class HalfMade(jobq.Event):
    """An event with a field that nobody filled."""

    value: Any
    later: int = attrs.field(init=False)


@attrs.frozen
class Around:
    """A value that holds another."""

    held: Any


class Nowhere(tzinfo):
    """A zone that does not know its offset."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        raise ValueError(SECRET)

    def dst(self, _: datetime | None) -> None:
        """Say nothing."""

    def tzname(self, _: datetime | None) -> None:
        """Say nothing."""


@attrs.frozen(kw_only=True)
class Special(JobStateChanged):
    """A host's special case of an event of ours."""

    note: str


def lines(**settings: Any) -> EventLines:
    """Return a writer of lines."""
    return EventLines(Redactor(settings.get("redact")))


def written(value: Any) -> Any:
    """Return what a line says of a value."""
    text = lines().line(Shipped(value=value), NOW)
    assert SECRET not in text
    assert "\n" not in text
    return json.loads(text)["data"]["value"]


def test_line_has_time_class_and_data() -> None:
    """In UTC with milliseconds; private fields are not there."""
    assert json.loads(lines().line(Shipped(value=7), NOW)) == {
        "ts": "2024-01-02T03:04:05.678+00:00",
        "kind": "Shipped",
        "data": {"value": 7},
    }


def test_change_of_a_state_is_written_as_any_event() -> None:
    """The short way and the long way say the same."""
    for previous in (None, JobState.RUNNING):
        facts: dict[str, Any] = {"job_id": 7, "kind": 'ma"il ü\u2028', "queue": "default", "previous": previous}
        facts.update(state=JobState.QUEUED, attempt=2, at=NOW)
        short = json.loads(lines().line(JobStateChanged(**facts), NOW))
        long = json.loads(lines().line(Special(**facts, note="x"), NOW))

        assert long["data"].pop("note") == "x"
        assert (short["data"], short["ts"]) == (long["data"], long["ts"])
        assert (short["kind"], long["kind"]) == ("JobStateChanged", "Special")
        assert list(short["data"]) == ["job_id", "kind", "queue", "previous", "state", "attempt", "at"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(True, True, id="bool"),
        pytest.param(-7, -7, id="int"),
        pytest.param(2**63, "int", id="large int"),
        pytest.param(10**5_000, "int", id="huge int"),
        pytest.param(1.5, 1.5, id="float"),
        pytest.param(float("nan"), "nan", id="nan"),
        pytest.param(float("-inf"), "-inf", id="infinity"),
        pytest.param("text\n\x1b", "text\n\x1b", id="text"),
        pytest.param("\ud800\0", "\ufffd\ufffd", id="surrogate and NUL"),
        pytest.param("x" * 600, "x" * 499 + "…", id="long text"),
        pytest.param(f"password={SECRET}", "password=[redacted]", id="secret"),
        pytest.param(NOW, "2024-01-02T03:04:05.678900+00:00", id="datetime"),
        pytest.param(date(2024, 1, 2), "2024-01-02", id="date"),
        pytest.param(time(3, 4), "03:04:00", id="time"),
        pytest.param(timedelta(minutes=1.5), 90.0, id="duration"),
        pytest.param(Decimal("1.10"), "1.10", id="decimal"),
        pytest.param(UUID(int=1), "00000000-0000-0000-0000-000000000001", id="uuid"),
        pytest.param(Color.RED, "red", id="enum"),
        pytest.param(Size.BIG, 3, id="int enum"),
        pytest.param(Word.YES, "yes", id="text enum"),
        pytest.param([1, ("a", {2})], [1, ["a", [2]]], id="collections"),
        pytest.param({"a": {"b": 1}, 5: 6}, {"a": {"b": 1}}, id="dict"),
        pytest.param({"password": SECRET}, {"password": "[redacted]"}, id="a name of a secret"),
        pytest.param({"api_key": [SECRET]}, {"api_key": ["[redacted]"]}, id="a name of secrets"),
        pytest.param(list(range(150)), list(range(100)), id="long list"),
        pytest.param([[[[[1]]]]], [[[["list"]]]], id="deep"),
        pytest.param(Address("Rome", SECRET, NOW), {"town": "Rome", "seen": NOW.isoformat()}, id="attrs value"),
        pytest.param(SECRET.encode(), "bytes", id="bytes"),
        pytest.param(Hidden(SECRET), "Hidden", id="a subclass of text"),
        pytest.param(Opaque(), "Opaque", id="an unknown class"),
        pytest.param(Opaque, "type", id="a class"),
        pytest.param(lambda: None, "function", id="a function"),
    ],
)
def test_value_is_written_as_json_can_carry_it(value: Any, wanted: Any) -> None:
    """Of what nobody knows only the class is named."""
    assert written(value) == wanted


def test_field_that_was_left_open_is_left_out() -> None:
    """A class may fill a field later, or never; its other fields are told."""
    event = HalfMade(value=HalfMade(value=1))

    data = json.loads(lines().line(event, NOW))["data"]

    assert data == {"value": {"value": 1}}


def test_value_that_cannot_be_read_is_named_by_its_class() -> None:
    """A time in a zone of the host's own, say; the line is written, and whoever published it notices nothing."""
    assert written(Around(datetime(2024, 1, 2, tzinfo=Nowhere()))) == {"held": "datetime"}


def test_value_that_holds_itself_ends() -> None:
    """Depth is bounded."""
    loop: list[Any] = []
    loop.append(loop)

    assert written(loop) == [[[["list"]]]]


def test_b26_hosts_own_redactor_is_asked() -> None:
    """Also for keys, and what it fails for is replaced."""
    hide = lines(redact=lambda text: text.replace("ada", "***"))
    assert json.loads(hide.line(Shipped(value={"ada": "ada"}), NOW))["data"]["value"] == {"***": "***"}

    def broken(text: str) -> str:
        raise ValueError(text)

    assert SECRET not in lines(redact=broken).line(Shipped(value=SECRET), NOW)


def test_b26_note_of_progress_stays_out() -> None:
    """It is text that a handler wrote."""
    class_ = jobq.JobProgressed
    event = class_(job_id=1, kind="k", queue="q", attempt=1, done=1.0, total=None, note=SECRET, at=NOW)

    line = lines().line(event, NOW)

    assert SECRET not in line
    assert json.loads(line)["data"]["done"] == 1.0


def test_no_event_of_ours_has_a_public_field_of_free_text() -> None:
    """Ids, states and numbers: every public field of text is a name, or a word of a list that is kept here."""
    names = {"kind", "queue", "worker", "schedule", "entry", "component", "detail", "since"}
    for found in jobq.Event.__subclasses__():
        if found.__module__.startswith("jobq.") and not found.private:
            texts = {one.name for one in attrs.fields(found) if one.type in (str, str | None) and not one.metadata}

            assert texts <= names, found
