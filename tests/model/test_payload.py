"""Payloads and results as JSON text."""

import json
import sys
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.errors import PayloadError, PayloadTooLarge, ResultError
from jobq.model.payload import MAX_DEPTH, MAX_INT_DIGITS, decode, encode, encode_result

LIMIT = 1_048_576
SECRET = "hunter2"

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Color(StrEnum):
    """A text that is an enum."""

    RED = "red"


class Level(IntEnum):
    """A number that is an enum."""

    HIGH = 3


class Plain(Enum):
    """An enum that is no JSON value."""

    ONE = 1


@attrs.frozen
class Address:
    """A nested value."""

    street: str
    number: int = 1


def _nest(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _context_chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


@given(JSON_VALUES)
def test_b53_what_is_encoded_reads_back_equal(value: Any) -> None:
    """Every JSON value survives storage, with the type of each part."""
    read = decode(encode(value, limit=LIMIT))

    assert read == value
    assert json.dumps(read) == json.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(2**70, id="big-int"),
        pytest.param(-(10 ** (MAX_INT_DIGITS - 1)), id="biggest-int"),
        pytest.param("a\0b", id="nul"),
        pytest.param({"a\0b": "\0"}, id="nul-in-key"),
        pytest.param("\U0001f600é\u2028\x7f", id="unicode"),
        pytest.param(5e-324, id="smallest-float"),
        pytest.param(_nest(MAX_DEPTH), id="deepest"),
        pytest.param(None, id="null"),
    ],
)
def test_b53_odd_values_read_back_equal(value: Any) -> None:
    """Values at the edges of JSON survive storage as text without NUL."""
    text = encode(value, limit=LIMIT)

    assert "\0" not in text
    assert decode(text) == value


def test_subclasses_are_stored_as_the_plain_value() -> None:
    """An enum of text or numbers and a subclass of dict become the plain types they derive from."""
    read = decode(encode(OrderedDict({Color.RED: Color.RED, "level": Level.HIGH}), limit=LIMIT))

    assert read == {"red": "red", "level": 3}
    assert [type(item) for item in read.values()] == [str, int]


def _loop() -> Any:
    loop: list[Any] = []
    loop += [loop, loop]
    return loop


REFUSED = [
    pytest.param(float("nan"), "$", "NaN", id="nan"),
    pytest.param({"x": [1, {"y": float("inf")}]}, "$.x[1].y", "infinity", id="inf-inside"),
    pytest.param({"x": (1, SECRET)}, "$.x", "tuple", id="tuple"),
    pytest.param([{SECRET}], "$[0]", "set", id="set"),
    pytest.param({"x": b"hunter2"}, "$.x", "bytes", id="bytes"),
    pytest.param({"x": datetime(2024, 1, 1, tzinfo=UTC)}, "$.x", "datetime", id="datetime"),
    pytest.param({"x": Plain.ONE}, "$.x", "Plain", id="enum"),
    pytest.param({"x": Address(SECRET)}, "$.x", "Address", id="attrs-instance"),
    pytest.param({1: "a", "1": SECRET}, "$", "int", id="number-as-key"),
    pytest.param({"x": {None: SECRET}}, "$.x", "null", id="none-as-key"),
    pytest.param("\ud800", "$", "surrogate", id="surrogate"),
    pytest.param({"a b": [SECRET + "\udfff"]}, '$["a b"][0]', "surrogate", id="surrogate-inside"),
    pytest.param({"x": {"\ud800": 1}}, "$.x", "surrogate", id="surrogate-in-key"),
    pytest.param({"x": 10**MAX_INT_DIGITS}, "$.x", "digits", id="endless-int"),
    pytest.param({"k" * 99: object()}, f'$["{"k" * 40}\\u2026"]', "object", id="long-key"),
    pytest.param(_nest(MAX_DEPTH + 1), "$" + "[0]" * MAX_DEPTH, "deep", id="too-deep"),
    pytest.param(_nest(10_000), "$" + "[0]" * MAX_DEPTH, "deep", id="far-too-deep"),
    pytest.param(_loop(), "$" + "[0]" * MAX_DEPTH, "deep", id="contains-itself"),
]


