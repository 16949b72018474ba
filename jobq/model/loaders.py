"""Loaders: one function per type that turns a JSON value into a typed one, compiled once from attrs and type hints."""

import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from jobq.errors import ConfigError
from jobq.model.misfit import Misfit, index_step, key_step, type_name

Loader: TypeAlias = Callable[[Any], Any]
#: A field of a class: its name in JSON, its name in the constructor, its loader, whether it has no default.
_Field: TypeAlias = tuple[str, str, Loader, bool]

_FIX = "Use an attrs class, a JSON type or X | None, or a codec that knows the type: pip install 'jobq[typed]'."
_PLAIN = frozenset({str, int, float, bool, type(None)})


def to_json(value: Any, depth: int) -> Any:
    """Return a value with each attrs instance in it replaced by a dict of its init fields.

    Raises Misfit where it is nested more than ``depth`` deep, as a list that contains itself is.
    """
    if type(value) in _PLAIN:
        return value
    if depth < 0:
        raise Misfit("it is nested too deep")
    if isinstance(value, list):
        return [to_json(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item, depth - 1) for key, item in value.items()}
    kind: Any = type(value)
    if attrs.has(kind):
        return {name: to_json(getattr(value, name), depth - 1) for name in _init_names(kind)}
    return value


@functools.cache
def _init_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls) if field.init)


class LoaderFactory:
    """Compiles loaders and keeps them; safe to use from several threads.

    ``unknown`` says what becomes of a field that a class does not have: "refuse" or "ignore".
    """

    def __init__(self, unknown: str) -> None:
        if unknown not in ("refuse", "ignore"):
            raise ConfigError('unknown fields are handled by unknown="refuse" or unknown="ignore"')
        self._refuse_unknown = unknown == "refuse"
        self._loaders: dict[Any, Loader] = {}

    def get(self, schema: Any) -> Loader:
        """Return the loader of a type; raises ConfigError that names an unsupported type and the path to it."""
        try:
            loader = self._loaders.get(schema)
        except TypeError:  # not hashable, so not a type either
            raise ConfigError(f"at $: {schema!r} is not a type that can be loaded", fix=_FIX) from None
        if loader is None:
            # Published only when complete: another thread must not meet a class whose fields are not compiled yet.
            compiled = dict(self._loaders)
            loader = self._compile(schema, "$", compiled)
            self._loaders = {**self._loaders, **compiled, schema: loader}
        return loader

    def _compile(self, schema: Any, path: str, compiled: dict[Any, Loader]) -> Loader:
        if schema in _SIMPLE:
            return _SIMPLE[schema]
        if isinstance(schema, type) and attrs.has(schema):
            return compiled.get(schema) or self._compile_class(schema, path, compiled)
        origin, arguments = typing.get_origin(schema), typing.get_args(schema)
        if origin in (list, dict) and not arguments:  # typing.List, typing.Dict
            return _SIMPLE[origin]
        if origin is list:
            return _list_of(self._compile(arguments[0], f"{path}[]", compiled))
        if origin is dict and arguments[0] is str:
            return _dict_of(self._compile(arguments[1], f"{path}{{}}", compiled))
        members = [member for member in arguments if member is not types.NoneType]
        if origin in (typing.Union, types.UnionType) and len(members) == 1 < len(arguments):
            return _optional(self._compile(members[0], path, compiled))
        raise ConfigError(f"at {path}: {_type_text(schema)} is not supported by the attrs codec", fix=_FIX)

    def _compile_class(self, cls: type, path: str, compiled: dict[Any, Loader]) -> Loader:
        hints = _resolve_hints(cls, path)
        fields: list[_Field] = []
        # Registered before its fields are, so that a class may contain itself.
        compiled[cls] = loader = _class_loader(cls, fields, refuse_unknown=self._refuse_unknown)
        for field in attrs.fields(cls):
            if field.init:
                hint = hints.get(field.name, field.type)
                loads = self._compile(Any if hint is None else hint, path + key_step(field.name), compiled)
                fields.append((field.name, field.alias or field.name, loads, field.default is attrs.NOTHING))
        return loader


