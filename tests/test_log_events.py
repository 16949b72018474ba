"""Log events are literals of one shape, and README.rst lists exactly those that the code has."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEVELS = ("debug", "info", "warning", "error")


@cache
def leveled() -> list[tuple[str, ast.Call, ast.Attribute]]:
    """Return where the package's code calls something that is named like a level, the call, and what is called."""
    return [
        (f"{file.name}:{node.lineno}", node, node.func)
        for file in sorted((ROOT / "jobq").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS
    ]


def calls() -> Iterator[tuple[str, str, ast.expr]]:
    """Yield where, at which level and with which event each line of the package's code logs."""
    for where, node, called in leveled():
        receiver = ast.unparse(called.value).rpartition(".")[2]
        if receiver in {"logger", "log", "_log", "_logger"} and node.args:
            yield where, called.attr, node.args[0]


def listed() -> set[tuple[str, str]]:
    """Return the (level, event) pairs of the README."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    section = text.partition("Log events\n=")[2].partition("\nIn production\n=")[0]
    rows = re.findall(r"\* - ``(jobq\.[a-z_.]+)``\n\s+- (.+)", section)
    return {(level, event) for event, levels in rows for level in levels.split(", ")}


def events(node: ast.expr) -> list[str]:
    """Return the events that an argument can be: a literal, or a choice of two."""
    if isinstance(node, ast.IfExp):
        return events(node.body) + events(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def test_events_are_literals_of_one_shape() -> None:
    """Each event is ``jobq.<noun>.<past participle>``, written out where it is logged."""
    found = list(calls())
    assert found
    for where, _, node in found:
        assert events(node), where
        assert all(re.fullmatch(r"jobq\.[a-z]+\.[a-z_]+", event) for event in events(node)), where


def test_readme_lists_every_event_with_its_level() -> None:
    """The list of the README and the code are the same."""
    assert {(level, event) for _, level, node in calls() for event in events(node)} == listed()


@pytest.mark.parametrize("secret", ["payload", "result", "token"])
def test_no_event_carries_a_secret(secret: str) -> None:
    """No line is given a payload, a result or a lease's token."""
    for where, node, _ in leveled():
        assert secret not in {keyword.arg for keyword in node.keywords}, where
