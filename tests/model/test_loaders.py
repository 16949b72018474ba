"""The codec on attrs: which types it follows, how strictly, and how it refuses."""

import types
import typing
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import Enum
from typing import Any

import attrs
import pytest

from jobq.errors import ConfigError, PayloadError
from jobq.model.payload import AttrsCodec, decode, encode

LIMIT = 1_048_576
SECRET = "hunter2"


class Plain(Enum):
    """An enum that is no JSON value."""

    ONE = 1


@attrs.frozen
class Address:
    """A nested value."""

    street: str
    number: int = 1


def _upper(text: str) -> str:
    return text.upper()


def _no_secret(_order: object, _attribute: object, value: str) -> None:
    if value == SECRET:
        raise ValueError(f"{value} is refused")


@attrs.frozen
class Order:
    """A value with a field of each supported type."""

    to: str = attrs.field(validator=_no_secret)
    address: Address | None = None
    price: float = 0.0
    paid: bool = False
    items: list[Address] = attrs.field(factory=list)
    by_name: dict[str, Address] = attrs.field(factory=dict)
    anything: Any = None
    loose: dict = attrs.field(factory=dict)  # type: ignore[type-arg]
    nothing: None = None
    code: str = attrs.field(default="", converter=_upper)
    parts: "list[Order]" = attrs.field(factory=list)
    maybe: typing.Optional[typing.List[int]] = None  # noqa: UP006, UP045 - the old spelling is supported
    _hidden: int = 0
    derived: int = attrs.field(init=False, default=7)


def _context_chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _loop() -> Any:
    loop: list[Any] = []
    loop += [loop, loop]
    return loop


def test_attrs_codec_round_trip() -> None:
    """A value with every supported type is dumped to JSON and loaded equal."""
    codec = AttrsCodec()
    order = Order(
        "ada",
        address=Address("Main", 5),
        price=1.5,
        paid=True,
        items=[Address("A"), Address("B")],
        by_name={"x": Address("C")},
        anything={"deep": [1, None]},
        loose={"k": 1},
        code="up",
        parts=[Order("bob", parts=[Order("eve")])],
        maybe=[1, 2],
        hidden=4,
    )

    stored = decode(encode(codec.dump(order), limit=LIMIT))

    codec.supports(Order)
    assert codec.load(stored, Order) == order
    assert "derived" not in stored


def test_attrs_codec_applies_defaults_and_converters() -> None:
    """Missing fields with a default are filled in, and the class's converters are applied."""
    assert AttrsCodec().load({"to": "ada", "code": "up"}, Order) == Order("ada", code="UP")


def test_attrs_codec_makes_a_float_of_an_int() -> None:
    """An int is accepted where a float is declared, as the type hint allows, and becomes one."""
    loaded = AttrsCodec().load({"to": "ada", "price": 2}, Order)

    assert isinstance(loaded, Order)
    assert type(loaded.price) is float


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        pytest.param([], "$", "object is needed, not list", id="no-object"),
        pytest.param({}, "$.to", "missing", id="missing"),
        pytest.param({"to": "a", "extra key": SECRET}, '$["extra key"]', "no such field", id="unknown"),
        pytest.param({"to": "a", "derived": 7}, "$.derived", "no such field", id="not-an-init-field"),
        pytest.param({"to": 5}, "$.to", "text is needed, not int", id="int-for-text"),
        pytest.param({"to": None}, "$.to", "text is needed, not null", id="null-for-text"),
        pytest.param({"to": "a", "paid": 1}, "$.paid", "true or false is needed, not int", id="int-for-bool"),
        pytest.param({"to": "a", "price": True}, "$.price", "number is needed, not bool", id="bool-for-float"),
        pytest.param({"to": "a", "price": "1.5"}, "$.price", "number is needed, not str", id="text-for-float"),
        pytest.param({"to": "a", "price": 10**400}, "$.price", "too large", id="int-beyond-float"),
        pytest.param({"to": "a", "items": {}}, "$.items", "list is needed, not dict", id="dict-for-list"),
        pytest.param({"to": "a", "items": "ab"}, "$.items", "list is needed, not str", id="text-for-list"),
        pytest.param({"to": "a", "nothing": 0}, "$.nothing", "null is needed", id="zero-for-null"),
        pytest.param(
            {"to": "a", "items": [{"street": "x"}, {"street": "x", "number": True}]},
            "$.items[1].number",
            "integer is needed, not bool",
            id="bool-for-int-in-list",
        ),
        pytest.param({"to": "a", "by_name": {"b c": {}}}, '$.by_name["b c"].street', "missing", id="inside-dict"),
        pytest.param({"to": "a", "address": {"street": 1}}, "$.address.street", "text is needed", id="inside-optional"),
        pytest.param({"to": "a", "parts": [{"to": SECRET}]}, "$.parts[0].to", "ValueError", id="validator"),
        pytest.param({"to": "a", "code": "b", "maybe": [1, "2"]}, "$.maybe[1]", "integer is needed", id="old-spelling"),
    ],
)
def test_attrs_codec_refuses_with_path_and_without_content(value: Any, path: str, problem: str) -> None:
    """What does not fit the class is refused with the path; no error in the chain shows the content."""
    with pytest.raises(PayloadError) as caught:
        AttrsCodec().load(value, Order)

    assert caught.value.path == path
    assert problem in caught.value.problem
    assert all(SECRET not in str(error) for error in _context_chain(caught.value))