@pytest.mark.parametrize(("value", "path", "word"), REFUSED)
def test_b53_encode_refuses_with_path_and_without_content(value: Any, path: str, word: str) -> None:
    """What JSON cannot carry is refused with its path and type; no error in the chain shows the content."""
    with pytest.raises(PayloadError) as caught:
        encode(value, limit=LIMIT)

    assert caught.value.path == path
    assert word in caught.value.problem
    assert all(SECRET not in str(error) for error in _context_chain(caught.value))
    assert not any(isinstance(error, UnicodeError) for error in _context_chain(caught.value))


@pytest.mark.parametrize(("value", "path", "word"), REFUSED)
def test_encode_result_refuses_the_same(value: Any, path: str, word: str) -> None:
    """A result is held to the same rules, under its own error."""
    with pytest.raises(ResultError) as caught:
        encode_result(value, limit=LIMIT)

    assert caught.value.path == path
    assert word in caught.value.problem


def test_b53_an_endless_int_is_refused_whatever_this_process_allows() -> None:
    """A process that lifted Python's limit on integers writes none that others cannot read."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(PayloadError, match="digits") as caught:
            encode({"x": [10**MAX_INT_DIGITS]}, limit=LIMIT)
    finally:
        sys.set_int_max_str_digits(limit)

    assert caught.value.path == "$.x[0]"


@pytest.mark.parametrize("filler", ["a", "é", "\U0001f600"])
def test_b54_size_counts_bytes(filler: str) -> None:
    """A payload at the limit passes, one byte more does not."""
    size = 2 + 10 * len(filler.encode())

    assert encode(filler * 10, limit=size) == f'"{filler * 10}"'
    with pytest.raises(PayloadTooLarge) as caught:
        encode(filler * 10, limit=size - 1)
    assert (caught.value.size, caught.value.limit) == (size, size - 1)


def test_b54_too_large_names_sizes_only() -> None:
    """Fifty megabytes are refused with the sizes and without the content."""
    with pytest.raises(PayloadTooLarge) as caught:
        encode({SECRET: SECRET * 7_142_857}, limit=LIMIT)

    assert "50,000,0" in str(caught.value)
    assert "1,048,576" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_b54_result_too_large() -> None:
    """A result over its limit is a ResultError with the sizes and the setting that helps."""
    with pytest.raises(ResultError, match="4 bytes encoded, at most 3") as caught:
        encode_result("ab", limit=3)

    assert "result_max_bytes" in str(caught.value.fix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"password": "hunter2"',
        "hunter2",
        '{} "hunter2"',
        "NaN",
        "[-Infinity]",
        "[1e999]",
        '"\\ud800hunter2"',
        '{"\\udfff": 1}',
        "[" * 100_000,
        "1" * (MAX_INT_DIGITS + 1),
    ],
)
def test_decode_refuses_broken_text_without_content(text: str) -> None:
    """A row that was broken by hand gives a PayloadError, and no error in the chain quotes the text."""
    with pytest.raises(PayloadError) as caught:
        decode(text)

    assert caught.value.path == "$"
    assert all(SECRET not in str(error) for error in _context_chain(caught.value))
    assert not any(isinstance(error, json.JSONDecodeError) for error in _context_chain(caught.value))


def test_decode_leaves_out_the_spaces_around_a_value() -> None:
    """Text written by another program may have them."""
    assert decode(' \r\n\t{"a": " b "} \n') == {"a": " b "}


def test_decode_reads_escaped_surrogate_pairs() -> None:
    """Text written by another program may escape a whole pair."""
    assert decode('"\\ud83d\\ude00"') == "\U0001f600"
