"""One job queue's way into the engine: its clock, its durability and its patience."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import apsw

from jobq.model.events import Change
from jobq.store.base import Durability
from jobq.store.sqlite.engine import Engine

T = TypeVar("T")


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
        self._durability = durability
        self._busy_timeout = busy_timeout

    def _write(self, operation: Callable[[apsw.Connection, list[Change]], T], *, durable: bool = True) -> T:
        sync = self._durability is Durability.FULL or (durable and self._durability is Durability.BALANCED)
        return self.engine.write(operation, sync=sync, busy_timeout=self._busy_timeout)

    def _read(self, operation: Callable[[apsw.Connection], T]) -> T:
        return self.engine.read(operation, busy_timeout=self._busy_timeout)
