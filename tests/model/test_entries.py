"""Entries of schedules as JSON text: names, twins, and what somebody broke."""

import json
from typing import Any

import pytest

from jobq.errors import ArgumentError
from jobq.model.entries import Entry, read_entries, write_entries


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        pytest.param([Entry("a")], ["a"], id="alone"),
        pytest.param([Entry("a"), Entry("b")], ["a", "b"], id="two-kinds"),
        pytest.param([Entry("a"), Entry("b"), Entry("a")], ["a:1", "b", "a:2"], id="one-kind-twice"),
        pytest.param([Entry("a", name="x"), Entry("a")], ["x", "a:2"], id="one-of-them-named"),
    ],
)
def test_each_entry_gets_a_name(entries: list[Entry], names: list[str]) -> None:
    """Its own, else the kind, with a number where the kind is not enough."""
    assert [entry.name for entry in read_entries(write_entries(entries))] == names


def test_all_fields_are_read_back() -> None:
    """None is left out of the text and comes back as None."""
    entry = Entry("a", ["ü", None, 1.5], name="n", queue="q", priority=-3, max_attempts=1, dedupe_key="k",
                  actor="user", tenant_id="t", subject="s", meta={})  # fmt: skip
    assert read_entries(write_entries([entry])) == (entry,)
    assert json.loads(write_entries([Entry("a")])) == [{"kind": "a", "name": "a", "actor": "system"}]


def test_the_text_of_the_same_entries_is_the_same() -> None:
    """Adding a schedule again compares it."""
    assert write_entries([Entry("a", {"x": 1})]) == write_entries([Entry("a", {"x": 1})])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(Entry("a", name="x"), Entry("b", name="x"), id="name"),
        pytest.param(Entry("a", dedupe_key="k"), Entry("b", dedupe_key="k"), id="key"),
    ],
)
def test_twins_are_refused(one: Entry, other: Entry) -> None:
    """By whoever writes them and by whoever reads them."""
    with pytest.raises(ArgumentError, match="same"):
        write_entries([one, other])
    text = json.dumps([json.loads(write_entries([entry]))[0] for entry in (one, other)])
    with pytest.raises(ValueError, match="same"):
        read_entries(text)


@pytest.mark.parametrize(
    "item",
    [
        {"kind": 7, "name": "a"}, {"kind": "", "name": "a"}, {"kind": "a"}, {"kind": "a", "name": "x" * 301},
        {"kind": "a", "name": "a", "priority": True}, {"kind": "a", "name": "a", "priority": 1.0},
        {"kind": "a", "name": "a", "max_attempts": 0}, {"kind": "a", "name": "a", "queue": 7},
        {"kind": "a", "name": "a", "dedupe_key": "a\0b"}, {"kind": "a", "name": "a", "subject": "\ud800"},
        {"kind": "a", "name": "a", "meta": []}, {"kind": "a", "name": "a", "actor": "nobody"},
        {"kind": "a", "name": "a", "secret": "hunter2"},
    ],
)  # fmt: skip
def test_a_broken_entry_is_refused_without_a_quote(item: dict[str, Any]) -> None:
    """What the job table would refuse is found before; the text is not in the message."""
    with pytest.raises(ValueError, match="entry") as caught:
        read_entries(json.dumps([item]))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "null", "[" * 100_000])
def test_what_is_no_list_is_refused(text: str) -> None:
    """However deep."""
    with pytest.raises(ValueError, match="entries"):
        read_entries(text)
