"""What a module exports, and the kinds of the handlers among it."""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TypeVar

from jobq.errors import ArgumentError, ConfigError, NoQueueInstalled
from jobq.handler import AnyHandler, Producer

T = TypeVar("T")


def exports(module: ModuleType, wanted: type[T]) -> dict[str, T]:
    """Return the values of this class that a module exports, by name.

    Those are the names in its ``__all__``, or without one all that do not begin with an underscore.
    """
    if not isinstance(module, ModuleType):
        fix = "Import it and pass it, not its name."
        raise ArgumentError("module", f"a module is needed, not a {type(module).__name__}", fix=fix)
    listed = getattr(module, "__all__", None)
    names = [name for name in vars(module) if not name.startswith("_")] if listed is None else listed
    return {name: value for name in names if isinstance(value := getattr(module, name, None), wanted)}


def everything(module: ModuleType, wanted: type[T]) -> list[T]:
    """Return each value of this class in a module once, exported or not."""
    found = [*exports(module, wanted).values(), *(one for one in vars(module).values() if isinstance(one, wanted))]
    return list({id(one): one for one in found}.values())


def kinds_of(exported: Mapping[str, AnyHandler], registered: Iterable[AnyHandler]) -> dict[str, AnyHandler]:
    """Return the handlers of a module by the kind that each is to have.

    That is the kind which its registration names, else the name under which it is exported, else its present kind.

    Raises:
        ConfigError: two handlers would have one kind, or one handler two.
    """
    found: dict[str, AnyHandler] = {}
    kinds: dict[int, str] = {}
    own = {id(handler) for name, handler in exported.items() if name == handler.kind}
    for name, handler in exported.items():
        kind = handler.kind if handler.named or id(handler) in own else name
        if found.setdefault(kind, handler) is not handler:
            raise ConfigError(f"the module has two handlers of the kind {kind!r}", fix="Give one another name=.")
        if kinds.setdefault(id(handler), kind) != kind:
            raise ConfigError(f"the handler of {handler.kind!r} is exported under two names", fix="Give it a name=.")
    for handler in registered:
        if id(handler) not in kinds and found.setdefault(handler.kind, handler) is not handler:
            raise ConfigError(f"the module has two handlers of the kind {handler.kind!r}", fix="Give one a name=.")
    return found


def either(first: Callable[[str], Producer], second: Callable[[str], Producer]) -> Callable[[str], Producer]:
    """Return what finds the job queue by the registry that made a handler, or by the one that adopted it."""

    def producer(kind: str) -> Producer:
        try:
            return first(kind)
        except NoQueueInstalled:
            return second(kind)

    return producer
