"""The tables of ``tests/README.rst``: every test that they name exists, and no case is missing."""

import re
from functools import lru_cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
README = (TESTS / "README.rst").read_text(encoding="utf-8")
ROOT_README = (TESTS.parent / "README.rst").read_text(encoding="utf-8")
#: The numbers of the cases; they have gaps.
CASES = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18, 20, 21, 24, 25, 26, 27, 28, 29, 30, 31,
    33, 35, 37, 38, 39, 40, 41, 43, 44, 46, 47, 48, 49, 52, 53, 54, 56, 57, 58, 59, 61, 63, 66, 67, 69, 70,
)  # fmt: skip


def section(title: str, text: str = README) -> str:
    """Return what stands below a title, up to the next one."""
    found = re.search(rf"^{title}\n=+\n(.*?)(?=^[^\n]+\n=+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def rows(title: str) -> dict[str, str]:
    """Return the rows of the table below a title, by their first cell, without the heading."""
    _, *found = re.split(r"^   \* - ", section(title), flags=re.MULTILINE)[1:]
    return {row.split("\n", 1)[0].strip(): row.split("\n", 1)[1] for row in found}


@lru_cache
def sources() -> dict[str, str]:
    """Return the text of each file with tests, by its path below this directory."""
    return {str(path.relative_to(TESTS)): path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}


@pytest.mark.parametrize("number", CASES)
def test_a_case_is_in_the_table_with_files_that_have_its_tests(number: int) -> None:
    """Each file that is named has a test of it; there may be more by now."""
    row = rows("Cases")[f"B{number:02d}"]
    named = re.findall(r"``(\S+\.py)``", row)

    assert named
    assert not [name for name in named if f"\ndef test_b{number:02d}_" not in sources()[name]]


def test_there_is_no_case_beside_those() -> None:
    """Neither in the table nor in a name."""
    named = {int(number) for text in sources().values() for number in re.findall(r"def test_b(\d+)_", text)}

    assert named == set(CASES)
    assert set(rows("Cases")) == {f"B{number:02d}" for number in CASES}


def test_each_guarantee_of_the_readme_has_its_tests() -> None:
    """As many rows as there are numbers; the cases and tests that they name exist."""
    numbers = re.findall(r"^(\d+)\. ", section("What is guaranteed", ROOT_README), re.MULTILINE)
    table = rows("Guarantees and the tests that hold them")

    assert list(table) == numbers
    for row in table.values():
        held_by = row.split("\n     - ", 1)[1]
        cases, tests = re.findall(r"\bB(\d+)\b", held_by), re.findall(r"``(\S+)::(\w+)``", held_by)
        assert cases
        assert tests
        assert {int(case) for case in cases} <= set(CASES)
        for file, name in tests:
            assert f"def {name}(" in sources()[file]
