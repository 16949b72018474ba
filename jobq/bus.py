"""The bus: tells listeners and streams what happened, after it was committed and in the order of the commits.

The store appends changes to the feed while it holds the write lock; whoever called the verb delivers them after the
commit. One thread at a time delivers, so an event of one thread may be told on another.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from jobq.arguments import check_int
from jobq.audience import Listener, Receiver, Routes, Subscription, Target, Weakly, all_events, call
from jobq.blocks import Blocks
from jobq.doorbell import Doorbell
from jobq.errors import ArgumentError
from jobq.lane import Lane
from jobq.model.events import Change, Event, Gap, JobStateChanged, is_event_class
from jobq.ring import RING_SIZE, Ring, Told, type_of
from jobq.stream import Stream

E = TypeVar("E", bound=Event)
Watcher = Callable[[Change], object]

_FIX = "Decorate the class itself with @attrs.frozen, below jobq.Event."


class Bus:
    """What all job queues of one file in one process tell, to whoever listens; safe to use from any thread.

    It keeps the newest events under their ids, for streams that go on where a client left off.
    """

    def __init__(
        self, blocks: Blocks | None = None, *, doorbell: Doorbell | None = None, ring_size: int = RING_SIZE
    ) -> None:
        self._doorbell = doorbell
        self._blocks = blocks or Blocks()
        # Its lock guards everything here: who listens, and the order in which events are numbered.
        self._ring = Ring(ring_size)
        self._audience: tuple[Target, ...] = ()
        self._routes = Routes(())
        self._watchers: tuple[tuple[Watcher, Callable[[Change], bool]], ...] = ()
        self._known: set[type[Event]] = set()
        # Two lanes, so that a slow listener does not hold up the waking of workers.
        self._changes: Lane[tuple[Watcher, Change]] = Lane(self._wake_next)
        self._events: Lane[Change | Event] = Lane(self._tell_next, self._rest)

    @property
    def behind(self) -> bool:
        """Whether there is something that no listener was told yet."""
        return bool(self._events.pending)

    @property
    def telling(self) -> bool:
        """Whether the calling thread is inside a listener: no log line becomes an event there, or none would end."""
        return self._events.is_mine

    def wants(self, event_type: type[Event]) -> bool:
        """Whether anybody is told events of this class: what is private and large is not published for nobody."""
        with self._ring.lock:
            return bool(self._routes[event_type])

    def feed(self, changes: Sequence[Change]) -> None:
        """Take committed changes from the store, in the order of the commits.

        It is called under the write lock of the store, so it only appends; :meth:`deliver` does the rest.
        """
        if self._doorbell is not None:
            self._doorbell.feed(changes)
        for callback, wants in self._watchers:
            self._changes.pending.extend([(callback, change) for change in changes if wants(change)])
        self._enter(changes, JobStateChanged)

    def publish(self, event: Event) -> None:
        """Tell an event of the host's own, or one of jobq's, behind those that wait already.

        Inside a transaction of this thread it is told after the commit, or not at all.

        Raises:
            ArgumentError: it is no :class:`Event`, or its class is no frozen attrs class.
        """
        self.post(event)
        self.deliver()

    def post(self, event: Event) -> None:
        """Put an event behind those that wait, and leave the telling to the next one who delivers.

        This is for a thread with something better to do than to wait for a listener. Raises as :meth:`publish` does.
        """
        if type(event) not in self._known:
            self._learn(event)
        block = self._blocks.mine()
        if block is not None:
            block.events.append(event)
        else:
            self._enter((event,), type(event))

    def wake(self) -> None:
        """Tell the watchers, who are quick, and the waiting runners of other processes, and no listener."""
        if self._changes.pending:
            self._changes.drain()
        if self._doorbell is not None:
            self._doorbell.ring()

    def deliver(self) -> None:
        """Tell everything that was fed and not told yet, unless another thread is about it.

        Nothing is left behind: who delivers looks again after it let go. Called from within a listener it returns at
        once, and the event follows the current one. After a KeyboardInterrupt the next one who delivers goes on.
        Inside a transaction of this thread it does nothing, for what listeners do would become a part of that; the end
        of the block delivers. What listeners enqueue is never staged in an outbox that this thread has joined.
        """
        if self._blocks.mine() is not None:
            return
        self.wake()
        if self._events.pending:
            with self._blocks.places.apart():
                self._events.drain()

    def subscribe(self, event_type: type[E], listener: Callable[[E], object]) -> Subscription:
        """Call ``listener`` with every event of this type and its subclasses, private ones included.

        It is called synchronously on the thread that delivers, may call any verb but ``wait``, and should be quick. One
        that raises is logged and skipped; the outcome of a job never changes because of it.
        """
        if not all_events(event_type):
            raise ArgumentError("event_type", "a subclass of Event is needed")
        if not callable(listener):
            raise ArgumentError("listener", f"a function is needed, not a {type(listener).__name__}")
        return self.attach(Listener(listener), event_type, private=True)

    def stream(
        self, *types: type[Event], maxsize: int = 256, since: str | None = None, private: bool = False
    ) -> Stream:
        """Open a bounded stream of the events of these types, or of all, from now on.

        When it is full the oldest event is dropped and counted; publishing never waits for a stream. Private events
        come only when asked for. One that is neither closed nor held by anybody ends by itself.

        With ``since``, the ``last_id`` of an earlier stream, it goes on behind that event: first what the bus still
        keeps, however small ``maxsize`` is, then what comes. Nothing is missing and nothing comes twice. Where the bus
        does not keep all of it, or the id is no id of this bus, the first event is a :class:`Gap`.
        """
        if not all_events(*types):
            raise ArgumentError("types", "subclasses of Event are needed")
        if since is not None and not isinstance(since, str):
            raise ArgumentError("since", f"the last_id of a stream is needed, not a {type(since).__name__}")
        stream = Stream(self._ring.name, maxsize=check_int(maxsize, argument="maxsize", least=1))
        target = Target(types or (Event,), Weakly(stream), private=private)
        with self._ring.lock:
            last, missed = (self._ring.last, ()) if since is None else self._ring.after(since)
            self._join(target)
        stream.begin(last, (told for told in missed if told.event_type is Gap or target.wants(told.event_type)))
        stream.on_close(lambda: self._leave(target))
        return stream

    def attach(
        self,
        receiver: Receiver,
        *types: type[Event],
        private: bool = False,
        rest: Callable[[], object] | None = None,
    ) -> Subscription:
        """Let a receiver take the events of these types; ``rest`` is called when all was told for now."""
        target = Target(types, receiver, private=private, rest=rest)
        with self._ring.lock:
            self._join(target)
        return Subscription(lambda: self._leave(target))

    def watch(
        self, callback: Watcher, *, wants: Callable[[Change], bool] = lambda change: True
    ) -> Callable[[], None]:
        """Call back with every raw change that it ``wants``, ahead of all listeners; return the function that ends it.

        This is for waking threads: the callback has to be quick and must not call a verb. ``wants`` is asked under the
        write lock, of each change, and must only look.
        """
        entry = (callback, wants)
        with self._ring.lock:
            self._watchers = (*self._watchers, entry)

        def unsubscribe() -> None:
            with self._ring.lock:
                # By identity: one callback may watch twice.
                self._watchers = tuple(kept for kept in self._watchers if kept is not entry)

        return unsubscribe

    def keep(self, ring_size: int) -> None:
        """Keep at least so many events for streams that go on."""
        with self._ring.lock:
            self._ring.keep(ring_size)

    def after_fork(self) -> None:
        """Make the bus usable in a forked child: another bus, with nothing to tell that the parent tells."""
        self._ring.begin()
        self._changes.after_fork()
        self._events.after_fork()
        for target in self._audience:
            target.receiver.after_fork()

    def _enter(self, items: Sequence[Change | Event], event_type: type[Event]) -> None:
        with self._ring.lock:
            if self._events.pending or self._routes[event_type]:
                self._events.pending.extend(items)
            else:
                # Nobody wants them: they are kept for who comes back, and cost no more than that.
                self._ring.extend(items)

    def _learn(self, event: Event) -> None:
        found = type(event)
        if not isinstance(event, Event):
            raise ArgumentError("event", f"an Event is needed, not a {found.__name__}")
        if not is_event_class(found):
            raise ArgumentError("event", f"{found.__name__} is no frozen attrs class", fix=_FIX)
        self._known.add(found)

    def _join(self, target: Target) -> None:
        # Without those that nobody holds any more: no finalizer may take the lock, for it runs wherever it likes.
        self._seat((*(kept for kept in self._audience if not kept.gone), target))

    def _leave(self, target: Target) -> None:
        with self._ring.lock:
            self._seat(tuple(kept for kept in self._audience if kept is not target))

    def _seat(self, audience: tuple[Target, ...]) -> None:
        self._audience, self._routes = audience, Routes(audience)

    def _wake_next(self) -> None:
        callback, change = self._changes.pending.popleft()
        call(callback, change)

    def _tell_next(self) -> None:
        # Numbered, and its audience chosen, in one step: a stream that goes on gets each event once, kept or live.
        with self._ring.lock:
            item = self._events.pending.popleft()
            number = self._ring.add(item)
            targets = self._routes[type_of(item)]
        if targets:
            told = Told(number, item)
            for target in targets:
                target.take(told)

    def _rest(self) -> None:
        for target in self._audience:
            if target.rest is not None:
                target.rest()
            if target.gone:
                self._leave(target)

