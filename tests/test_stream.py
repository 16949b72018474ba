"""Streams: what one client reads at its own speed."""

import threading
import time
from datetime import UTC, datetime
from typing import ClassVar

import attrs
import pytest

from jobq.bus import Bus
from jobq.model.events import Change, Event, JobStateChanged
from jobq.model.job import JobState
from tests.conftest import PATIENCE

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Said(Event):
    """An event of a host."""

    text: str


@attrs.frozen(kw_only=True)
class Whispered(Event):
    """A private event of a host."""

    private: ClassVar[bool] = True
    text: str


def change(job_id: int, state: JobState = JobState.QUEUED) -> Change:
    """Return a change as a store feeds it."""
    return Change(job_id, "mail", "default", None, state, 0, NOW, NOW)


@pytest.fixture
def bus() -> Bus:
    """A bus of its own."""
    return Bus()


def test_b58_stream_that_nobody_reads_keeps_the_newest_and_counts_the_rest(bus: Bus) -> None:
    """10,000 events into 256 places: the newest 256 are there, 9,744 are counted as dropped."""
    with bus.stream(JobStateChanged, maxsize=256) as stream:
        for number in range(10_000):
            bus.feed([change(number)])
            bus.deliver()

        kept = [stream.get(timeout=0) for _ in range(256)]

        assert [event.job_id for event in kept if isinstance(event, JobStateChanged)] == list(range(9_744, 10_000))
        assert stream.dropped == 9_744
        assert stream.get(timeout=0) is None


def test_stream_counts_exactly_while_it_is_read(bus: Bus) -> None:
    """However reading and publishing interleave, read + dropped is what was published."""
    stream = bus.stream(Said, maxsize=3)
    read: list[Event] = []
    reader = threading.Thread(target=lambda: read.extend(stream))
    reader.start()

    for number in range(3_000):
        bus.publish(Said(text=str(number)))
    stream.close()
    reader.join(PATIENCE)

    assert len(read) + stream.dropped == 3_000


def test_stream_drops_are_logged_once(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    """A stalled client does not flood the log."""
    with bus.stream(Said, maxsize=1):
        for _ in range(5):
            bus.publish(Said(text="a"))

    assert caplog.text.count("jobq.stream.dropped") == 1


def test_stream_get_waits_at_most_the_timeout(bus: Bus) -> None:
    """An empty stream answers None when the time is over, however it is written."""
    with bus.stream() as stream:
        began = time.monotonic()

        assert stream.get(timeout="20ms") is None
        assert 0.015 < time.monotonic() - began < PATIENCE


def test_stream_closed_ends_the_wait_of_every_reader(bus: Bus) -> None:
    """Closing wakes the readers; what was there can still be read, nothing more comes in."""
    stream = bus.stream(Said)
    answers: list[Event | None] = []
    readers = [threading.Thread(target=lambda: answers.append(stream.get())) for _ in range(3)]
    bus.publish(Said(text="a"))
    for reader in readers:
        reader.start()

    stream.close()
    stream.close()
    bus.publish(Said(text="b"))
    for reader in readers:
        reader.join(PATIENCE)

    assert answers.count(None) == 2
    assert Said(text="a") in answers
    assert list(stream) == []
    assert stream.closed


def test_stream_gets_private_events_only_when_asked(bus: Bus) -> None:
    """A stream may end at a client; a listener is the host's own code."""
    told: list[Event] = []
    bus.subscribe(Whispered, told.append)
    with bus.stream() as public, bus.stream(Whispered, private=True) as private:
        bus.publish(Whispered(text="a"))

        assert public.get(timeout=0) is None
        assert private.get(timeout=0) == Whispered(text="a")
    assert told == [Whispered(text="a")]


def test_after_fork_streams_are_empty(bus: Bus) -> None:
    """The events that wait in a stream belong to the parent."""
    with bus.stream(Said) as stream:
        bus.publish(Said(text="parent"))

        bus.after_fork()

        assert stream.get(timeout=0) is None
        bus.publish(Said(text="child"))
        assert stream.get(timeout=0) == Said(text="child")
