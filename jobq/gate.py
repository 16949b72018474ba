"""Gates: process-wide counting semaphores that kinds share, for a resource that bears only so many users at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobq.errors import ArgumentError, ConfigError
from jobq.log import get_logger

logger = get_logger(__name__)


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
        return self._free

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Hold one permit inside the block; waits until there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._free > 0)
            self._free -= 1
        try:
            yield
        finally:
            self.release()

    def try_acquire(self) -> bool:
        """Take one permit if there is one, without waiting, and return whether it was taken."""
        with self._changed:
            if self._free < 1:
                return False
            self._free -= 1
            return True

    def release(self) -> None:
        """Give one permit back, wake one thread that waits for it, and call the release callbacks.

        Where nobody holds a permit nothing happens: a forked child that leaves a block it was forked in has none to
        give back. A callback that raises is logged and skipped.
        """
        with self._changed:
            if self._free >= self.permits:
                return
            self._free += 1
            self._changed.notify()
        for (callback,) in self._listeners:
            _call(callback)

    def put_back(self) -> None:
        """Give back a permit that was taken on the chance of work and not used; no callback is called.

        Whoever takes permits when it is called back would otherwise call back others like itself for ever.
        """
        with self._changed:
            if self._free < self.permits:
                self._free += 1
                self._changed.notify()

    def on_release(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back after each release, on the releasing thread; return the function that ends that.

        Callbacks are called without a lock held. Ending it twice does nothing.
        """
        entry = (callback,)
        with self._changed:
            self._listeners = (*self._listeners, entry)

        def unsubscribe() -> None:
            with self._changed:
                # By identity: one callback may be subscribed twice.
                self._listeners = tuple(kept for kept in self._listeners if kept is not entry)

        return unsubscribe

    def after_fork(self) -> None:
        """Make the gate usable in a forked child: a new lock, and all permits free.

        The threads that held permits, or the lock, do not exist in the child.
        """
        self._changed = threading.Condition(threading.Lock())
        self._free = self.permits


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
