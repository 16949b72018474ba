"""Registries of handlers, and of the schedules that are declared beside them.

A module that has no job queue yet makes a :class:`Handlers` of its own. Each job queue has another, its merged view of
everything that it was opened with; what is registered later, in either, shows in both.
"""

import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, overload

import attrs

from jobq.arguments import check_kind, check_word
from jobq.declared import Declared, Missing
from jobq.declaring import ScheduleOptions, declare_as, refuse_misfits
from jobq.enqueued import Enqueued
from jobq.errors import ConfigError, NoQueueInstalled
from jobq.handler import AnyHandler, Handler, HandlerOptions, Producer, make_handler
from jobq.modules import either, everything, exports, kinds_of
from jobq.newjob import EnqueueOptions

P = ParamSpec("P")
R = TypeVar("R")


class Attached(Protocol):
    """A job queue, as a registry sees it."""

    @property
    def handlers(self) -> "Handlers":
        """Its merged view."""
        ...

    def enqueue(
        self, kind_or_payload: object, payload: object = None, **options: Unpack[EnqueueOptions]
    ) -> Enqueued:
        """Enqueue one job."""
        ...


#: One for all registries: a registration is checked against several of them and shows in all of them or in none.
_lock = threading.RLock()


class Handlers:
    """Handlers by kind, the kinds that are retired, and declared schedules; safe to use from any thread."""

    def __init__(self) -> None:
        self._handlers: dict[str, AnyHandler] = {}
        self._retired: set[str] = set()
        self._by_type: dict[Any, tuple[AnyHandler, ...]] = {}
        # The payload classes of handlers that were dropped when their kinds were retired.
        self._retired_types: dict[Any, str] = {}
        self._queues: tuple[weakref.ref[Attached], ...] = ()
        #: Grows with each change, so that a job queue sees at a glance that it has something to register.
        self.version = 0
        #: The schedules that are declared beside the handlers.
        self.declared = Declared()

    @overload
    def job(self, function: Callable[P, R], /) -> Handler[P, R]: ...

    @overload
    def job(
        self, function: None = None, /, **options: Unpack[HandlerOptions]
    ) -> Callable[[Callable[P, R]], Handler[P, R]]: ...

    def job(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as the handler of a kind; :class:`jobq.handler.HandlerOptions` lists the keywords.

        Used as ``@handlers.job`` or ``@handlers.job(...)``. The function stays callable as it is.

        Raises:
            ConfigError: it is a coroutine or generator function, cannot be called with a payload, has types that
                cannot be resolved or loaded, or its kind has a handler already.
            ArgumentError: an option is out of its range.
        """
        if function is not None:
            return self._register(make_handler(function, producer=self._producer, **options))
        return lambda decorated: self._register(make_handler(decorated, producer=self._producer, **options))

    def schedule(self, name: str, **options: Unpack[ScheduleOptions]) -> None:
        """Declare a schedule beside the handlers; :class:`jobq.declaring.ScheduleOptions` lists the keywords.

        Each start of a program stores it, as ``jobs.schedules.add`` would: when a runner starts, or with the first verb
        about schedules.

        Raises:
            CronError: the expression is malformed or can never fire.
            ArgumentError: another option is malformed or out of its range.
            PayloadError: a payload is no JSON, or does not fit its kind, as far as that is registered already.
            ConfigError: another schedule of this name is declared.
        """
        declaration = declare_as("schedule", name, options)
        with _lock:
            audience = self._audience()
            for registry in audience:
                registry.declared.refuse_others([declaration])
                refuse_misfits(declaration, registry.find)
            for registry in audience:
                registry.declared.add([declaration])

    def register_module(self, module: ModuleType, missing_schedules: Missing | str = Missing.KEEP) -> None:
        """Register the handlers that a module exports, and the schedules declared on any Handlers in it.

        A handler whose registration names no kind gets the name that it is exported under. Doing it again changes
        nothing. With ``missing_schedules="remove"`` each start removes stored schedules that came from this module and
        that it no longer declares.

        Raises:
            ConfigError: two handlers have one name, or two schedules; nothing was registered.
        """
        missing = check_word(missing_schedules, Missing, argument="missing_schedules")
        registries = list({id(one): one for one in exports(module, Handlers).values()}.values())
        with _lock:
            known = [handler for registry in registries for handler in registry._handlers.values()]
            handlers = kinds_of(exports(module, Handler), known)
            found = [one for registry in everything(module, Handlers) for one in registry.declared.schedules()]
            declarations = [attrs.evolve(one, module=module.__name__) for one in found]
            audience = self._audience()
            for registry in audience:
                for kind, handler in handlers.items():
                    registry._refuse_second(kind, handler)
                registry.declared.refuse_others(declarations)
            for kind, handler in handlers.items():
                self._adopt(kind, handler)
            for registry in audience:
                registry.declared.add(declarations, {module.__name__: missing})

    def find(self, kind: str) -> AnyHandler | None:
        """Return the handler of a kind, or None."""
        return self._handlers.get(kind)

    def for_payload(self, payload_type: type) -> tuple[AnyHandler, ...]:
        """Return the handlers whose payload is of exactly this class."""
        return self._by_type.get(payload_type, ())

    def kinds(self) -> tuple[str, ...]:
        """Return the kinds that have a handler, sorted."""
        return tuple(sorted(self._handlers))

    def retire(self, *kinds: str) -> None:
        """Declare kinds that no longer exist: enqueueing one is refused, and its handler is dropped.

        A starting runner cancels what still waits. Registering a handler for the kind again takes it back.
        """
        with _lock:
            for kind in kinds:
                check_kind(kind)
                for registry in self._audience():
                    registry._change(kind, None)

    def is_retired(self, kind: str) -> bool:
        """Whether a kind was declared retired."""
        return kind in self._retired

    def retired_for(self, payload_type: type) -> str | None:
        """Return the retired kind whose handler took payloads of this class, or None."""
        kind = self._retired_types.get(payload_type)
        return kind if kind in self._retired else None

    def retired(self) -> tuple[str, ...]:
        """Return the kinds that were declared retired, sorted."""
        return tuple(sorted(self._retired))

    def attach(self, queue: Attached) -> None:
        """Show everything that is registered here, now and later, in a job queue's merged view.

        Raises:
            ConfigError: the view has another handler for one of the kinds.
        """
        with _lock:
            view = queue.handlers
            if view is not self:
                for kind, handler in self._handlers.items():
                    view._refuse_second(kind, handler)
                view.declared.take(self.declared)
                for kind in self._retired:
                    view._change(kind, None)
                for kind, handler in self._handlers.items():
                    view._change(kind, handler)
            self._queues = (*self._attached(), weakref.ref(queue))

    def detach(self, queue: Attached) -> None:
        """Forget a job queue, which is about to be closed."""
        with _lock:
            self._queues = tuple(one for one in self._attached() if one() is not queue)

    def _register(self, handler: AnyHandler) -> AnyHandler:
        with _lock:
            audience = self._audience()
            for registry in audience:
                registry._refuse_second(handler.kind, handler)
            for registry in audience:
                registry._change(handler.kind, handler)
        return handler

    def _adopt(self, kind: str, handler: AnyHandler) -> None:
        """Register a handler that was made by another registry."""
        if self._handlers.get(kind) is handler:
            return
        handler.kind = kind
        handler.producer = either(handler.producer, self._producer)
        for registry in self._audience():
            registry._change(kind, handler)

    def _refuse_second(self, kind: str, handler: AnyHandler) -> None:
        present = self._handlers.get(kind)
        if present is not None and present is not handler:
            raise ConfigError(f"the kind {kind!r} has a handler already", fix="Give one another name=.")

    def _change(self, kind: str, handler: AnyHandler | None) -> None:
        """Set the handler of a kind, or retire it where there is none."""
        with _lock:
            handlers = {name: one for name, one in self._handlers.items() if name != kind}
            if handler is None:
                self._retired = self._retired | {kind}
                dropped = self._handlers.get(kind)
                if dropped is not None and isinstance(dropped.payload_type, type):
                    self._retired_types[dropped.payload_type] = kind
            else:
                self._retired = self._retired - {kind}
                handlers[kind] = handler
            # Replaced, not changed: who reads meanwhile needs no lock.
            self._handlers, self._by_type = handlers, _by_type(handlers)
            self.version += 1

    def _audience(self) -> "list[Handlers]":
        views = [queue.handlers for one in self._queues if (queue := one()) is not None]
        return [self, *(view for view in views if view is not self)]

    def _attached(self) -> "tuple[weakref.ref[Attached], ...]":
        return tuple(one for one in self._queues if one() is not None)

    def _producer(self, kind: str) -> Producer:
        queues = [queue for one in self._queues if (queue := one()) is not None]
        if len(queues) != 1:
            raise NoQueueInstalled(kind, attached=len(queues))
        return queues[0]


def _by_type(handlers: dict[str, AnyHandler]) -> dict[Any, tuple[AnyHandler, ...]]:
    found: dict[Any, tuple[AnyHandler, ...]] = {}
    for handler in handlers.values():
        # A dict or a list names no kind, although a handler may declare that it takes one.
        if isinstance(handler.payload_type, type) and handler.payload_type.__module__ != "builtins":
            found[handler.payload_type] = (*found.get(handler.payload_type, ()), handler)
    return found
