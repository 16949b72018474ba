"""What tests of programs on jobq use: a clock that stands still until it is told to move, and a run made by hand."""

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from jobq.blocks import Blocks
from jobq.cancellation import CancelToken
from jobq.clock import Clock
from jobq.errors import ArgumentError, NoQueueInstalled
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import require_aware, shift
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, JSON, Actor, Priority
from jobq.model.lease import Claim
from jobq.model.progress import Progress
from jobq.outbox.memory import MemoryDatabase as MemoryDatabase
from jobq.runtime.context import Host, RunningJob

_MICROSECOND = timedelta(microseconds=1)
#: Not zero, so that code which takes zero for "never" shows its fault.
_FIRST_MONOTONIC = timedelta(seconds=1_000)


class FakeClock:
    """A clock that moves only when told to, or when a handler waits on it.

    Times are exact to the microsecond. It is safe to use from several threads.
    """

    #: Jitter is 0 under this clock.
    deterministic = True

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        self._lock = threading.Lock()
        self._now = require_aware(start, argument="start")
        self._monotonic = _FIRST_MONOTONIC

    def now(self) -> datetime:
        """Return the wall time as an aware datetime in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return self._monotonic.total_seconds()

    def advance(self, duration: Duration) -> None:
        """Move wall and monotonic time forward together, as when time passes; never back."""
        seconds = to_seconds(duration, argument="duration")
        if seconds < 0:
            raise ArgumentError("duration", "time does not pass backwards", fix="Use jump() to set the wall clock.")
        self._pass(timedelta(seconds=seconds))

    def jump(self, duration: Duration) -> None:
        """Move the wall clock alone, forward or back, as when somebody sets it."""
        with self._lock:
            self._now = shift(self._now, to_seconds(duration, argument="duration"), argument="duration")

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Let the seconds pass at once, unless the event is set; return whether it is set."""
        if not event.is_set() and seconds > 0:
            # At least one microsecond: a loop that waits for a rest lost in rounding would never end.
            self._pass(max(timedelta(seconds=to_seconds(seconds, argument="seconds")), _MICROSECOND))
        return event.is_set()

    def _pass(self, span: timedelta) -> None:
        with self._lock:
            self._now = shift(self._now, span.total_seconds(), argument="duration")
            self._monotonic += span


def running_job(
    *,
    jobs: Host | None = None,
    clock: Clock | None = None,
    delegates: Any = None,
    time_limit: Duration | None = None,
    id: int = 1,
    kind: str = "test",
    queue: str = DEFAULT_QUEUE,
    attempt: int = 1,
    max_attempts: int = DEFAULT_ATTEMPTS,
    deferrals: int = 0,
    priority: int = Priority.INGEST,
    parent_id: int | None = None,
    actor: Actor = Actor.SYSTEM,
    tenant_id: str | None = None,
    subject: str | None = None,
    meta: Mapping[str, JSON] | None = None,
    slot: datetime | None = None,
    catch_up: bool = False,
    last_error: str | None = None,
) -> RunningJob:
    """Return a run as a handler gets it, for a unit test that calls the handler itself.

    Nothing is claimed and nothing settled. Its token is asked to stop with ``job.cancel_token.request(reason)``, or by
    ``time_limit`` on ``clock``, a FakeClock unless given. What enqueues, ``follow_up`` and
    ``transaction`` use ``jobs``, and raise NoQueueInstalled without one.
    """
    claim = Claim(
        id=id,
        kind=kind,
        queue=queue,
        priority=priority,
        payload="null",
        attempts=attempt,
        max_attempts=max_attempts,
        deferrals=deferrals,
        parent_id=parent_id,
        actor=actor.value,
        tenant_id=tenant_id,
        subject=subject,
        meta=None if meta is None else json.dumps(dict(meta)),
        schedule=None,
        slot=slot,
        last_error=last_error,
        token="test",
        worker="test",
        waited_ms=0,
        catch_up=catch_up,
    )
    limit = None if time_limit is None else to_seconds(time_limit, argument="time_limit")
    time = FakeClock() if clock is None else clock
    host = _NoQueue(kind, time) if jobs is None else jobs
    return RunningJob(claim, jobs=host, cancel_token=CancelToken(time, time_limit=limit), delegates=delegates)


class _NoQueue:
    """Stands where a job queue would be."""

    def __init__(self, kind: str, clock: Clock) -> None:
        self.clock = clock
        self.blocks = Blocks()
        self.tracing = None
        self._kind = kind

    def enqueue(self, *arguments: object, **options: object) -> NoReturn:
        raise NoQueueInstalled(self._kind, attached=0)

    draft = finish = trace = enqueue

    def report(self, claim: Claim, progress: Progress) -> bool:
        return True

    def deliver(self) -> None:
        return
