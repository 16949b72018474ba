"""Input that is made to be expensive: nested without end, numbers without end. It is refused, in bounded work."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]
DEEP = 100_000
JSON_BOMBS = {
    "lists": "[" * DEEP,
    "closed-lists": "[" * DEEP + "]" * DEEP,
    "objects": '{"a":' * DEEP,
    "mixed": '[{"a":' * 50_000 + "1" + "}]" * 50_000,
    "a-little-too-deep": "[" * 200 + "]" * 200,
    "number": "1" * 5_000,
    "float": "1e999999",
}
TOML_BOMBS = {
    "lists": "a = " + "[" * 20_000,
    "closed-lists": "a = " + "[" * 20_000 + "]" * 20_000,
    "tables": "a = " + "{a = " * 12_000,
    "closed-tables": "a = " + "{a = " * 10_000 + "1" + "}" * 10_000,
    "dots": "a" + ".a" * 20_000 + " = 1",
    "header": "[a" + ".a" * 20_000 + "]",
    "array-header": "[[a" + ".a" * 20_000 + "]]",
    "number": "[jobs]\nlease = " + "1" * 5_000,
}


def check(answer: Answer) -> None:
    """A complaint of a few lines, and no traceback."""
    assert answer.code in (1, 2)
    assert "error" in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err) < 2_000


COMMANDS = {
    "payload": "job enqueue outside -",
    "meta": "job enqueue outside null --meta BOMB",
    "result": "lease complete LEASE -",
    "lease": "lease complete -",
    "schedule": "schedule add s outside - --every 1h",
    "entries": "schedule add s --every 1h --entries BOMB",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_json_bombs_are_refused(
    cli: Cli, jobs: jobq.JobQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Nothing is written, and the command says why."""
    jobs.enqueue("outside", 1)
    (tmp_path / "lease").write_text(cli("--db", jobs.path, "lease", "take", "--json").out)
    before = jobs.counts()
    assert before[jobq.JobState.RUNNING] == 1

    for bomb in JSON_BOMBS.values():
        monkeypatch.setattr("sys.stdin", io.StringIO(bomb))
        words = {"BOMB": bomb, "LEASE": "lease"}
        check(cli("--db", jobs.path, *(words.get(word, word) for word in command.split())))

    assert jobs.counts() == before
    assert jobs.schedules.list() == []


@pytest.mark.parametrize("bomb", TOML_BOMBS.values(), ids=TOML_BOMBS)
def test_toml_bombs_are_refused(cli: Cli, tmp_path: Path, bomb: str) -> None:
    """A configuration file is refused by name, with what to do."""
    (tmp_path / "jobq.toml").write_text(bomb)

    check(cli("--config", "jobq.toml", "job", "list"))
    answer = cli("config", "check", "jobq.toml")
    assert (answer.code, answer.err) == (1, "1 mistake\n")
    assert "jobq.toml" in answer.out
