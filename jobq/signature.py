"""What a handler's signature says: whether it wants the running job, and the types of its payload and result."""

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from jobq.errors import ConfigError

#: Annotations that ask for no check.
_UNTYPED = (Any, object, None, types.NoneType)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SHAPE = "Write it as handler(payload) or handler(payload, job)."


class Signature(NamedTuple):
    """What a handler takes and returns; a type is None where nothing is declared."""

    wants_job: bool
    payload: Any
    result: Any


def read_signature(function: Callable[..., object], *, name: str, payload: Any, result: Any) -> Signature:
    """Read a handler's signature; ``payload`` and ``result`` win over its annotations where they are not None.

    Only the annotations of the payload and of the result are resolved: the job's is jobq's own.

    Raises:
        ConfigError: it is no plain function of one or two arguments, or a type cannot be resolved.
    """
    _refuse_unrunnable(function, name)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the signature of the handler {name!r} cannot be read", fix=_SHAPE) from error
    positional = [one for one in signature.parameters.values() if one.kind in _POSITIONAL]
    others = [one for one in signature.parameters.values() if one.kind not in _POSITIONAL]
    if len(positional) not in (1, 2) or any(one.default is one.empty for one in others):
        raise ConfigError(f"the handler {name!r} cannot be called with a payload and a job", fix=_SHAPE)
    return Signature(
        wants_job=len(positional) == 2,
        payload=payload or _resolve(positional[0].annotation, function, name),
        result=result or _resolve(signature.return_annotation, function, name),
    )


def _refuse_unrunnable(function: Callable[..., object], name: str) -> None:
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"the handler {name!r} is no function", fix="Decorate a plain function.")
    for candidate in (function, getattr(function, "func", None), getattr(type(function), "__call__", None)):  # noqa: B004
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise ConfigError(
                f"the handler {name!r} is a coroutine function, and workers are threads",
                fix="Write it as a plain function; asyncio.run() inside it is fine.",
            )
        if inspect.isgeneratorfunction(candidate):
            raise ConfigError(f"the handler {name!r} is a generator function", fix="Return a value, do not yield.")


def _resolve(annotation: Any, function: Callable[..., object], name: str) -> Any:
    if annotation is inspect.Signature.empty:
        return None
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    namespace = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        resolved = typing.get_type_hints(holder, globalns=namespace)["it"]
    except Exception as error:  # evaluating a hint runs any expression
        raise ConfigError(
            f"the type {annotation!r} of the handler {name!r} cannot be resolved ({type(error).__name__})",
            fix="Define it at the top of the module, or name it with payload= or result= in the decorator.",
        ) from error
    return None if any(resolved is untyped for untyped in _UNTYPED) else resolved
