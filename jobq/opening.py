"""Opening a job queue."""

import os
import random
from collections.abc import Callable, Iterable

from jobq import database, installation
from jobq.clock import Clock, SystemClock
from jobq.config import Config
from jobq.database import Database
from jobq.errors import ArgumentError
from jobq.handlers import Handlers
from jobq.jobqueue import JobQueue
from jobq.model.redact import Redactor
from jobq.store import open_store

_FIX = "Call jobq.open() without a path for a temporary file that is removed again."


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    config: Config | None = None,
    clock: Clock | None = None,
    handlers: Handlers | Iterable[Handlers] = (),
    redact: Callable[[str], str] | None = None,
    create: bool = True,
) -> JobQueue:
    """Open the job queue in a database file, making the file where there is none.

    With ``create=False`` nothing is made: a missing file, or one without a job queue, raises StoreUnavailable.

    Without a path it is a file in a private directory, which is removed by ``close()`` or when this process exits. Two
    opens of one path in a process share one store and one bus; each has its own configuration, clock and handlers.
    ``redact`` is a function from text to text that hides the host's own secrets, after the built-in rules.

    The file is checked and closed again: its handles are opened by the first verb.

    Raises:
        ArgumentError: the path is ``:memory:`` or no path.
        ConfigError: two registries have a handler for one kind.
        ForeignHandle, ForkedHandle, SchemaTooNew, StoreError: the file cannot be used.
    """
    registries = _registries(handlers)
    _check(config, redact)
    settings, time = config or Config(), clock or SystemClock()
    shared = database.acquire_temporary() if path is None else database.acquire(_absolute(path))
    try:
        return _build(shared, settings, time, registries, Redactor(redact), create=create or path is None)
    except BaseException:
        shared.release()
        raise


def install(jobs: JobQueue | None) -> None:
    """Make a job queue the one on which handlers enqueue that are attached to none; None takes it back.

    Do it once, when the program starts. It is looked up at each ``handler.enqueue``, so a handler may be imported, and
    called, from anywhere. Closing the job queue does not take it back.

    Raises:
        ArgumentError: it is no job queue.
    """
    if jobs is not None and not isinstance(jobs, JobQueue):
        raise ArgumentError("jobs", f"a JobQueue or None is needed, not a {type(jobs).__name__}")
    installation.put(jobs)


def _build(
    shared: Database,
    config: Config,
    clock: Clock,
    registries: tuple[Handlers, ...],
    redactor: Redactor,
    *,
    create: bool,
) -> JobQueue:
    store = open_store(
        shared.path,
        now=clock.now,
        # A test under a clock of its own wants to name the instant of each retry.
        roll=_no_jitter if clock.deterministic else random.random,
        feed=shared.bus.feed,
        create=create,
        durability=config.durability,
        busy_timeout=config.busy_timeout,
    )
    shared.bus.keep(config.event_ring_size)
    jobs = JobQueue(database=shared, store=store, config=config, clock=clock, redactor=redactor)
    try:
        jobs.attach(jobs.handlers, *registries)
        if config.events_file:
            jobs.log_events(config.events_file)
    except BaseException:
        for registry in registries:
            registry.detach(jobs)
        store.close()
        shared.event_logs.leave(redactor)
        raise
    return jobs


def _registries(handlers: Handlers | Iterable[Handlers]) -> tuple[Handlers, ...]:
    given = (handlers,) if isinstance(handlers, Handlers) or not isinstance(handlers, Iterable) else tuple(handlers)
    if not all(isinstance(registry, Handlers) for registry in given):
        raise ArgumentError("handlers", "Handlers objects are needed", fix="Make one with jobq.Handlers().")
    return given


def _check(config: object, redact: object) -> None:
    if config is not None and not isinstance(config, Config):
        raise ArgumentError("config", f"a Config is needed, not a {type(config).__name__}")
    if redact is not None and not callable(redact):
        raise ArgumentError("redact", f"a function is needed, not a {type(redact).__name__}")


def _absolute(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError("path", "the path of a file is needed", fix=_FIX)
    if text == ":memory:" or text.startswith("file:"):
        raise ArgumentError("path", "a job queue lives in a file: other processes must see it", fix=_FIX)
    return os.path.abspath(text)


def _no_jitter() -> float:
    return 0.0
