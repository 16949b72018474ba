"""The ring of a bus: a client that comes back gets what it missed, each event once."""

import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

import jobq
from jobq.bus import Bus
from jobq.errors import ArgumentError
from jobq.model.events import Change, Event, Gap, JobStateChanged
from jobq.model.job import JobState
from jobq.ring import Ring
from jobq.stream import Stream
from tests.conftest import PATIENCE

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Counted(Event):
    """An event of a host."""

    number: int


@attrs.frozen(kw_only=True)
class Whispered(Event):
    """A private event of a host."""

    private: ClassVar[bool] = True


def change(job_id: int) -> Change:
    """Return a change as a store feeds it."""
    return Change(job_id, "mail", "default", None, JobState.QUEUED, 0, NOW, NOW)


def count(bus: Bus, numbers: range) -> None:
    """Publish numbers."""
    for number in numbers:
        bus.publish(Counted(number=number))


def read(stream: Stream) -> list[object]:
    """Return what a stream has now: numbers, and other events as they are."""
    found = iter(lambda: stream.get(timeout=0), None)
    return [event.number if isinstance(event, Counted) else event for event in found]


@pytest.fixture
def bus() -> Bus:
    """A bus that keeps ten events."""
    return Bus(ring_size=10)


def left_at(bus: Bus) -> str:
    """Return the id of now."""
    with bus.stream() as stream:
        return stream.last_id


def test_since_gives_what_was_missed_and_goes_on(bus: Bus) -> None:
    """First the events behind the id, then those that come; nothing twice."""
    with bus.stream(Counted) as stream:
        count(bus, range(5))
        assert [stream.get(), stream.get()] == [Counted(number=0), Counted(number=1)]
        left = stream.last_id

    with bus.stream(Counted, since=left) as stream:
        count(bus, range(5, 8))

        assert read(stream) == [2, 3, 4, 5, 6, 7]


def test_last_id_before_the_first_event_is_where_the_stream_began(bus: Bus) -> None:
    """A client that got nothing yet can come back as well."""
    count(bus, range(3))
    left = left_at(bus)
    count(bus, range(3, 6))

    with bus.stream(since=left) as stream:
        assert stream.last_id == left
        assert read(stream) == [3, 4, 5]
        assert stream.last_id == left_at(bus)


def test_event_is_kept_although_nobody_listened(bus: Bus) -> None:
    """Published and fed ones, in their order, with and without an audience."""
    left = left_at(bus)
    count(bus, range(1))
    bus.feed([change(7)])
    with bus.subscribe(Counted, lambda _: None):
        count(bus, range(1, 2))
    bus.feed([change(8)])

    with bus.stream(since=left) as stream:
        assert [getattr(event, "job_id", event) for event in read(stream)] == [0, 7, 1, 8]


def test_event_that_waits_goes_ahead_of_one_that_nobody_hears(bus: Bus) -> None:
    """The order stays although the last listener left meanwhile."""
    left = left_at(bus)
    with bus.subscribe(Counted, lambda _: None):
        bus.post(Counted(number=0))
    bus.feed([change(7)])
    bus.deliver()

    with bus.stream(since=left) as stream:
        assert [getattr(event, "job_id", event) for event in read(stream)] == [0, 7]


def test_last_event_that_is_kept_is_no_gap_and_one_more_is(bus: Bus) -> None:
    """Exactly as many events as the ring holds can be missed."""
    left = left_at(bus)
    count(bus, range(10))
    with bus.stream(since=left) as stream:
        assert read(stream) == list(range(10))
    count(bus, range(10, 11))

    with bus.stream(since=left) as stream:
        assert read(stream) == [Gap(since=left, missed=1), *range(1, 11)]


def test_gap_does_not_hide_where_a_client_left_off(bus: Bus) -> None:
    """A client that read the gap and nothing behind it goes on with the first event that was kept."""
    left = left_at(bus)
    count(bus, range(12))
    with bus.stream(since=left) as stream:
        assert stream.get() == Gap(since=left, missed=2)
        left = stream.last_id

    with bus.stream(since=left) as stream:
        assert read(stream) == list(range(2, 12))


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(lambda left: Bus()._ring.name(0), id="another bus"),
        pytest.param(lambda left: left[:-1] + "9", id="a later number"),
        pytest.param(lambda left: left + "9" * 5_000, id="a huge number"),
        pytest.param(lambda left: left[:-1] + "-1", id="a negative number"),
        pytest.param(lambda left: left[:-1] + "\u0663", id="digits of another script"),
        pytest.param(lambda left: "", id="nothing"),
        pytest.param(lambda left: "x\0y", id="nonsense"),
    ],
)
def test_id_of_no_event_of_this_bus_is_a_gap(bus: Bus, foreign: Callable[[str], str]) -> None:
    """Everything that is kept follows, because all of it is news."""
    count(bus, range(3))
    since = foreign(left_at(bus))

    with bus.stream(Counted, since=since) as stream:
        assert read(stream) == [Gap(since=since, missed=None), 0, 1, 2]


def test_since_that_is_no_text_is_refused(bus: Bus) -> None:
    """It is an id, not a number."""
    with pytest.raises(ArgumentError, match="last_id"):
        bus.stream(since=3)  # type: ignore[arg-type]


