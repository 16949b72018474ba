"""The codec on cattrs, as strict as jobq's own."""

import builtins
import enum
import types
import typing
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Generic, TypeVar

import attrs
import pytest

from jobq.errors import ConfigError, PayloadError
from jobq.model.payload import Codec, decode, encode
from jobq.typed import CattrsCodec

SECRET = "hunter2"
T = TypeVar("T")


class Color(enum.Enum):
    """An enum of texts and a number."""

    RED = "red"
    ONE = 1


class Size(enum.StrEnum):
    """An enum whose members are texts."""

    SMALL = "small"


class Level(enum.IntEnum):
    """An enum whose members are numbers."""

    HIGH = 3


class Name(str):
    """A text of its own type."""

    __slots__ = ()


@attrs.frozen
class Card:
    """One member of a union."""

    number: int


@attrs.frozen
class Cash:
    """The other member of a union."""

    currency: str


@attrs.frozen
class Box(Generic[T]):
    """A generic class."""

    content: T


def _no_secret(_order: object, _attribute: object, value: str) -> None:
    if value == SECRET:
        raise ValueError(f"{value} is refused")


@attrs.frozen
class Order:
    """A value with a field of each supported type."""

    to: str = attrs.field(validator=_no_secret)
    at: datetime = datetime(2024, 1, 1, tzinfo=UTC)
    day: date = date(2024, 1, 1)
    color: Color = Color.RED
    size: Size = Size.SMALL
    level: Level = Level.HIGH
    either: int | str | None = None
    paid_with: Card | Cash | None = None
    cards: list[Card] = attrs.field(factory=list)
    by_name: dict[str, Card] = attrs.field(factory=dict)
    names: frozenset[str] = frozenset()
    sizes: tuple[int, ...] = ()
    price: float = 1.0
    parts: "list[Order]" = attrs.field(factory=list)
    due: datetime | None = None
    raw: bytes = b""
    anything: Any = None
    box: Box[int] | None = None


@pytest.fixture
def codec() -> Codec:
    """The codec under test, seen as the protocol that jobq asks for."""
    return CattrsCodec()


def test_round_trip(codec: Codec) -> None:
    """A value with every supported type is stored as JSON text and loaded equal."""
    order = Order(
        "ada",
        at=datetime(2024, 6, 1, 12, 30, 0, 123, tzinfo=timezone(timedelta(hours=2))),
        day=date(2024, 2, 29),
        color=Color.ONE,
        either="5",
        paid_with=Cash("EUR"),
        cards=[Card(1)],
        by_name={"x": Card(2)},
        names=frozenset({"a", "b"}),
        sizes=(1, 2),
        price=2.5,
        parts=[Order("bob", parts=[Order("eve", paid_with=Card(3))])],
        due=datetime(2024, 1, 1, tzinfo=UTC),
        raw=b"\0\xff",
        anything={"deep": [1, None]},
        box=Box(5),
    )

    codec.supports(Order)
    loaded = codec.load(decode(encode(codec.dump(order), limit=10_000)), Order)

    assert loaded == order
    assert isinstance(loaded, Order)
    assert loaded.at.utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize(("schema", "value"), [(Size, Size.SMALL), (Level, Level.HIGH), (Name, Name("ada"))])
def test_a_subclass_of_a_scalar_keeps_its_type(codec: Codec, schema: Any, value: Any) -> None:
    """An enum of texts or numbers, and a class of one's own, come back as what they were."""
    stored = decode(encode(codec.dump([value]), limit=100))

    loaded = codec.load(stored, types.GenericAlias(list, (schema,)))

    assert loaded == [value]
    assert isinstance(loaded, list)
    assert type(loaded[0]) is schema


def test_an_int_becomes_a_float(codec: Codec) -> None:
    """An int is accepted where a float is declared, and becomes one."""
    loaded = codec.load({"to": "a", "price": 2}, Order)

    assert isinstance(loaded, Order)
    assert type(loaded.price) is float


