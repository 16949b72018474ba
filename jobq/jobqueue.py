"""The job queue: one database with all its verbs."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from jobq.administration import Administration
from jobq.copying import Copying
from jobq.doctor import Doctor
from jobq.explaining import Explaining
from jobq.finishing import Finishing
from jobq.gate import Gate
from jobq.handler import Handler, HandlerOptions
from jobq.handlers import Handlers
from jobq.leasing import Leasing
from jobq.mending import Mending
from jobq.observing import Observing
from jobq.pauses import Pausing
from jobq.producing import Producing
from jobq.pruning import Pruning
from jobq.schedules import Schedules

P = ParamSpec("P")
R = TypeVar("R")


class JobQueue(
    Finishing, Producing, Administration, Pausing, Mending, Leasing, Observing, Pruning, Copying, Explaining, Doctor
):
    """One database and its verbs, as :func:`jobq.open` returns it; safe to use from any thread.

    It produces and administers; :class:`jobq.Runner` consumes. It starts no thread. It may be left open over a fork:
    both sides open the file anew with their next verb.
    """

    @overload
    def job(self, function: Callable[P, R], /) -> Handler[P, R]: ...

    @overload
    def job(
        self, function: None = None, /, **options: Unpack[HandlerOptions]
    ) -> Callable[[Callable[P, R]], Handler[P, R]]: ...

    def job(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as the handler of a kind, as :meth:`jobq.Handlers.job` does."""
        return self.handlers.job(**options) if function is None else self.handlers.job(function)

    def gate(self, name: str, permits: int | None = None) -> Gate:
        """Return the gate of this name, made by the first call with that many permits, or 1.

        Raises:
            ConfigError: it has another number of permits.
        """
        return self.gates.get(name, permits)

    @property
    def schedules(self) -> Schedules:
        """The schedules in the database, and the verbs about them."""
        return Schedules(self)

    def attach(self, *registries: Handlers) -> None:
        """Take in the handlers of these registries, present and future ones.

        Raises:
            ConfigError: two of them have a handler for one kind.
        """
        for registry in registries:
            registry.attach(self)
            self._attached.append(registry)

    def close(self) -> None:
        """Give the database back; the last job queue of a file closes its handles. Closing twice does nothing.

        Verbs then raise QueueClosed. Stop runners first.

        Raises:
            InsideTransaction: this thread has a transaction open.
            StoreBusy: another thread held the writer for too long; the job queue is still open.
        """
        if self._store is None:
            return
        self.blocks.refuse("close")
        store, self._store = self._store, None
        try:
            store.close()
        except BaseException:
            self._store = store
            raise
        for registry in self._attached:
            registry.detach(self)
        if self.tracing is not None:
            self.tracing.file.close()
        self.deliver()
        if self.event_log is not None:
            self._database.event_logs.release(self.event_log)
        self._database.event_logs.leave(self.redactor)
        self._database.release()

    def __enter__(self) -> "JobQueue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<JobQueue {self.path!r}{' closed' if self._store is None else ''}>"
