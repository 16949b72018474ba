"""The bus: tells listeners and streams what happened, after it was committed and in the order of the commits.

The store appends changes to the feed while it holds the write lock; whoever called the verb delivers them after the
commit. One thread at a time delivers, so an event of one thread may be told on another.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar

from jobq.arguments import check_int
from jobq.blocks import Blocks
from jobq.errors import ArgumentError
from jobq.log import get_logger
from jobq.model.events import Change, Event, JobStateChanged
from jobq.stream import Stream
from jobq.threads import Alone

logger = get_logger(__name__)

E = TypeVar("E", bound=Event)
Item = TypeVar("Item")


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


class Bus:
    """What all job queues of one file in one process tell, to whoever listens; safe to use from any thread."""

    def __init__(self, blocks: Blocks | None = None) -> None:
        self._blocks = blocks or Blocks()
        self._lock = threading.Lock()
        self._audience: tuple[_Target, ...] = ()
        self._routes: dict[type[Event], tuple[_Target, ...]] = {}
        self._watchers: tuple[tuple[Callable[[Change], object]], ...] = ()
        # Two lanes, so that a slow listener does not hold up the waking of workers.
        self._changes: _Lane[Change] = _Lane(self._wake)
        self._events: _Lane[Change | Event] = _Lane(self._tell)

    def feed(self, changes: Sequence[Change]) -> None:
        """Take committed changes from the store, in the order of the commits.

        It is called under the write lock of the store, so it only appends; :meth:`deliver` does the rest.
        """
        if self._watchers:
            self._changes.pending.extend(changes)
        if self._audience:
            self._events.pending.extend(changes)

    def publish(self, event: Event) -> None:
        """Tell an event of the host's own, or one of jobq's, behind those that wait already.

        Inside a transaction of this thread it is told after the commit, or not at all.

        Raises:
            ArgumentError: it is no :class:`Event`.
        """
        self.post(event)
        self.deliver()

    def post(self, event: Event) -> None:
        """Put an event behind those that wait, and leave the telling to the next one who delivers.

        This is for a thread with something better to do than to wait for a listener. Raises as :meth:`publish` does.
        """
        if not isinstance(event, Event):
            raise ArgumentError("event", f"an Event is needed, not a {type(event).__name__}")
        block = self._blocks.mine()
        if block is not None:
            block.events.append(event)
        elif self._audience:
            self._events.pending.append(event)

    @property
    def behind(self) -> bool:
        """Whether there is something that no listener was told yet."""
        return bool(self._events.pending)

    def wake(self) -> None:
        """Tell the watchers, who are quick, and no listener."""
        self._changes.drain()

    def deliver(self) -> None:
        """Tell everything that was fed and not told yet, unless another thread is about it.

        Nothing is left behind: who delivers looks again after it let go. Called from within a listener it returns at
        once, and the event follows the current one. After a KeyboardInterrupt the next one who delivers goes on.
        Inside a transaction of this thread it does nothing, for what listeners do would become a part of that; the end
        of the block delivers.
        """
        if self._blocks.mine() is not None:
            return
        self._changes.drain()
        self._events.drain()

    def subscribe(self, event_type: type[E], listener: Callable[[E], object]) -> Subscription:
        """Call ``listener`` with every event of this type and its subclasses, private ones included.

        It is called synchronously on the thread that delivers, may call any verb but ``wait``, and should be quick. One
        that raises is logged and skipped; the outcome of a job never changes because of it.
        """
        if not isinstance(event_type, type) or not issubclass(event_type, Event):
            raise ArgumentError("event_type", "a subclass of Event is needed")
        if not callable(listener):
            raise ArgumentError("listener", f"a function is needed, not a {type(listener).__name__}")
        return Subscription(self._add(_Target((event_type,), listener, private=True)))

    def stream(self, *types: type[Event], maxsize: int = 256, private: bool = False) -> Stream:
        """Open a bounded stream of the events of these types, or of all.

        When it is full the oldest event is dropped and counted; publishing never waits for a stream. Private events
        come only when asked for.
        """
        if not all(isinstance(wanted, type) and issubclass(wanted, Event) for wanted in types):
            raise ArgumentError("types", "subclasses of Event are needed")
        stream = Stream(maxsize=check_int(maxsize, argument="maxsize", least=1))
        stream.on_close(self._add(_Target(types or (Event,), stream.put, private=private, reset=stream.after_fork)))
        return stream

    def watch(self, callback: Callable[[Change], object]) -> Callable[[], None]:
        """Call back with every raw change, ahead of all listeners; return the function that ends it.

        This is for waking threads: the callback has to be quick and must not call a verb.
        """
        entry = (callback,)
        with self._lock:
            self._watchers = (*self._watchers, entry)

        def unsubscribe() -> None:
            with self._lock:
                # By identity: one callback may watch twice.
                self._watchers = tuple(kept for kept in self._watchers if kept is not entry)

        return unsubscribe

    def after_fork(self) -> None:
        """Make the bus usable in a forked child: new locks, and nothing to tell that the parent tells."""
        self._lock = threading.Lock()
        self._changes.after_fork()
        self._events.after_fork()
        for target in self._audience:
            target.reset()

    def _add(self, target: "_Target") -> Callable[[], None]:
        with self._lock:
            self._audience, self._routes = (*self._audience, target), {}

        def remove() -> None:
            with self._lock:
                self._audience, self._routes = tuple(kept for kept in self._audience if kept is not target), {}

        return remove

    def _wake(self, change: Change) -> None:
        for (callback,) in self._watchers:
            _call(callback, change)

    def _tell(self, item: Change | Event) -> None:
        event_type = JobStateChanged if isinstance(item, Change) else type(item)
        targets = self._route(event_type)
        if targets:
            # A change becomes an event only when somebody looks at it.
            event = item.event() if isinstance(item, Change) else item
            for target in targets:
                _call(target.call, event)

    def _route(self, event_type: type[Event]) -> tuple["_Target", ...]:
        # Looked up in and stored into one mapping: a subscription that comes meanwhile starts a new one.
        routes = self._routes
        found = routes.get(event_type)
        if found is None:
            found = routes[event_type] = tuple(target for target in self._audience if target.wants(event_type))
        return found


class _Target:
    """A listener or a stream, and what it wants to hear."""

    def __init__(
        self,
        types: tuple[type[Event], ...],
        call: Callable[[Any], object],
        *,
        private: bool,
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        self.types = types
        self.call = call
        self.private = private
        self.reset = reset

    def wants(self, event_type: type[Event]) -> bool:
        return issubclass(event_type, self.types) and (self.private or not event_type.private)


class _Lane(Generic[Item]):
    """First in, first out, handed on by one thread at a time."""

    def __init__(self, hand_on: Callable[[Item], None]) -> None:
        self.pending: deque[Item] = deque()
        self._hand_on = hand_on
        self._handing_on = Alone()

    def drain(self) -> None:
        # The second look after letting go finds what came between the last look and the end.
        while self.pending and self._handing_on.run(self._empty):
            pass

    def after_fork(self) -> None:
        self._handing_on.after_fork()
        self.pending.clear()

    def _empty(self) -> None:
        while self.pending:
            self._hand_on(self.pending.popleft())


def _call(callback: Callable[[Item], object], item: Item) -> None:
    try:
        callback(item)
    except BaseException as error:  # a listener's SystemExit must not end the worker that happens to deliver
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # Ctrl-C comes there and nowhere else
        name = getattr(callback, "__qualname__", type(callback).__name__)
        logger.error("jobq.bus.listener_failed", listener=name, error=type(error).__name__)