def _resolve_hints(cls: type, path: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception as error:  # evaluating a hint runs any expression
        raise ConfigError(
            f"at {path}: the hints of {cls.__qualname__} cannot be resolved ({type(error).__name__}: {error})",
            fix="Define the names that the hints mention at the top of their module.",
        ) from error


def _type_text(schema: Any) -> str:
    return schema.__qualname__ if isinstance(schema, type) and not typing.get_args(schema) else repr(schema)


def _class_loader(cls: type, fields: list[_Field], *, refuse_unknown: bool) -> Loader:
    def load(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(f"an object is needed, not {type_name(value)}")
        arguments = {}
        for name, alias, loads, needed in fields:
            if name in value:
                try:
                    arguments[alias] = loads(value[name])
                except Misfit as misfit:
                    misfit.under(key_step(name))
                    raise
            elif needed:
                raise _at(key_step(name), "it is missing")
        if refuse_unknown and len(value) > len(arguments):
            stranger = next(key for key in value if all(key != name for name, *_ in fields))
            raise _at(key_step(stranger), f"{cls.__name__} has no such field")
        try:
            return cls(**arguments)
        except Exception as error:  # validators raise what they like, and its text may quote the payload
            refusal = Misfit(f"{cls.__name__} refused it ({type(error).__name__})")
            culprit = _culprit(cls, arguments)
            if culprit is not None:
                refusal.under(key_step(culprit))
            raise refusal from None

    return load


def _culprit(cls: type, arguments: dict[str, Any]) -> str | None:
    """Return the field whose own converter or validator refuses its value; None where the class as a whole does."""
    stand_in = types.SimpleNamespace(**arguments)
    for field in attrs.fields(cls):
        if field.alias not in arguments:
            continue
        try:
            value = arguments[field.alias]
            if callable(field.converter):
                value = field.converter(value)
            if field.validator is not None:
                field.validator(stand_in, field, value)
        except Exception:  # whatever it is, it is the answer
            return str(field.name)
    return None


def _at(step: str, problem: str) -> Misfit:
    misfit = Misfit(problem)
    misfit.under(step)
    return misfit


def _list_of(loads: Loader) -> Loader:
    def load(value: Any) -> Any:
        items = []
        for index, item in enumerate(_load_list(value)):
            try:
                items.append(loads(item))
            except Misfit as misfit:
                misfit.under(index_step(index))
                raise
        return items

    return load


def _dict_of(loads: Loader) -> Loader:
    def load(value: Any) -> Any:
        items = {}
        for key, item in _load_dict(value).items():
            try:
                items[key] = loads(item)
            except Misfit as misfit:
                misfit.under(key_step(key))
                raise
        return items

    return load


def _optional(loads: Loader) -> Loader:
    return lambda value: None if value is None else loads(value)


def _exactly(kind: type, words: str) -> Loader:
    def load(value: Any) -> Any:
        if type(value) is not kind:
            raise Misfit(f"{words} is needed, not {type_name(value)}")
        return value

    return load


def load_float(value: Any) -> float:
    """Return a JSON number as a float; raises Misfit for anything else, and for an int beyond a float's range."""
    if type(value) is not float and type(value) is not int:
        raise Misfit(f"a number is needed, not {type_name(value)}")
    try:
        return float(value)
    except OverflowError:
        raise Misfit("the number is too large for a float") from None


_load_list = _exactly(list, "a list")
_load_dict = _exactly(dict, "an object")

_SIMPLE: dict[Any, Loader] = {
    Any: lambda value: value,
    object: lambda value: value,
    None: _exactly(types.NoneType, "null"),
    types.NoneType: _exactly(types.NoneType, "null"),
    bool: _exactly(bool, "true or false"),
    int: _exactly(int, "an integer"),
    float: load_float,
    str: _exactly(str, "text"),
    list: _load_list,
    dict: _load_dict,
}
