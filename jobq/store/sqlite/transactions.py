"""One job queue's way into the engine: its clock, its durability and its patience."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TypeVar

import apsw

from jobq.model.events import Change
from jobq.store.base import Durability
from jobq.store.hosting import Reading
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.faults import damage
from jobq.store.sqlite.hosted import Hosted
from jobq.store.sqlite.rows import BadRow

T = TypeVar("T")

#: What a statement of ours, or a row that it reads, raises where bytes of the file have changed. No ConstraintError: a
#: host may have put a foreign key or a trigger on our tables, and is told what that refuses.
_DAMAGE = (apsw.SQLError, UnicodeDecodeError, BadRow)


class Transactions:
    """Reads and writes on a shared engine, as one job queue wants them."""

    def __init__(
        self,
        engine: Engine,
        *,
        now: Callable[[], datetime],
        roll: Callable[[], float],
        durability: Durability,
        busy_timeout: float,
        close: Callable[[], None],
    ) -> None:
        self.engine = engine
        self.close = close
        self._now = now
        self._roll = roll
        #: Whether a commit is synced that has to survive a power cut, and whether any other is.
        self._durable_synced = durability is not Durability.RELAXED
        self._other_synced = durability is Durability.FULL
        self._busy_timeout = busy_timeout

    def transaction(
        self, *, on_commit: Callable[[], None], on_blocked: Callable[[], None]
    ) -> AbstractContextManager[Hosted]:
        """Keep a transaction open for the calling thread."""
        return self.engine.transaction(
            sync=self._durable_synced,
            busy_timeout=self._busy_timeout,
            on_commit=on_commit,
            on_blocked=on_blocked,
        )

    def snapshot(self) -> AbstractContextManager[Reading]:
        """Keep a snapshot open for the calling thread."""
        return self.engine.snapshot(busy_timeout=self._busy_timeout)

    def _write(self, operation: Callable[[apsw.Connection, list[Change]], T], *, durable: bool = True) -> T:
        sync = self._durable_synced if durable else self._other_synced
        try:
            return self.engine.write(operation, sync=sync, busy_timeout=self._busy_timeout)
        except _DAMAGE as error:
            raise damage(error, self.engine.path) from None

    def _read(self, operation: Callable[[apsw.Connection], T]) -> T:
        try:
            return self.engine.read(operation, busy_timeout=self._busy_timeout)
        except _DAMAGE as error:
            raise damage(error, self.engine.path) from None
