"""The newest events of a bus under their numbers, so that a client that was away can say where it left off."""

import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice

from jobq.model.events import Change, Event, Gap, JobStateChanged

#: How many events are kept unless told otherwise.
RING_SIZE = 1_000


class Told:
    """One event under its number; a change becomes an event when somebody looks at it."""

    __slots__ = ("_item", "number")

    def __init__(self, number: int, item: Change | Event) -> None:
        self.number = number
        self._item = item

    @property
    def event_type(self) -> type[Event]:
        """The class of the event."""
        return type_of(self._item)

    @property
    def event(self) -> Event:
        """The event; two threads that look at once may get two equal ones."""
        item = self._item
        if isinstance(item, Change):
            item = self._item = item.event()
        return item


class Ring:
    """The newest events; whoever calls a method holds ``lock``, but for :meth:`name`.

    An event's id names the bus and a number that grows by one with each event. A forked child is another bus.
    """

    def __init__(self, size: int) -> None:
        self._items: deque[Change | Event] = deque(maxlen=size)
        self.begin()

    def begin(self) -> None:
        """Be a new bus, on which nothing was told; needs no lock, for nobody else is there."""
        self.lock = threading.Lock()
        self.last = 0
        self._bus = os.urandom(4).hex()
        self._items.clear()

    def keep(self, size: int) -> None:
        """Keep at least so many events from now on."""
        if size > (self._items.maxlen or 0):
            self._items = deque(self._items, maxlen=size)

    def add(self, item: Change | Event) -> int:
        """Take one event and return its number."""
        self._items.append(item)
        self.last += 1
        return self.last

    def extend(self, items: Sequence[Change | Event]) -> None:
        """Take several events."""
        self._items.extend(items)
        self.last += len(items)

    def name(self, number: int) -> str:
        """Return the id of the event with this number; 0 stands for the time before the first."""
        return f"{self._bus}-{number}"

    def after(self, event_id: str) -> tuple[int, Iterable[Told]]:
        """Return the number of this event and what was told after it.

        Where not all of that is kept, or the id is no id of ours, the first is a :class:`Gap` and the number is that of
        the last event that is not kept.
        """
        oldest = self.last - len(self._items)
        number = self._number(event_id)
        gaps = []
        if number is None or number < oldest:
            missed = None if number is None else oldest - number
            number = oldest
            gaps.append(Told(number, Gap(since=event_id, missed=missed)))
        # Copied here, under the lock; the rest is done as it is read.
        items = list(islice(self._items, number - oldest, None))
        return number, chain(gaps, map(Told, range(number + 1, self.last + 1), items))

    def _number(self, event_id: str) -> int | None:
        bus, _, digits = event_id.rpartition("-")
        # Nothing longer is a number of ours, and int() refuses very long ones.
        if bus != self._bus or not digits.isascii() or not digits.isdecimal() or len(digits) > 20:
            return None
        number = int(digits)
        return number if number <= self.last else None


def type_of(item: Change | Event) -> type[Event]:
    """Return the class of an event, or of the one that a change stands for."""
    return JobStateChanged if isinstance(item, Change) else type(item)
