"""The payload codec on cattrs, from the extra ``typed``: datetimes, enums, unions and what jobq's own codec knows.

Importing this module is cheap and never fails; making a :class:`CattrsCodec` needs cattrs.
"""

import base64
import enum
import types
from collections.abc import Callable, Iterator, MutableSequence, Sequence, Set
from datetime import date, datetime
from typing import Any, TypeAlias, get_args, get_origin

import attrs

from jobq.errors import ConfigError, PayloadError
from jobq.model.loaders import load_float
from jobq.model.misfit import Misfit, index_step, key_step, type_name

_Hook: TypeAlias = Callable[[Any, Any], Any]

_LISTS = (list, Sequence, MutableSequence)
_COLLECTIONS = (set, frozenset, tuple)
_FIX = "Use a JSON type, a datetime, an enum, a union or an attrs class of these, or plug in a codec of your own."


class CattrsCodec:
    """A codec that is as strict as jobq's own and knows more types.

    Scalars are never converted into each other, but for an int where a float is declared. Datetimes travel as ISO text
    with an offset, dates as ISO text, bytes as base64, enums as their values, sets and ``tuple[T, ...]`` as lists.
    Unknown and missing fields are refused. Errors carry the path and no content. Without cattrs, making a codec raises
    ConfigError that says what to install.
    """

    def __init__(self) -> None:
        self._converter = _make_converter()

    def supports(self, schema: Any) -> None:
        """Raise ConfigError where cattrs has no way to load the type, or its hints cannot be resolved."""
        try:
            self._converter.get_structure_hook(schema)
        except Exception as error:  # cattrs, attrs and the hints themselves each raise their own
            unknown = getattr(error, "type_", None)
            problem = f"{unknown!r} cannot be loaded" if unknown is not None else f"{type(error).__name__}: {error}"
            raise ConfigError(f"at $: {schema!r} is not supported: {problem}", fix=_FIX) from error

    def load(self, value: Any, schema: Any) -> object:
        """Return the typed value; raises PayloadError with the path where the JSON value does not fit."""
        try:
            loaded: object = self._converter.structure(value, schema)
        except Exception as error:
            path, problem = _locate(error)
        else:
            return loaded
        # Outside the block: the texts of cattrs quote the payload, and must not hang on as the context.
        raise PayloadError(f"${path}", problem)

    def dump(self, value: object) -> Any:
        """Return the JSON value of a typed one; a naive datetime raises PayloadError."""
        try:
            return self._converter.unstructure(value)
        except Misfit as misfit:
            problem = misfit.problem
        raise PayloadError("$", problem)


def _make_converter() -> Any:
    try:
        import cattrs
        from cattrs.strategies import configure_union_passthrough
    except ImportError as error:
        raise ConfigError("the typed codec needs cattrs", fix="pip install 'jobq[typed]'") from error
    as_lists: Any = {Set: list, tuple: list}
    converter: Any = cattrs.Converter(forbid_extra_keys=True, unstruct_collection_overrides=as_lists)
    for plain, words in ((bool, "true or false"), (int, "an integer"), (str, "text")):
        converter.register_structure_hook(plain, _or_subclass(plain, _after(plain, words, lambda value, _: value)))
    converter.register_structure_hook(float, _or_subclass(float, lambda value, _: load_float(value)))
    converter.register_structure_hook(enum.Enum, _load_enum)
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    converter.register_structure_hook(bytes, _load_bytes)
    converter.register_unstructure_hook(bytes, lambda value: base64.b64encode(value).decode())
    converter.register_structure_hook(date, _load_date)
    converter.register_unstructure_hook(date, date.isoformat)
    converter.register_structure_hook(datetime, _load_datetime)
    converter.register_unstructure_hook(datetime, _write_datetime)
    configure_union_passthrough(str | bool | int | float | None, converter)
    _check_shapes(converter)
    return converter


