"""The bus and its streams."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

import attrs
import pytest

from jobq.bus import Bus
from jobq.errors import ArgumentError
from jobq.model.events import Change, Event, JobStateChanged, QueueStateChanged
from jobq.model.job import JobState
from jobq.threads import Alone
from tests.conftest import PATIENCE, ErrorLog
from tests.interrupts import strikes

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Said(Event):
    """An event of a host."""

    text: str


@attrs.frozen(kw_only=True)
class Shouted(Said):
    """A special case of it."""


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


def test_subscribe_tells_a_committed_change_as_an_event(bus: Bus) -> None:
    """A fed change reaches the listener as the public value, once it is delivered."""
    told: list[JobStateChanged] = []
    bus.subscribe(JobStateChanged, told.append)

    bus.feed([change(7)])

    assert told == []
    bus.deliver()
    assert told == [
        JobStateChanged(
            job_id=7, kind="mail", queue="default", previous=None, state=JobState.QUEUED, attempt=0, at=NOW
        )
    ]


def test_subscribe_tells_subclasses_and_no_other_type(bus: Bus) -> None:
    """A listener hears the events of its type and of subclasses only."""
    told: list[Said] = []
    bus.subscribe(Said, told.append)

    bus.publish(Said(text="a"))
    bus.publish(Shouted(text="b"))
    bus.publish(Whispered(text="c"))

    assert told == [Said(text="a"), Shouted(text="b")]


def test_subscribe_after_an_event_of_the_type_was_told(bus: Bus) -> None:
    """A listener that comes later hears what is published from then on."""
    early: list[Said] = []
    late: list[Said] = []
    bus.subscribe(Said, early.append)
    bus.publish(Said(text="a"))

    bus.subscribe(Said, late.append)
    bus.publish(Said(text="b"))

    assert (len(early), late) == (2, [Said(text="b")])


def test_subscription_closed_hears_nothing_more(bus: Bus) -> None:
    """Closing ends one subscription of a listener, also when it is closed twice."""
    told: list[Said] = []
    kept = bus.subscribe(Said, told.append)
    with bus.subscribe(Said, told.append) as ended:
        pass
    ended.close()

    bus.publish(Said(text="a"))

    assert len(told) == 1
    kept.close()


def test_events_keep_the_order_of_the_feed(bus: Bus) -> None:
    """What is fed first is told first, over types."""
    told: list[Event] = []
    bus.subscribe(Event, told.append)

    bus.feed([change(1), change(2)])
    bus.publish(Said(text="a"))

    assert [getattr(event, "job_id", None) for event in told] == [1, 2, None]


def test_listener_that_publishes_is_heard_after_the_current_event(bus: Bus) -> None:
    """What a listener causes follows the event that it is about."""
    told: list[str] = []

    def echo(event: Said) -> None:
        if event.text == "a":
            bus.publish(Said(text="echo"))

    bus.subscribe(Said, echo)
    bus.subscribe(Said, lambda event: told.append(event.text))

    bus.publish(Said(text="a"))

    assert told == ["a", "echo"]


@pytest.mark.parametrize(
    "error",
    [pytest.param(ValueError("secret"), id="error"), pytest.param(SystemExit(3), id="exit")],
)
def test_b58_listener_that_raises_is_logged_and_skipped(
    bus: Bus, errors: ErrorLog, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """The other listeners hear the event; the log names the listener and not the error's text."""
    told: list[Said] = []

    def broken(_: Said) -> None:
        raise error

    bus.subscribe(Said, broken)
    bus.subscribe(Said, told.append)

    bus.publish(Said(text="a"))

    assert told == [Said(text="a")]
    assert errors.take() == ["jobq.bus.listener_failed"]
    assert "broken" in caplog.text
    assert "secret" not in caplog.text


def test_listener_that_raises_keyboard_interrupt_stops_the_caller(bus: Bus) -> None:
    """Ctrl-C reaches whoever pressed it, and the bus goes on afterwards."""
    told: list[Said] = []

    def interrupted(event: Said) -> None:
        if event.text == "a":
            raise KeyboardInterrupt
        told.append(event)

    bus.subscribe(Said, interrupted)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(Said(text="a"))
    bus.publish(Said(text="b"))

    assert told == [Said(text="b")]


def test_bus_goes_on_after_an_interrupt_at_any_moment(bus: Bus) -> None:
    """Wherever Ctrl-C strikes a publisher, what comes next is told; only the event under way may be cut short."""
    told: list[str] = []
    bus.subscribe(Said, lambda event: told.append(event.text))
    struck = 0
    for number in strikes(lambda: bus.publish(Said(text="struck"))):
        struck += 1
        bus.publish(Said(text=str(number)))
        assert told.pop() == str(number)
        assert not bus.behind

    assert struck > 10


def test_keyboard_interrupt_of_a_listener_elsewhere_is_its_own(bus: Bus, errors: ErrorLog) -> None:
    """Off the main thread nobody pressed Ctrl-C: the listener is skipped, and the thread that delivers lives on."""
    ended: list[bool] = []

    def interrupted(_: Said) -> None:
        raise KeyboardInterrupt

    bus.subscribe(Said, interrupted)
    thread = threading.Thread(target=lambda: (bus.publish(Said(text="a")), ended.append(True)))
    thread.start()
    thread.join(PATIENCE)

    assert ended == [True]
    assert errors.take() == ["jobq.bus.listener_failed"]