def test_missed_events_are_not_dropped_by_a_small_stream(bus: Bus) -> None:
    """The bound is for what comes live."""
    left = left_at(bus)
    count(bus, range(8))

    with bus.stream(since=left, maxsize=2) as stream:
        count(bus, range(8, 12))

        assert read(stream) == [*range(8), 10, 11]
        assert stream.dropped == 2


def test_missed_private_events_come_only_when_asked_for(bus: Bus) -> None:
    """They are in the ring, as others are."""
    left = left_at(bus)
    bus.publish(Whispered())
    count(bus, range(1))

    with bus.stream(since=left) as public, bus.stream(since=left, private=True) as private:
        assert read(public) == [0]
        assert read(private) == [Whispered(), 0]


def test_missed_change_is_built_when_it_is_read(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that comes back holds up nobody with that."""
    built: list[Change] = []
    original = Change.event
    monkeypatch.setattr(Change, "event", lambda self: (built.append(self), original(self))[1])
    left = left_at(bus)
    bus.feed([change(1), change(2)])

    with bus.stream(JobStateChanged, since=left) as stream:
        bus.feed([change(3)])
        bus.deliver()
        assert built == []
        assert [getattr(event, "job_id", None) for event in read(stream)] == [1, 2, 3]


def test_client_that_comes_back_all_the_time_gets_each_event_once(bus: Bus) -> None:
    """However leaving and coming interleave with four publishers, nothing is missing and nothing comes twice."""
    bus.keep(100_000)
    left, got, ended = left_at(bus), [], threading.Event()

    def publish(thread: int) -> None:
        count(bus, range(thread * 1_000, thread * 1_000 + 1_000))

    def come_and_go() -> None:
        nonlocal left
        while True:
            last = ended.is_set()
            with bus.stream(Counted, since=left, maxsize=100_000) as stream:
                got.extend(read(stream) if last else itertools.islice(read(stream), 7))
                left = f"{left.rpartition('-')[0]}-{len(got)}"
            if last:
                return

    client = threading.Thread(target=come_and_go)
    publishers = [threading.Thread(target=publish, args=(thread,)) for thread in range(4)]
    for thread in (client, *publishers):
        thread.start()
    for thread in publishers:
        thread.join(PATIENCE)
    ended.set()
    client.join(PATIENCE)

    assert sorted(got) == list(range(4_000))
    for thread in range(4):
        mine = [number for number in got if number // 1_000 == thread]
        assert mine == sorted(mine)


def test_stream_that_joins_while_an_event_is_told_gets_it_once(bus: Bus) -> None:
    """The event is numbered before its listeners hear it, so it is kept for a stream that comes meanwhile."""
    left, streams = left_at(bus), []
    bus.subscribe(Counted, lambda _: streams or streams.append(bus.stream(Counted, since=left)))

    count(bus, range(2))

    assert read(streams[0]) == [0, 1]
    streams[0].close()


def test_event_is_numbered_under_the_lock(bus: Bus) -> None:
    """Nobody can join between its leaving the lane, its number and the choice of its audience."""
    held: list[bool] = []

    class Watched(Ring):
        """Looks at its lock when an event comes."""

        def add(self, item: Change | Event) -> int:
            held.append(self.lock.locked() and not bus._events.pending)
            return super().add(item)

    bus._ring = Watched(10)
    bus.subscribe(Counted, lambda _: None)
    count(bus, range(1))

    assert held == [True]


def test_ring_grows_and_never_shrinks(bus: Bus) -> None:
    """Of two job queues that share a bus, the one that wants more gets it."""
    left = left_at(bus)
    count(bus, range(10))
    bus.keep(20)
    bus.keep(5)
    count(bus, range(10, 20))

    with bus.stream(since=left) as stream:
        assert read(stream) == list(range(20))


def test_size_of_the_ring_is_configured(tmp_path: Path) -> None:
    """Job queues of one file share it, and the largest wish is granted."""
    small, large = (
        jobq.open(tmp_path / "jobs.db", config=jobq.Config(event_ring_size=size)) for size in (1, 3)
    )
    left = left_at(small.bus)
    for _ in range(4):
        small.enqueue("k")

    with large.bus.stream(since=left) as stream:
        assert stream.get() == Gap(since=left, missed=1)
    small.close()
    large.close()


def test_ring_of_no_size_keeps_nothing() -> None:
    """What comes is told all the same, and a client that missed something is told that."""
    bus = Bus(ring_size=0)
    left = left_at(bus)
    with bus.stream(since=left) as stream:
        count(bus, range(2))
        assert read(stream) == [0, 1]

    with bus.stream(since=left) as stream:
        assert read(stream) == [Gap(since=left, missed=2)]


def test_forked_child_is_another_bus(bus: Bus) -> None:
    """An id of the parent's is none of the child's, and what was told before the fork is the parent's."""
    left = left_at(bus)
    count(bus, range(3))
    bus.after_fork()
    count(bus, range(3, 4))

    with bus.stream(since=left) as stream:
        assert read(stream) == [Gap(since=left, missed=None), 3]


def test_two_rings_have_different_names() -> None:
    """Or an id could be taken for one of another process."""
    assert len({Ring(1).name(0) for _ in range(50)}) == 50