@pytest.mark.parametrize(
    ("schema", "value", "loaded"),
    [
        (int | str, 5, 5),
        (None, None, None),
        (object, [1], [1]),
        (typing.Optional[int], None, None),  # noqa: UP045 - the old spelling is supported
        (dict, {"a": 1}, {"a": 1}),
        (list, [1], [1]),
        (set[int], [1, 1], {1}),
        (datetime, "2024-01-01T00:00:00Z", datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_plain_types(codec: Codec, schema: Any, value: Any, loaded: Any) -> None:
    """A payload need not be a class."""
    codec.supports(schema)

    assert codec.load(value, schema) == loaded


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        pytest.param([], "$", "object is needed, not list", id="no-object"),
        pytest.param({}, "$.to", "missing", id="missing"),
        pytest.param({"to": "a", "x y": SECRET}, '$["x y"]', "no such field", id="unknown"),
        pytest.param({"to": 5}, "$.to", "text is needed, not int", id="int-for-text"),
        pytest.param({"to": SECRET}, "$", "ValueError", id="validator"),
        pytest.param({"to": "a", "price": "1"}, "$.price", "number is needed, not str", id="text-for-float"),
        pytest.param({"to": "a", "price": True}, "$.price", "number is needed, not bool", id="bool-for-float"),
        pytest.param({"to": "a", "cards": "ab"}, "$.cards", "list is needed, not str", id="text-for-list"),
        pytest.param({"to": "a", "cards": {}}, "$.cards", "list is needed, not dict", id="dict-for-list"),
        pytest.param({"to": "a", "cards": [{"number": 1}, []]}, "$.cards[1]", "object is needed", id="list-for-class"),
        pytest.param({"to": "a", "cards": [{"number": True}]}, "$.cards[0].number", "integer is needed", id="bool"),
        pytest.param({"to": "a", "by_name": []}, "$.by_name", "object is needed, not list", id="list-for-dict"),
        pytest.param({"to": "a", "by_name": {"b c": {}}}, '$.by_name["b c"].number', "missing", id="inside-dict"),
        pytest.param({"to": "a", "sizes": "12"}, "$.sizes", "list is needed, not str", id="text-for-tuple"),
        pytest.param({"to": "a", "names": [1]}, "$.names[0]", "text is needed, not int", id="inside-set"),
        pytest.param({"to": "a", "at": "2024-01-01T00:00:00"}, "$.at", "offset", id="naive"),
        pytest.param({"to": "a", "at": 5}, "$.at", "offset", id="number-for-datetime"),
        pytest.param({"to": "a", "due": SECRET}, "$.due", "offset", id="text-for-datetime"),
        pytest.param({"to": "a", "day": "2024-02-30"}, "$.day", "ISO", id="no-such-day"),
        pytest.param({"to": "a", "color": SECRET}, "$.color", "none of the values of Color", id="enum"),
        pytest.param({"to": "a", "color": True}, "$.color", "none of the values of Color", id="bool-for-enum"),
        pytest.param({"to": "a", "size": SECRET}, "$.size", "none of the values of Size", id="text-enum"),
        pytest.param({"to": "a", "level": True}, "$.level", "none of the values of Level", id="bool-for-number-enum"),
        pytest.param({"to": "a", "either": 1.5}, "$.either", "refused", id="outside-union"),
        pytest.param({"to": "a", "paid_with": {SECRET: 1}}, "$.paid_with", "refused", id="outside-class-union"),
        pytest.param({"to": "a", "parts": [{"to": "b", "parts": [{}]}]}, "$.parts[0].parts[0].to", "missing", id="x"),
        pytest.param({"to": "a", "raw": "*"}, "$.raw", "base64", id="no-base64"),
        pytest.param({"to": "a", "box": {"content": "x"}}, "$.box.content", "integer is needed", id="generic"),
    ],
)
def test_load_refuses_with_path_and_without_content(codec: Codec, value: Any, path: str, problem: str) -> None:
    """What does not fit is refused with the path; no error in the chain shows the content."""
    with pytest.raises(PayloadError) as caught:
        codec.load(value, Order)

    assert caught.value.path == path
    assert problem in caught.value.problem
    assert all(SECRET not in f"{error} {error!r}" for error in _chain(caught.value))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (complex, "complex"),
        (list[complex], "complex"),
        (attrs.make_class("Holder", {"field": attrs.field(type=complex)}), "complex"),
        (tuple[int, str], "tuple[int, str]"),
        ("Order", "Order"),
    ],
)
def test_supports_names_an_unsupported_type(codec: Codec, schema: Any, named: str) -> None:
    """A type that cannot be loaded is found at registration."""
    with pytest.raises(ConfigError, match="not supported") as caught:
        codec.supports(schema)

    assert named in str(caught.value)
    assert caught.value.fix


def test_supports_reports_hints_that_cannot_be_resolved(codec: Codec) -> None:
    """A hint that names nothing is a ConfigError at registration."""

    @attrs.frozen
    class Lost:
        field: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - the subject of the test

    with pytest.raises(ConfigError, match="Nowhere"):
        codec.supports(Lost)


def test_dump_refuses_a_naive_datetime(codec: Codec) -> None:
    """A datetime without a zone is not written, because it could not be read."""
    with pytest.raises(PayloadError, match="naive"):
        codec.dump(Order("a", at=datetime(2024, 1, 1)))  # noqa: DTZ001 - the subject of the test


def test_without_cattrs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is missing, making the codec is a ConfigError with the fix."""
    import_module = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] == "cattrs":
            raise ImportError(name)
        return import_module(name, *arguments, **options)

    # Whether a package is installed cannot be injected.
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ConfigError, match="cattrs") as caught:
        CattrsCodec()

    assert caught.value.fix == "pip install 'jobq[typed]'"
