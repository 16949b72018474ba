"""The fair lock in front of the writer, whose holder may serve those who wait.

Threads come in the order of their arrival. A waiting thread either gets the lock handed over, or *rides*: the holder
carries out its operation and wakes it with the answer. Each waiter sleeps on a lock of its own, so a hand-over wakes
exactly one thread.

A KeyboardInterrupt may strike between any two bytecodes of the main thread. So a state is always written before
the entry of the queue is dropped, never after; an entry that is stale because of that is skipped.
"""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from threading import get_ident
from typing import Any

import apsw

from jobq.model.events import Change

Operation = Callable[[apsw.Connection, list[Change]], Any]


class State(IntEnum):
    """Where a ticket is."""

    WAITING = 0
    LEADING = 1
    RIDING = 2
    DONE = 3


# Module globals: looking a member up on the class costs more than the rest of an uncontended turn.
_WAITING, _LEADING, _RIDING, _DONE = State


class Overdue(Exception):
    """The patience of a ticket ended before its turn came."""


class Ticket:
    """The calling thread's wish to write; without an operation it wants the lock for itself."""

    __slots__ = ("changes", "error", "operation", "patience", "ran", "result", "state", "sync", "thread", "wake")

    #: Made and taken when the thread has to wait; released by whoever wakes it.
    wake: threading.Lock

    def __init__(self, operation: Operation | None, *, sync: bool, patience: float) -> None:
        self.thread = get_ident()
        self.operation = operation
        self.sync = sync
        #: How many seconds it may wait from now on; what it waited for its turn is taken off.
        self.patience = patience
        self.state: State = _WAITING
        self.changes: list[Change] = []
        self.ran = False
        self.result: Any = None
        self.error: Exception | None = None


class Turn:
    """A first-come first-served lock over tickets."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        #: Who waits, and stale entries; empty it means nobody, which is nearly always all there is to know.
        self.line: deque[Ticket] = deque()
        #: The thread that holds the lock; 0 when it is free.
        self.holder = 0

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        with self._mutex:
            return sum(ticket.state is _WAITING for ticket in self.line)

    def enter(self, ticket: Ticket) -> bool:
        """Return True when the caller holds the lock, False when a holder has carried out its operation.

        Raises Overdue after the ticket's patience. However it ends, :meth:`leave` must follow.
        """
        with self._mutex:
            if not self.holder:
                self.holder = ticket.thread
                ticket.state = _LEADING
                return True
            ticket.wake = threading.Lock()
            ticket.wake.acquire()
            self.line.append(ticket)
        began = time.monotonic()
        if not ticket.wake.acquire(timeout=min(max(ticket.patience, 0.0), threading.TIMEOUT_MAX)):
            self._give_up(ticket)
        ticket.patience -= time.monotonic() - began
        return ticket.state is _LEADING

    def leave(self, ticket: Ticket) -> None:
        """Hand the lock on, or withdraw; returns once nobody works on the ticket any more. Idempotent."""
        while ticket.state is not _DONE:
            with self._mutex:
                if ticket.state is _LEADING:
                    successor = self._next() if self.line else None
                    # No Python call before the release: an interrupt on entering it would leave the lock to nobody.
                    ticket.state = _DONE
                    if successor is None:
                        self.holder = 0
                    else:
                        self.holder = successor.thread
                        successor.state = _LEADING
                        successor.wake.release()
                        self.line.popleft()
                elif ticket.state is _WAITING:
                    ticket.state = _DONE
            if ticket.state is _RIDING:
                ticket.wake.acquire()

    def needs_sync(self, limit: int) -> bool:
        """Tell whether one of the next waiters wants its commit synced."""
        with self._mutex:
            return any(
                ticket.sync and ticket.operation is not None and ticket.state is _WAITING
                for ticket in itertools.islice(self.line, limit)
            )

    def board(self, riders: list[Ticket], *, synced: bool) -> Ticket | None:
        """Take the next waiter as a rider if it may ride in this group; only for the holder."""
        with self._mutex:
            ticket = self._next()
            if ticket is None or ticket.operation is None or (ticket.sync and not synced):
                return None
            ticket.state = _RIDING
            riders.append(ticket)
            self.line.popleft()
            return ticket

    def put_back(self, tickets: list[Ticket]) -> None:
        """Make riders wait again, at the front and in their order; only for the holder."""
        with self._mutex:
            for ticket in reversed(tickets):
                if ticket.state is not _RIDING:
                    continue
                ticket.changes.clear()
                ticket.error = None
                ticket.ran = False
                ticket.state = _WAITING
                self.line.appendleft(ticket)

    def answer(self, ticket: Ticket) -> None:
        """Wake a rider whose result or error is filled in."""
        ticket.state = _DONE
        ticket.wake.release()

    def freeze(self) -> None:
        """Hold the inner mutex over a fork, so that the child does not inherit it from a thread that is gone."""
        self._mutex.acquire()

    def thaw(self) -> None:
        """Undo :meth:`freeze`."""
        self._mutex.release()

    def _give_up(self, ticket: Ticket) -> None:
        with self._mutex:
            if ticket.state is _WAITING:
                ticket.state = _DONE
                raise Overdue
        # Chosen at the last moment; if as a rider, the holder is at work on it and will answer.
        ticket.wake.acquire()

    def _next(self) -> Ticket | None:
        while self.line:
            ticket = self.line[0]
            if ticket.state is _WAITING:
                return ticket
            self.line.popleft()
        return None
