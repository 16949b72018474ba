"""Options given by their environment variables."""

import argparse
import re
from collections.abc import Callable, Iterator

import pytest

import jobq
from jobq.cli.parser import build_parser
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]

#: For each sort of value, as the help names it: one that is good, what it is read as, and one that is bad. Any text is
#: a good NAME, TEXT, KEY, KIND, CODE, FILE, PATH, ZONE or EXPRESSION as far as the command line knows.
VALUES: dict[str | None, tuple[str, object, str | None]] = {
    None: ("yes", True, "maybe"),
    "N": ("7", 7, "x"),
    "ID": ("7", 7, "0"),
    "TIME": ("1m30s", 90.0, "soon"),
    "WHEN": ("2030-01-31T07:00:00Z", None, "2030-01-31T07:00:00"),
    "QUEUE": ("mail", "mail", "No Queue"),
    "QUEUE=N": ("mail=2, default=1", [("mail", 2), ("default", 1)], "mail=2,default"),
    "STATE": ("failed", "failed", "done"),
    "WHO": ("agent", "agent", "nobody"),
    "HOW": ("skip", "skip", "twice"),
    "JSON": ('{"a": 1}', {"a": 1}, "{"),
    **dict.fromkeys(
        ("NAME", "TEXT", "KEY", "KIND", "CODE", "FILE", "PATH", "ZONE", "EXPRESSION"), ("some text", "some text", None)
    ),
    "CLASS": ("Odd, Even", ["Odd", "Even"], None),
    "MODULE:ATTR": ("shop:jobs", "shop:jobs", None),
}


def _verbs(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield path, parser
    for group in groups:
        for name, child in group.choices.items():
            yield from _verbs(child, (*path, name))


def _cases() -> list[object]:
    """Return a command line, the variable, its attribute and the sort of its value for each variable of any help."""
    found = {}
    for path, parser in _verbs(build_parser()):
        needed = [one for one in parser._actions if not one.option_strings and one.nargs in (None, "+")]
        for action in parser._actions:
            for variable in re.findall(r"\[(JOBQ_\w+)", action.help or ""):
                values = ([*path, *("1" for _ in needed)], variable, action.dest, action.metavar)
                found.setdefault(variable, pytest.param(*values, id=variable))
    assert len(found) > 30
    return list(found.values())


@pytest.mark.parametrize(("command", "variable", "name", "metavar"), _cases())
def test_every_variable_is_read_and_a_bad_value_names_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: list[str], variable: str, name: str, metavar: str | None
) -> None:
    """A good value arrives as its type; a bad one is a usage error that names the variable and not the option."""
    good, value, bad = VALUES[metavar]
    monkeypatch.setenv(variable, good)
    read = getattr(build_parser().parse_args(command), name)
    if isinstance(read, list) and not isinstance(value, list):  # an option that may be repeated
        (read,) = read
    assert read == value if value is not None else read is not None
    assert type(read) is type(value) or value is None or name in ("app", "db", "config")
    if bad is None:
        return

    monkeypatch.setenv(variable, bad)
    answer = cli(*command)

    assert (answer.code, answer.out) == (2, "")
    assert f"error: {variable}: " in answer.err


def test_bad_app_from_the_environment_names_the_variable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found wrong later names the variable, too."""
    monkeypatch.setenv("JOBQ_APP", "shop")

    answer = cli("stats")

    assert answer.code == 2
    assert answer.err.startswith("error: JOBQ_APP shop: MODULE:ATTR is needed")


def test_bad_variable_harms_only_commands_that_use_it(
    cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command, and a command line that names the option itself, go on."""
    monkeypatch.setenv("JOBQ_WORK_BURST", "maybe")
    monkeypatch.setenv("JOBQ_JOB_LIST_LIMIT", "x")

    assert cli("stats", "--db", jobs.path).code == 0
    assert cli("job", "list", "--limit", 1, "--db", jobs.path).code == 0


def test_empty_variable_is_not_set(cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shell or a service manager left empty means nothing."""
    for variable in ("JOBQ_APP", "JOBQ_JSON", "JOBQ_JOB_LIST_LIMIT", "JOBQ_JOB_LIST_STATE"):
        monkeypatch.setenv(variable, "")

    assert cli("job", "list", "--db", jobs.path).code == 0


def test_repeated_option_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line replaces what the variable says and does not add to it; the help names the separator."""
    monkeypatch.setenv("JOBQ_WORK_WORKERS", "mail=2")

    arguments = build_parser().parse_args(["work", "--workers", "a=1", "--workers", "b=2"])

    assert arguments.workers == [("a", 1), ("b", 2)]


def test_help_explains_separator_durations_and_exit_codes(cli: Cli) -> None:
    """The help of a command says how a list is written in a variable, what a TIME is, and each exit code."""
    text = " ".join(cli("work", "--help").out.split())

    assert "[JOBQ_WORK_WORKERS, separated by commas]" in text
    assert "d, h, m, s and ms" in text
    assert "130 interrupted" in text