def test_attrs_codec_ignores_unknown_fields_when_told() -> None:
    """With unknown="ignore" a newer producer may send more, at every level."""
    codec = AttrsCodec(unknown="ignore")

    assert codec.load({"to": "a", "new": 1, "address": {"street": "x", "zip": 2}}, Order) == Order(
        "a", address=Address("x")
    )


def test_attrs_codec_refuses_another_word_for_unknown() -> None:
    """A misspelt policy is a ConfigError."""
    with pytest.raises(ConfigError):
        AttrsCodec(unknown="drop")


@pytest.mark.parametrize(
    ("schema", "value"), [(None, None), (Any, [1]), (object, "x"), (int, 5), (list, [1]), (dict[str, int], {"a": 1})]
)
def test_attrs_codec_loads_plain_types(schema: Any, value: Any) -> None:
    """A payload need not be a class."""
    codec = AttrsCodec()
    codec.supports(schema)

    assert codec.load(value, schema) == value


def _class_with(hint: Any) -> type:
    return attrs.make_class("Holder", {"field": attrs.field(type=hint)})


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (set[int], "set[int]"),
        (datetime, "datetime"),
        (int | str, "int | str"),
        (tuple[int, ...], "tuple[int, ...]"),
        (dict[int, str], "dict[int, str]"),
        (Plain, "Plain"),
        (typing.TypeVar("T"), "T"),
    ],
)
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        pytest.param(lambda hint: hint, "$", id="alone"),
        pytest.param(_class_with, "$.field", id="in-a-field"),
        pytest.param(lambda hint: _class_with(types.GenericAlias(list, (hint,))), "$.field[]", id="in-a-list"),
    ],
)
def test_attrs_codec_names_an_unsupported_type(hint: Any, named: str, wrap: Callable[[Any], Any], path: str) -> None:
    """A type that the codec cannot follow is found at registration, with its path and what to do."""
    with pytest.raises(ConfigError) as caught:
        AttrsCodec().supports(wrap(hint))

    assert f"at {path}: " in str(caught.value)
    assert named in str(caught.value)
    assert "jobq[typed]" in str(caught.value.fix)


def test_attrs_codec_reports_hints_that_cannot_be_resolved() -> None:
    """A hint that names nothing is a ConfigError at registration, again at the second attempt."""

    @attrs.frozen
    class Lost:
        field: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - the subject of the test

    codec = AttrsCodec()
    for _ in range(2):
        with pytest.raises(ConfigError, match="Nowhere"):
            codec.supports(Lost)


@pytest.mark.parametrize("schema", [[1], "Order", 5])
def test_attrs_codec_refuses_what_is_no_type(schema: Any) -> None:
    """A schema that is no type is a ConfigError."""
    with pytest.raises(ConfigError):
        AttrsCodec().supports(schema)


def test_attrs_codec_dump_leaves_the_rest_for_encode() -> None:
    """What is no JSON stays as it is, for encode to refuse with its path."""
    dumped = AttrsCodec().dump({"a": [Address("x"), {1}]})

    with pytest.raises(PayloadError) as caught:
        encode(dumped, limit=LIMIT)
    assert caught.value.path == "$.a[1]"


def test_attrs_codec_dump_of_a_loop_ends() -> None:
    """A value that contains itself is refused in bounded work."""
    with pytest.raises(PayloadError, match="deep"):
        AttrsCodec().dump(_loop())
