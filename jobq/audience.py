"""Who is told on a bus: listeners, which are the host's functions, and receivers, which are ours."""

import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from jobq.log import get_logger
from jobq.model.events import Event
from jobq.ring import Told

logger = get_logger(__name__)


class Subscription:
    """A listener on the bus; ``close()`` ends it, as does leaving it as a context manager."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def close(self) -> None:
        """Tell the listener nothing more; closing twice does nothing. An event being told may still arrive."""
        self._end()

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Receiver(Protocol):
    """What takes events one by one, each under its number: a stream, a listener, the event log."""

    def take(self, told: Told) -> None:
        """Take one event; it is called from one thread at a time, and neither waits for a client nor raises."""

    def after_fork(self) -> None:
        """Become usable in a forked child, without what the parent was told."""


class Weakly:
    """Hands on to a receiver for as long as somebody else holds that: a client that forgets its stream ends it."""

    __slots__ = ("_receiver",)

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = weakref.ref(receiver)

    @property
    def gone(self) -> bool:
        """Whether nobody holds it any more."""
        return self._receiver() is None

    def take(self, told: Told) -> None:
        """Hand on one event."""
        receiver = self._receiver()
        if receiver is not None:
            receiver.take(told)

    def after_fork(self) -> None:
        """Hand on that this is a forked child."""
        receiver = self._receiver()
        if receiver is not None:
            receiver.after_fork()


class Target:
    """A receiver and what it wants to hear; ``rest`` is called when everything was told for now."""

    __slots__ = ("private", "receiver", "rest", "take", "types")

    def __init__(
        self,
        types: tuple[type[Event], ...],
        receiver: Receiver,
        *,
        private: bool,
        rest: Callable[[], object] | None = None,
    ) -> None:
        self.types = types
        self.receiver = receiver
        self.private = private
        self.rest = rest
        self.take = receiver.take

    @property
    def gone(self) -> bool:
        """Whether it hears nothing any more, because nobody holds it."""
        return isinstance(self.receiver, Weakly) and self.receiver.gone

    def wants(self, event_type: type[Event]) -> bool:
        """Whether it wants the events of this class."""
        return issubclass(event_type, self.types) and (self.private or not event_type.private)


class Routes(dict[type[Event], tuple[Target, ...]]):
    """Who of an audience is told the events of a class, worked out when it is first asked for."""

    def __init__(self, audience: tuple[Target, ...]) -> None:
        self._audience = audience

    def __missing__(self, event_type: type[Event]) -> tuple[Target, ...]:
        found = self[event_type] = tuple(target for target in self._audience if target.wants(event_type))
        return found


class Listener:
    """A function of the host's that is told events; what it raises is logged."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def take(self, told: Told) -> None:
        """Call the function with the event."""
        call(self._function, told.event)

    def after_fork(self) -> None:
        """Do nothing: it keeps nothing."""


def call(function: Callable[[Any], object], told: object) -> None:
    """Call somebody else's function; what it raises is logged by its name, and goes no further."""
    try:
        function(told)
    except BaseException as error:  # a listener's SystemExit must not end the worker that happens to deliver
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # Ctrl-C comes there and nowhere else
        name = getattr(function, "__qualname__", type(function).__name__)
        logger.error("jobq.bus.listener_failed", listener=name, error=type(error).__name__)


def all_events(*types: object) -> bool:
    """Whether these are classes of events, all of them."""
    return all(isinstance(wanted, type) and issubclass(wanted, Event) for wanted in types)