def _check_shapes(converter: Any) -> None:
    """Let lists be loaded from lists and objects from objects only: cattrs takes any iterable, even text."""
    from cattrs import cols
    from cattrs.gen import make_dict_structure_fn

    def load_class(kind: Any, converter: Any) -> _Hook:
        return _after(dict, "an object", make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True))

    def load_mapping(kind: Any, converter: Any) -> _Hook:
        return _after(dict, "an object", cols.mapping_structure_factory(kind, converter))

    def load_list(kind: Any, converter: Any) -> _Hook:
        return _after(list, "a list", cols.list_structure_factory(kind, converter))

    def load_collection(kind: Any, converter: Any) -> _Hook:
        listed = types.GenericAlias(list, (*get_args(kind), Any)[:1])
        items: _Hook = converter.get_structure_hook(listed)
        make = _origin(kind)
        return lambda value, _: make(items(value, listed))

    converter.register_structure_hook_factory(lambda kind: attrs.has(_origin(kind)), load_class)
    converter.register_structure_hook_factory(lambda kind: _origin(kind) is dict, load_mapping)
    converter.register_structure_hook_factory(lambda kind: _origin(kind) in _LISTS, load_list)
    converter.register_structure_hook_factory(lambda kind: _origin(kind) in _COLLECTIONS, load_collection)
    converter.register_structure_hook_factory(_is_record, _refuse_type)


def _origin(kind: Any) -> Any:
    return get_origin(kind) or kind


def _is_record(kind: Any) -> bool:
    """Whether it is a tuple of fixed length, where each place has a type of its own."""
    return get_origin(kind) is tuple and get_args(kind)[1:] != (...,)


def _refuse_type(kind: Any) -> _Hook:
    raise ConfigError(f"{kind!r} cannot be loaded", fix=_FIX)


def _after(shape: type, words: str, hook: _Hook) -> _Hook:
    """Return a hook that first demands the shape."""

    def load(value: Any, kind: Any) -> Any:
        if type(value) is not shape:
            raise Misfit(f"{words} is needed, not {type_name(value)}")
        return hook(value, kind)

    return load


def _or_subclass(plain: type, hook: _Hook) -> _Hook:
    """Return a hook for a scalar type and for its subclasses, which cattrs sends here too: a StrEnum is a str."""

    def load(value: Any, kind: Any) -> Any:
        if kind is plain or not isinstance(kind, type):
            return hook(value, kind)
        make: Any = kind
        return _load_enum(value, kind) if issubclass(kind, enum.Enum) else make(hook(value, kind))

    return load


def _load_enum(value: Any, kind: Any) -> Any:
    for member in kind:
        # Types are compared too: True equals 1, and 1.0 does.
        if type(member.value) is type(value) and member.value == value:
            return member
    raise Misfit(f"it is none of the values of {kind.__name__}")


def _load_datetime(value: Any, _kind: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if type(value) is str else None
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise Misfit("a date and time in ISO format with an offset is needed")
    return moment


def _load_bytes(value: Any, _kind: Any) -> bytes:
    try:
        content = base64.b64decode(value, validate=True) if type(value) is str else None
    except ValueError:
        content = None
    if content is None:
        raise Misfit("text in base64 is needed")
    return content


def _load_date(value: Any, _kind: Any) -> date:
    try:
        day = date.fromisoformat(value) if type(value) is str else None
    except ValueError:
        day = None
    if day is None:
        raise Misfit("a date in ISO format is needed")
    return day


def _write_datetime(value: datetime) -> str:
    if value.utcoffset() is None:
        raise Misfit("a datetime is naive: it has no time zone")
    return value.isoformat()


def _locate(error: BaseException) -> tuple[str, str]:
    """Return the path to the first fault in cattrs' tree of errors, and what it is, in words without content."""
    path = ""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
        path += "".join(_steps(error))
    if isinstance(error, Misfit):
        return path + error.path, error.problem
    extra = getattr(error, "extra_fields", None)
    if extra:
        return path + key_step(min(extra)), "there is no such field"
    if isinstance(error, KeyError) and error.args and path.endswith(key_step(error.args[0])):
        return path, "it is missing"
    return path, f"it was refused ({type(error).__name__})"


def _steps(error: BaseException) -> Iterator[str]:
    # cattrs leaves a note per level: one with a name for an attribute, one with an index for an element or a key.
    for note in getattr(error, "__notes__", ()):
        if hasattr(note, "name"):
            yield key_step(note.name)
        elif hasattr(note, "index"):
            yield index_step(note.index) if isinstance(note.index, int) else key_step(note.index)
