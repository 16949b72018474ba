"""Payloads and results as JSON text: what may be stored, how it is read back, and the typed values of handlers.

A :class:`Codec` turns typed values into JSON values and back; :class:`AttrsCodec` is the default one.
"""

import json
import math
import sys
from typing import Any, Protocol, TypeAlias

from jobq.errors import PayloadError, PayloadTooLarge, ResultError
from jobq.model.loaders import LoaderFactory, to_json
from jobq.model.misfit import Misfit, index_step, key_step, type_name

#: A value as json.loads returns it: None, bool, int, float, str, a list, or a dict with text keys.
JSON: TypeAlias = Any

#: Lists and dicts may be nested this deep, which is far from exhausting the stack of any reader.
MAX_DEPTH = 100
#: By default Python reads no decimal integer of more digits, so none is written either.
MAX_INT_DIGITS = sys.int_info.default_max_str_digits

_PLAIN = frozenset({str, int, float, bool, type(None)})
#: An integer of fewer bits has fewer than 640 digits, the lowest limit that Python can be set to.
_SURE_BITS = 2_000
#: What JSON allows around a value.
_SPACE = " \t\n\r"
_NOT_JSON = "it is not valid JSON, or holds a number out of range"


class Codec(Protocol):
    """Turns the typed values of handlers into JSON values and back."""

    def supports(self, schema: Any) -> None:
        """Check, when a handler is registered, that values of this type can be loaded and dumped.

        Raises ConfigError that names the unsupported type and the path to it.
        """
        ...

    def load(self, value: JSON, schema: Any) -> object:
        """Return the typed value; raises PayloadError with the path where the JSON value does not fit."""
        ...

    def dump(self, value: object) -> JSON:
        """Return the JSON value of a typed one; what cannot be expressed is left for :func:`encode` to refuse."""
        ...


class AttrsCodec:
    """The codec that uses attrs alone.

    It follows attrs classes, ``list[T]``, ``dict[str, T]`` and ``X | None``. Scalars are checked strictly: a bool is no
    int, text is no number, and an int is taken only where a float is declared, and becomes one. Missing fields are
    refused; unknown ones too, unless ``unknown`` is "ignore". The class's own converters and validators are applied;
    when they raise, the error carries the exception's type but not its text, which may quote the payload.
    """

    def __init__(self, unknown: str = "refuse") -> None:
        self._factory = LoaderFactory(unknown)

    def supports(self, schema: Any) -> None:
        """Raise ConfigError where this codec cannot load the type, or its hints cannot be resolved."""
        self._factory.get(schema)

    def load(self, value: JSON, schema: Any) -> object:
        """Return the typed value; raises PayloadError with the path where the JSON value does not fit."""
        load = self._factory.get(schema)
        try:
            return load(value)
        except Misfit as misfit:
            path, problem = misfit.path, misfit.problem
        # Outside the block: what a validator raised, whose text may quote the payload, must not hang on as the context.
        raise PayloadError(f"${path}", problem)

    def dump(self, value: object) -> JSON:
        """Return the JSON value of attrs instances, also inside lists and dicts; anything else stays as it is.

        Nesting deeper than 100 raises PayloadError.
        """
        try:
            return to_json(value, MAX_DEPTH)
        except Misfit as misfit:
            path, problem = misfit.path, misfit.problem
        raise PayloadError(f"${path}", problem)


def encode(value: object, *, limit: int) -> str:
    """Return the JSON text of a payload.

    NaN, infinity, lone surrogates, keys that are no text, tuples, sets, bytes, other objects, integers of more than
    4,300 digits and nesting deeper than 100 raise PayloadError with the path; more than ``limit`` bytes in UTF-8 raise
    PayloadTooLarge. A value of a subclass (a StrEnum, a defaultdict) is stored as the plain type it derives from.
    """
    try:
        text, size = _write(value)
    except Misfit as misfit:
        raise PayloadError(f"${misfit.path}", misfit.problem) from None
    if size > limit:
        raise PayloadTooLarge(size, limit)
    return text


