"""Open a store: the only place that names a kind of database."""

from collections.abc import Callable
from datetime import datetime

from jobq.model.events import Change
from jobq.store.base import Durability, Store
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.registry import Registry
from jobq.store.sqlite.rows import to_ms
from jobq.store.sqlite.store import SqliteStore

_engines: Registry[Engine] = Registry(Engine.close, usable=Engine.is_usable)


def open_store(
    path: str,
    *,
    now: Callable[[], datetime],
    roll: Callable[[], float],
    feed: Callable[[list[Change]], None],
    create: bool = True,
    durability: Durability = Durability.BALANCED,
    busy_timeout: float = 5.0,
) -> Store:
    """Open the database at ``path``, making it where there is none, and migrate it to the present schema.

    Without ``create`` a missing file, and a file without a job queue, raise StoreUnavailable and stay as they are.

    Stores of one path in a process share one engine: one writer, one pool of readers. The engine of the first opener
    feeds the first opener's ``feed``; whoever opens a path twice passes the same one. ``now`` and ``roll`` (0 to 1,
    the dice of the retry jitter) are asked under the write lock.
    """
    handle = _engines.acquire(
        path, lambda: Engine(path, feed=feed, create=create, busy_timeout=busy_timeout, now=lambda: to_ms(now()))
    )
    return SqliteStore(
        handle.value,
        now=now,
        roll=roll,
        durability=durability,
        busy_timeout=busy_timeout,
        close=handle.release,
    )
