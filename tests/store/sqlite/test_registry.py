"""Shared objects by the real path of their file."""

import os
import threading
from pathlib import Path

import pytest

from jobq.store.sqlite.registry import Handle, Registry
from tests.store.sqlite.enginekit import join, start


class Thing:
    """Something to share."""

    def __init__(self) -> None:
        self.disposed = 0
        self.usable = True

    def dispose(self) -> None:
        """Count the call."""
        self.disposed += 1


@pytest.fixture
def registry() -> Registry[Thing]:
    """A registry that nobody uses yet."""
    return Registry(Thing.dispose, usable=lambda thing: thing.usable)


def test_two_paths_to_one_file_share(registry: Registry[Thing], tmp_path: Path) -> None:
    """A symbolic link and a relative path lead to the same object; another file has its own."""
    os.symlink(tmp_path / "a.db", tmp_path / "link.db")
    first = registry.acquire(str(tmp_path / "a.db"), Thing)
    relative = registry.acquire(os.path.relpath(tmp_path / "link.db"), Thing)
    other = registry.acquire(str(tmp_path / "b.db"), Thing)

    assert first.value is relative.value
    assert other.value is not first.value


def test_last_release_disposes(registry: Registry[Thing]) -> None:
    """The object lives until its last share is given back, however often one of them is."""
    first, second = registry.acquire("a", Thing), registry.acquire("a", Thing)
    first.release()
    first.release()
    assert second.value.disposed == 0

    second.release()
    assert second.value.disposed == 1


def test_next_acquire_builds_anew(registry: Registry[Thing]) -> None:
    """After the last release another object is built."""
    first = registry.acquire("a", Thing)
    first.release()

    assert registry.acquire("a", Thing).value is not first.value


def test_many_threads_build_one(registry: Registry[Thing]) -> None:
    """Eight threads that acquire at once share one object."""
    built: list[Thing] = []
    handles: list[Handle[Thing]] = []
    barrier = threading.Barrier(8, timeout=10)

    def build() -> Thing:
        built.append(Thing())
        return built[-1]

    def acquire() -> None:
        barrier.wait()
        handles.append(registry.acquire("a", build))

    join(*[start(acquire) for _ in range(8)])

    assert len(built) == 1
    assert {id(handle.value) for handle in handles} == {id(built[0])}


def test_factory_that_fails_leaves_nothing_behind(registry: Registry[Thing]) -> None:
    """The error comes through, and the next acquire tries for itself."""

    def fail() -> Thing:
        raise LookupError("no")

    with pytest.raises(LookupError):
        registry.acquire("a", fail)
    registry.acquire("a", Thing).release()


def test_spoiled_object_is_not_shared_any_more(registry: Registry[Thing]) -> None:
    """Who acquires after an object was spoiled gets another; each is disposed of by its own last holder."""
    old = registry.acquire("a", Thing)
    old.value.usable = False
    new = registry.acquire("a", Thing)
    assert new.value is not old.value

    new.release()
    assert (old.value.disposed, new.value.disposed) == (0, 1)
    old.release()
    assert (old.value.disposed, new.value.disposed) == (1, 1)


def test_locks_that_others_hold_are_new_in_a_child(registry: Registry[Thing]) -> None:
    """After a fork the child can acquire although another thread of the parent was building."""
    registry.before_fork()
    registry.after_fork_in_child()

    registry.acquire("a", Thing).release()
    registry.before_fork()
    registry.after_fork_in_parent()
    registry.acquire("a", Thing).release()


def test_share_whose_object_cannot_be_disposed_of_is_kept() -> None:
    """The error comes through, nobody else is affected, and releasing again works."""
    attempts: list[Thing] = []

    def dispose(thing: Thing) -> None:
        attempts.append(thing)
        if len(attempts) == 1:
            raise LookupError("busy")

    registry: Registry[Thing] = Registry(dispose)
    handle = registry.acquire("a", Thing)

    with pytest.raises(LookupError):
        handle.release()
    other = registry.acquire("a", Thing)
    assert other.value is handle.value
    other.release()
    handle.release()
    assert attempts == [handle.value, handle.value]