def encode_result(value: object, *, limit: int) -> str:
    """Return the JSON text of a result: as :func:`encode`, but what is refused raises ResultError."""
    try:
        text, size = _write(value)
    except Misfit as misfit:
        raise ResultError(f"${misfit.path}", misfit.problem) from None
    if size > limit:
        raise ResultError(
            "$",
            f"{size:,} bytes encoded, at most {limit:,} are allowed",
            fix="Store the content elsewhere and return a reference to it, or raise result_max_bytes.",
        )
    return text


def decode(text: str) -> JSON:
    """Return the value of stored JSON text.

    Broken text, NaN, numbers out of range and lone surrogates raise PayloadError without any of the content.
    """
    try:
        text = text.strip(_SPACE)
        value, end = _decoder.raw_decode(text)
        if end < len(text):
            raise ValueError(_NOT_JSON)
        # encode() escapes no surrogate: text that does was written by hand, and may hold half a pair.
        if "\\u" in text:
            _search(value)
    except Misfit as misfit:
        problem = misfit.problem
    except (TypeError, ValueError, RecursionError):
        problem = _NOT_JSON
    else:
        return value
    raise PayloadError("$", problem)


def _finite(text: str) -> float:
    """Read a float of stored text; ``1e999`` would become infinity, and NaN has no finite value at all."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(_NOT_JSON)
    return number


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _write(value: object) -> tuple[str, int]:
    """Return the text and its size in bytes.

    Types are checked first; what is bad about a good type (NaN, a surrogate, a huge integer) shows when the text is
    made, and only then a second walk looks for its path.
    """
    _check_types(value, 1)
    # Answered instead of raised on: a UnicodeEncodeError that hung on as the context would hold the whole text.
    try:
        text = _encoder.encode(value)
    except ValueError:
        text = None
    size = -1 if text is None else len(text) if text.isascii() else _try_size(text)
    # A process that lifted Python's limit on integers could write one that others cannot read.
    if size < 0 or (size > MAX_INT_DIGITS and not 0 < sys.get_int_max_str_digits() <= MAX_INT_DIGITS):
        _search(value)
    if text is None or size < 0:
        raise Misfit(_NOT_JSON)
    return text, size


def _try_size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1


def _check_types(value: object, depth: int) -> None:
    if type(value) in _PLAIN:
        return
    if depth > MAX_DEPTH and isinstance(value, dict | list):
        raise Misfit(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Misfit(f"a key has to be text, not {type_name(key)}")
            if type(item) not in _PLAIN:
                _check_item(item, depth, key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if type(item) not in _PLAIN:
                _check_item(item, depth, index)
    elif not isinstance(value, str | int | float):
        raise Misfit(f"a value of type {type_name(value)} is not JSON")


def _check_item(item: object, depth: int, step: str | int) -> None:
    try:
        _check_types(item, depth + 1)
    except Misfit as misfit:
        misfit.under(key_step(step) if isinstance(step, str) else index_step(step))
        raise


def _search(value: object) -> None:
    """Raise Misfit at the first scalar that has a good type and a bad value; None is found in most payloads."""
    steps: list[tuple[str, object]] = []
    if isinstance(value, dict):
        for key in value:
            _search_scalar(key, "a key holds a lone surrogate")
        steps = [(key_step(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        steps = [(index_step(index), item) for index, item in enumerate(value)]
    else:
        _search_scalar(value, "the text holds a lone surrogate")
    for step, item in steps:
        try:
            _search(item)
        except Misfit as misfit:
            misfit.under(step)
            raise


def _search_scalar(value: object, surrogate: str) -> None:
    if isinstance(value, str) and not value.isascii() and _try_size(value) < 0:
        raise Misfit(surrogate)
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit("NaN and infinity are not JSON values")
    if isinstance(value, int) and _too_long(value):
        raise Misfit("an integer has too many digits")


def _too_long(number: int) -> bool:
    if number.bit_length() < _SURE_BITS:
        return False
    bound: int = 10 ** min(sys.get_int_max_str_digits() or MAX_INT_DIGITS, MAX_INT_DIGITS)
    return abs(number) >= bound
