"""Lines of JSON that are safe to show."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.observe.jsonline import encode


@given(st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), max_size=4))
def test_a_line_prints_and_reads_back_equal(fields: dict[str, object]) -> None:
    """Whatever is in it."""
    line = encode(fields)

    assert line.isprintable()
    assert json.loads(line) == fields


@pytest.mark.parametrize("text", ["\x7f", "\x9b31m", "\u202e", "\u2028", "\U000e0001", "a\nb"])
def test_what_does_not_print_is_escaped(text: str) -> None:
    """In one way: a backslash and hexadecimal digits."""
    assert encode({"text": text}).isprintable()


def test_letters_of_any_script_stay() -> None:
    """A line can be read and searched for."""
    assert encode({"text": "äß 語 ok"}) == '{"text": "äß 語 ok"}'
