"""Events that hosts define, and a listener that logs."""

import logging
from collections.abc import Iterator
from typing import ClassVar

import attrs
import pytest

import jobq
from jobq.bus import Bus


@attrs.frozen(kw_only=True)
class Shipped(jobq.Event):
    """An event of a host."""

    order: int


@attrs.define
class Defined(jobq.Event):
    """attrs freezes it, because its base is frozen."""

    order: int


class Bare(Shipped):
    """A subclass that is no attrs class itself."""


class Annotated(jobq.Event):
    """One whose author forgot the decorator."""

    order: int = 3


@attrs.define(on_setattr=attrs.setters.NO_OP)
class Thawed(jobq.Event):
    """One that lets itself be changed."""

    order: int
    __setattr__ = object.__setattr__


@attrs.frozen(kw_only=True)
class LogEvent(jobq.Event):
    """A log line as an event."""

    private: ClassVar[bool] = True
    line: str


@pytest.fixture
def bus() -> Bus:
    """A bus of its own."""
    return Bus()


@pytest.mark.parametrize("event", [pytest.param(Shipped(order=1), id="frozen"), pytest.param(Defined(1), id="define")])
def test_frozen_attrs_class_is_told(bus: Bus, event: jobq.Event) -> None:
    """To listeners and to streams, as it is."""
    told: list[jobq.Event] = []
    bus.subscribe(type(event), told.append)
    with bus.stream() as stream:
        bus.publish(event)

        assert [stream.get(timeout=0)] == told == [event]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Bare(order=1), id="a plain subclass of one"),
        pytest.param(Annotated(), id="no decorator"),
        pytest.param(Thawed(1), id="not frozen"),
    ],
)
def test_event_of_another_class_is_refused_with_what_to_do(bus: Bus, event: jobq.Event) -> None:
    """A listener could change it, or its fields would be missing from the event log."""
    with bus.stream() as stream:
        with pytest.raises(jobq.ArgumentError, match=type(event).__name__) as caught:
            bus.publish(event)

        assert stream.get(timeout=0) is None
    assert caught.value.fix == "Decorate the class itself with @attrs.frozen, below jobq.Event."


def test_event_of_another_class_is_refused_in_a_transaction_too(jobs: jobq.JobQueue) -> None:
    """At the call, and not after the commit."""
    with jobs.transaction(), pytest.raises(jobq.ArgumentError):
        jobs.bus.publish(Bare(order=1))


class Processor(logging.Handler):
    """Makes an event of each log line, as a host's logging does that shows its log as a stream."""

    def __init__(self, bus: Bus) -> None:
        super().__init__()
        self._bus = bus

    def emit(self, record: logging.LogRecord) -> None:
        """Publish the line unless a listener says it."""
        if not self._bus.telling:
            self._bus.publish(LogEvent(line=record.getMessage()))


@pytest.fixture
def log(bus: Bus) -> Iterator[logging.Logger]:
    """A logger whose lines become events."""
    logger, processor = logging.getLogger("shop"), Processor(bus)
    logger.addHandler(processor)
    yield logger
    logger.removeHandler(processor)


def test_listener_that_logs_does_not_make_the_log_feed_itself(bus: Bus, log: logging.Logger) -> None:
    """What it says about a log line, or about an event that another listener made of one, is no event."""
    told: list[jobq.Event] = []

    def chatter(event: jobq.Event) -> None:
        told.append(event)
        if len(told) < 50:
            log.warning("heard %s", type(event).__name__)
            if isinstance(event, LogEvent):
                bus.publish(Shipped(order=len(told)))

    bus.subscribe(jobq.Event, chatter)

    log.warning("a line")

    assert told == [LogEvent(line="a line"), Shipped(order=1)]
    assert not bus.telling
    log.warning("another")
    assert len(told) == 4