def test_post_leaves_the_telling_to_the_next_one(bus: Bus) -> None:
    """A posted event keeps its place, and its thread runs no listener."""
    told: list[str] = []
    woken: list[Change] = []
    bus.subscribe(Said, lambda event: told.append(event.text))
    bus.watch(woken.append)

    bus.feed([change(1)])
    bus.post(Said(text="a"))
    bus.wake()
    assert (told, woken, bus.behind) == ([], [change(1)], True)
    bus.publish(Said(text="b"))

    assert (told, bus.behind) == (["a", "b"], False)


def test_a_watcher_is_told_only_what_it_wants(bus: Bus) -> None:
    """It is asked when a change is fed; another watcher gets what that one does not want."""
    all_of_them: list[Change] = []
    some: list[Change] = []
    bus.watch(all_of_them.append)
    bus.watch(some.append, wants=lambda change: change.job_id > 1)
    bus.feed([change(1), change(2)])
    bus.wake()

    assert (all_of_them, some) == ([change(1), change(2)], [change(2)])


def test_one_thread_delivers_and_leaves_nothing_behind(bus: Bus) -> None:
    """A publish returns at once while another thread delivers, and that thread tells the event too."""
    entered, go_on, told = threading.Event(), threading.Event(), []

    def slow(event: Said) -> None:
        told.append((event.text, threading.current_thread().name))
        entered.set()
        assert go_on.wait(PATIENCE)

    bus.subscribe(Said, slow)
    other = threading.Thread(target=lambda: bus.publish(Said(text="a")), name="other")
    other.start()
    assert entered.wait(PATIENCE)

    bus.publish(Said(text="b"))

    assert [text for text, _ in told] == ["a"]
    go_on.set()
    other.join(PATIENCE)
    assert told == [("a", "other"), ("b", "other")]


def test_many_threads_publish_and_each_event_is_told_once(bus: Bus) -> None:
    """Eight threads at once: nothing is lost, doubled or told out of the order of its thread."""
    told: list[tuple[str, int]] = []
    bus.subscribe(Said, lambda event: told.append((event.text[0], int(event.text[1:]))))
    start = threading.Barrier(8)

    def talk(name: str) -> None:
        start.wait(PATIENCE)
        for number in range(200):
            bus.publish(Said(text=f"{name}{number}"))

    threads = [threading.Thread(target=talk, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert {name: [n for who, n in told if who == name] for name in "abcdefgh"} == {
        name: list(range(200)) for name in "abcdefgh"
    }


def test_event_that_comes_just_before_the_deliverer_lets_go_is_told(bus: Bus) -> None:
    """Its publisher could not deliver it, so the deliverer looks once more after it let go."""
    told: list[str] = []
    bus.subscribe(Said, lambda event: told.append(event.text))
    late = [Said(text="late")]

    class Late(Alone):
        """Publishes, the first time, when everything was told and somebody is still about it."""

        def run(self, work: Callable[[], object]) -> bool:
            return super().run(lambda: (work(), late and bus.publish(late.pop())))

    bus._events._handing_on = Late()

    bus.publish(Said(text="a"))

    assert told == ["a", "late"]


def test_watch_gets_raw_changes_although_a_listener_is_slow(bus: Bus) -> None:
    """Wake-ups do not wait for listeners: they have a lane of their own."""
    entered, go_on, woken = threading.Event(), threading.Event(), []

    def slow(_: JobStateChanged) -> None:
        entered.set()
        assert go_on.wait(PATIENCE)

    bus.subscribe(JobStateChanged, slow)
    unsubscribe = bus.watch(woken.append)
    bus.feed([change(1)])
    other = threading.Thread(target=bus.deliver)
    other.start()
    assert entered.wait(PATIENCE)

    bus.feed([change(2)])
    bus.deliver()

    assert woken == [change(1), change(2)]
    go_on.set()
    other.join(PATIENCE)
    unsubscribe()
    bus.feed([change(3)])
    bus.deliver()
    assert len(woken) == 2


def test_change_that_nobody_wants_is_not_built(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy queue does not pay for events that no listener asks for."""
    built: list[Change] = []
    original = Change.event
    monkeypatch.setattr(Change, "event", lambda self: (built.append(self), original(self))[1])
    bus.subscribe(QueueStateChanged, lambda _: None)

    bus.feed([change(1)])
    bus.deliver()

    assert built == []


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda bus: bus.publish("text"), id="publish text"),
        pytest.param(lambda bus: bus.publish(Said), id="publish a class"),
        pytest.param(lambda bus: bus.subscribe(str, print), id="subscribe to str"),
        pytest.param(lambda bus: bus.subscribe(Said, None), id="no listener"),
        pytest.param(lambda bus: bus.stream(int), id="stream of ints"),
        pytest.param(lambda bus: bus.stream(maxsize=0), id="no room"),
        pytest.param(lambda bus: bus.stream(maxsize=True), id="a bool as size"),
    ],
)
def test_bus_refuses_what_makes_no_sense(bus: Bus, call: Callable[[Bus], object]) -> None:
    """Bad arguments are refused with the argument's name."""
    with pytest.raises(ArgumentError):
        call(bus)


def test_after_fork_nothing_of_the_parent_is_told(bus: Bus) -> None:
    """A child tells what happens in it, although the fork came while the parent delivered."""
    told: list[Said] = []

    def fork_once(event: Said) -> None:
        told.append(event)
        if event.text == "a":
            # What the child does first; here on the same thread, in the middle of a delivery.
            bus.after_fork()
            bus.publish(Said(text="child"))

    bus.subscribe(Said, fork_once)
    bus.publish(Said(text="a"))

    assert told == [Said(text="a"), Said(text="child")]
