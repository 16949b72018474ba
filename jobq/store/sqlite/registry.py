"""Two opens of one file in a process share one object: the last release disposes of it."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from jobq import fork

T = TypeVar("T")


class _Entry(Generic[T]):
    __slots__ = ("lock", "users", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.value: list[T] = []


class Handle(Generic[T]):
    """One user's share in an object."""

    def __init__(self, value: T, give_back: Callable[[], None]) -> None:
        self.value = value
        self._give_back: list[Callable[[], None]] = [give_back]

    def release(self) -> None:
        """Give the share back; the last one disposes of the object. Calling it again does nothing.

        Where disposing fails, the share is kept and the error raised, so that it can be tried again.
        """
        try:
            give_back = self._give_back.pop()
        except IndexError:
            return
        try:
            give_back()
        except BaseException:
            self._give_back.append(give_back)
            raise


class Registry(Generic[T]):
    """Shared objects by the real path of their file.

    ``dispose`` is called with an object when its last share is released. ``usable`` may turn an object down, as one
    that a fork has spoiled; the next acquire then builds another, and the old one is left to its holders.
    """

    def __init__(self, dispose: Callable[[T], None], *, usable: Callable[[T], bool] = lambda _: True) -> None:
        self._dispose = dispose
        self._usable = usable
        self._mutex = threading.Lock()
        self._entries: dict[str, _Entry[T]] = {}
        fork.register(self)

    def acquire(self, path: str, factory: Callable[[], T]) -> Handle[T]:
        """Return a share in the object of this file, built by ``factory`` where there is none.

        Two paths that lead to one file (a symbolic link, a relative path) share. Two threads that acquire at once get
        the same object, built once; if building fails, each tries for itself.
        """
        key = os.path.realpath(path)
        with self._mutex:
            entry = self._entries.get(key)
            if entry is None or (entry.value and not self._usable(entry.value[0])):
                entry = self._entries[key] = _Entry()
            entry.users += 1
        try:
            with entry.lock:
                if not entry.value:
                    entry.value.append(factory())
                value = entry.value[0]
        except BaseException:
            self._give_back(key, entry)
            raise
        return Handle(value, lambda: self._give_back(key, entry))

    def before_fork(self) -> None:
        """Hold the table still; building an object may take long and is not waited for."""
        self._mutex.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        """Replace the locks, which other threads of the parent may have held."""
        self._mutex = threading.Lock()
        for entry in self._entries.values():
            entry.lock = threading.Lock()

    def _give_back(self, key: str, entry: _Entry[T]) -> None:
        # Under the entry's lock, so that whoever acquires meanwhile waits and then builds anew.
        with entry.lock:
            with self._mutex:
                last = entry.users == 1
            if last and entry.value:
                self._dispose(entry.value[0])
                entry.value.clear()
            with self._mutex:
                entry.users -= 1
                if entry.users == 0 and self._entries.get(key) is entry:
                    del self._entries[key]
