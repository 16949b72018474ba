"""A stream: the bounded queue through which one client reads events at its own speed."""

import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from jobq.log import get_logger
from jobq.model.duration import Duration, to_seconds
from jobq.model.events import Event
from jobq.ring import Told

logger = get_logger(__name__)


class Stream:
    """The newest ``maxsize`` events that were not read yet; safe to read from several threads.

    Iterating waits for the next event and ends when the stream is closed.
    """

    def __init__(self, name: Callable[[int], str], *, maxsize: int) -> None:
        self.maxsize = maxsize
        #: How many events were dropped because the stream was full: exact.
        self.dropped = 0
        self._name = name
        self._closed = False
        self._end: Callable[[], None] | None = None
        self.after_fork()

    @property
    def closed(self) -> bool:
        """Whether nothing more comes in."""
        return self._closed

    @property
    def last_id(self) -> str:
        """The id of the event that was read last, for ``since``; before the first one, of the place where it began."""
        return self._name(self._last)

    def begin(self, last: int, missed: Iterable[Told] = ()) -> None:
        """Stand behind the event with this number, and have these read before what comes."""
        self._last = last
        self._missed.extend(missed)

    def take(self, told: Told) -> None:
        """Take an event, and drop the oldest one when the stream is full; never waits.

        The bus calls it from one thread at a time, which is what makes the count exact.
        """
        if self._closed:
            return
        if self._queue.qsize() >= self.maxsize:
            self._drop()
        self._queue.put(told)

    def get(self, timeout: Duration | None = None) -> Event | None:
        """Return the oldest event that was not read, waiting for one; None when the stream is closed and read.

        ``timeout`` is the longest wait in real time; None is also the answer when nothing came in it.
        """
        told = self._next_missed() if self._missed else None
        if told is None:
            seconds = None if timeout is None else max(0.0, to_seconds(timeout, argument="timeout"))
            try:
                told = self._queue.get(timeout=seconds)
            except queue.Empty:
                return None
            if told is None:
                # The mark of the end stays for other readers.
                self._queue.put(None)
                return None
        self._last = told.number
        return told.event

    def close(self) -> None:
        """Take nothing more in; what waits can still be read. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._end is not None:
            self._end()
        self._queue.put(None)

    def on_close(self, end: Callable[[], None]) -> None:
        """Call back once when the stream is closed."""
        self._end = end

    def after_fork(self) -> None:
        """Make the stream usable in a forked child: empty, and at the beginning of the child's bus."""
        # Unbounded underneath: the bound is kept by take(), so that neither it nor the mark of the end ever waits.
        # queue.Queue would be left locked by a KeyboardInterrupt in a reader, and then hold up whoever publishes.
        self._queue: queue.SimpleQueue[Told | None] = queue.SimpleQueue()
        self._missed: deque[Told] = deque()
        self._last = 0
        if self._closed:
            self._queue.put(None)

    def __iter__(self) -> Iterator[Event]:
        while (event := self.get()) is not None:
            yield event

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next_missed(self) -> Told | None:
        try:
            return self._missed.popleft()
        except IndexError:
            return None  # another reader was faster

    def _drop(self) -> None:
        try:
            gone = self._queue.get_nowait()
        except queue.Empty:
            return  # a reader was faster
        if gone is None:
            self._queue.put(None)
            return
        self.dropped += 1
        if self.dropped == 1:
            # Once: a stalled client must not flood the log as well.
            logger.warning("jobq.stream.dropped", maxsize=self.maxsize)
