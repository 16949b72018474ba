"""Gates: process-wide counting semaphores that kinds share, for a resource that bears only so many users at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobq.errors import ArgumentError, ConfigError
from jobq.log import get_logger
from jobq.threads import Bell

logger = get_logger(__name__)

#: Seconds after which a thread that waits for a permit looks by itself.
LONGEST_WAIT = 0.5


class Permit:
    """A place at a gate, taken or not; taking it or giving it back once more does nothing."""

    __slots__ = ("called",)

    def __init__(self) -> None:
        #: Rung when somebody who waits for it may try again.
        self.called = Bell()


class Gate:
    """A named counting semaphore; safe to use from any thread of this process.

    Permits below 1 become 1: a gate nobody can pass would park its kinds for ever.
    """

    def __init__(self, name: str, permits: int) -> None:
        self.name = name
        self.permits = max(1, permits)
        self._listeners: tuple[tuple[Callable[[], object]], ...] = ()
        self.after_fork()

    @property
    def free(self) -> int:
        """The number of permits that nobody holds at this moment."""
        return self.permits - len(self._held)

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Hold one permit inside the block; waits until there is one."""
        permit = Permit()
        try:
            self._wait_for(permit)
            yield
        finally:
            # Twice, for an interrupt may strike as the call begins.
            try:
                self._leave(permit)
            except BaseException:
                self._leave(permit)
                raise

    def try_acquire(self) -> bool:
        """Take one permit if there is one, without waiting, and return whether it was taken."""
        permit = Permit()
        try:
            taken = self.take(permit)
            if taken:
                with self._lock:
                    self._loose.append(permit)
            return taken
        except BaseException:
            self.put_back(permit)
            raise

    def release(self) -> None:
        """Give back what :meth:`try_acquire` took: wake one thread that waits, and call the release callbacks.

        Where there is nothing to give back nothing happens; a forked child has none of its parent's permits. A callback
        that raises is logged and skipped.
        """
        with self._lock:
            while self._loose and self._loose[-1] not in self._held:
                self._loose.pop()  # an interrupt struck before this
            if not self._loose:
                return
            permit = self._loose[-1]
            self._held.discard(permit)
            self._loose.pop()
        self.put_back(permit)
        self._tell()

    def take(self, permit: Permit) -> bool:
        """Take this permit if one is free, without waiting, and return whether it is taken."""
        with self._lock:
            if len(self._held) < self.permits:
                self._held.add(permit)
            return permit in self._held

    def holds(self, permit: Permit) -> bool:
        """Return whether this permit is taken."""
        return permit in self._held

    def end(self, permit: Permit) -> None:
        """Give this permit back after use and call the release callbacks; does nothing where it is not taken."""
        if permit in self._held:
            self.put_back(permit)
            self._tell()

    def put_back(self, permit: Permit) -> bool:
        """Give back a permit that was taken on the chance of work and not used; return whether it was taken.

        It calls those who asked by :meth:`call_when_free` and no release callback: whoever takes permits when called
        back would otherwise call back others like itself for ever.
        """
        taken = permit in self._held
        # First and in one step: an interrupt after it can only lose the calls.
        self._held.discard(permit)
        if self._waiting:
            self._call_next()
        if self._curious:
            self._call_curious()
        return taken

    def call_when_free(self, callback: Callable[[], object]) -> None:
        """Call back once, as soon as a permit is free however it came free; here and now where one is.

        It is called without a lock held, on the thread that gives back; asking again before that changes nothing.
        """
        with self._lock:
            free = len(self._held) < self.permits
            if not free:
                self._curious[callback] = None
        if free:
            _call(callback)

    def on_release(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back after each release, on the releasing thread; return the function that ends that.

        Callbacks are called without a lock held. Ending it twice does nothing.
        """
        entry = (callback,)
        with self._lock:
            self._listeners = (*self._listeners, entry)

        def unsubscribe() -> None:
            with self._lock:
                # By identity: one callback may be subscribed twice.
                self._listeners = tuple(kept for kept in self._listeners if kept is not entry)

        return unsubscribe

    def after_fork(self) -> None:
        """Make the gate usable in a forked child: a new lock, and all permits free.

        The threads that held permits, or the lock, do not exist in the child.
        """
        self._lock = threading.Lock()
        self._held: set[Permit] = set()
        # Those of try_acquire(), which nobody can name when they come back.
        self._loose: list[Permit] = []
        self._waiting: dict[Permit, None] = {}
        self._curious: dict[Callable[[], object], None] = {}

    def _wait_for(self, permit: Permit) -> None:
        with self._lock:
            self._waiting[permit] = None
        while not self.take(permit):
            # Bounded, for an interrupt of the one who gives back can lose the call.
            permit.called.wait(LONGEST_WAIT)
        self._stop_waiting(permit)

    def _leave(self, permit: Permit) -> None:
        self._stop_waiting(permit)
        self.end(permit)

    def _stop_waiting(self, permit: Permit) -> None:
        with self._lock:
            waited = self._waiting.pop(permit, False) is None
        if waited:
            # It may have been called in the place of another, who is to have what is left.
            self._call_next()

    def _call_next(self) -> None:
        with self._lock:
            if len(self._held) < self.permits:
                for permit in self._waiting:
                    permit.called.ring()
                    return

    def _call_curious(self) -> None:
        with self._lock:
            if len(self._held) >= self.permits:
                return
            curious, self._curious = self._curious, {}
        for callback in curious:
            _call(callback)

    def _tell(self) -> None:
        for (callback,) in self._listeners:
            _call(callback)


class Gates:
    """The gates of a process by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gates: dict[str, Gate] = {}

    def get(self, name: str, permits: int | None = None) -> Gate:
        """Return the gate of this name, made by the first call with that many permits, or 1.

        Without a number any gate of that name is right. A number other than the gate's raises :class:`ConfigError`;
        a name that is no text, or empty, and a number that is no int raise :class:`ArgumentError`.
        """
        _check(name, permits)
        wanted = None if permits is None else max(1, permits)
        with self._lock:
            gate = self._gates.get(name)
            if gate is None:
                gate = self._gates[name] = Gate(name, wanted or 1)
        if wanted not in (None, gate.permits):
            raise ConfigError(
                f"the gate {name!r} has {gate.permits} permits, not {wanted}",
                fix="Name the number once, in the first call that mentions the gate.",
            )
        return gate

    def after_fork(self) -> None:
        """Make every gate usable in a forked child, with all permits free."""
        self._lock = threading.Lock()
        for gate in self._gates.values():
            gate.after_fork()


def _check(name: str, permits: int | None) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentError("name", "a gate needs a name")
    if permits is not None and (isinstance(permits, bool) or not isinstance(permits, int)):
        raise ArgumentError("permits", f"a whole number is needed, not a {type(permits).__name__}")


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception as error:
        name = getattr(callback, "__qualname__", type(callback).__name__)
        logger.error("jobq.callback.failed", callback=name, error=type(error).__name__)
