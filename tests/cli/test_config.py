"""``jobq config check``, ``--config``, ``--set`` and the settings' variables."""

from collections.abc import Callable
from pathlib import Path

import pytest

import jobq
from jobq.cli.parser import build_parser
from jobq.cli.target import open_target
from jobq.settings import settings_of
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration."""
    path = tmp_path / "jobq.toml"
    path.write_text('[jobs]\nlease = "90s"\nhand = 2\n[queues.mail]\nworkers = 3\n')
    return path


def test_check_prints_what_is_in_effect_and_who_set_it(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each setting and for those of each queue."""
    monkeypatch.setenv("JOBQ_JOBS_HAND", "5")
    monkeypatch.setenv("JOBQ_JOBS_RETENTION", '{ cancelled = "keep" }')

    answer = cli("--set", "jobs.poll=1s", "config", "check", file, "--set", "queues.mail.workers=4")

    rows = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert answer.code == 0
    assert rows[0] == "setting value set by"
    assert "jobs.lease 90 s file" in rows
    assert "jobs.hand 5 JOBQ_JOBS_HAND" in rows
    assert "jobs.poll 1 s --set jobs.poll" in rows
    assert "jobs.grace 30 s default" in rows
    assert "jobs.retention succeeded 7d, failed 30d, cancelled keep, changes 90d JOBQ_JOBS_RETENTION" in rows
    assert "queues.mail.workers 4 --set queues.mail.workers" in rows


def test_check_as_json(cli: Cli, file: Path) -> None:
    """The same as one document; values are JSON."""
    answer = cli("config", "check", file, "--json")

    assert answer.json["ok"] is True
    assert answer.json["settings"]["jobs.lease"] == 90
    assert answer.json["sources"]["queues.mail.workers"] == "file"


def test_check_names_every_mistake_and_fails(cli: Cli, file: Path) -> None:
    """On standard output, because they are what was asked for; control characters are escaped."""
    file.write_text('[jobs]\nlaese = 1\nhand = 0\n"\\u001b[31m" = 1\n')

    answer = cli("config", "check", "jobq.toml")

    lines = answer.out.splitlines()
    assert answer.code == 1
    assert lines[0] == "jobq.toml, line 2: laese: [jobs] has no such key. Did you mean lease?"
    assert lines[1].startswith("jobq.toml, line 3: hand: a whole number from 1 to 1,000 is needed")
    assert lines[2].startswith("jobq.toml: \\x1b[31m: [jobs] has no such key")
    assert answer.err == "3 mistakes\n"


def test_check_names_mistakes_as_json(cli: Cli, file: Path) -> None:
    """With the line, and the column where the file is malformed."""
    file.write_text("[jobs]\nlease = =")

    answer = cli("config", "check", "--json", "--config", file)

    assert answer.code == 1
    assert answer.json["ok"] is False
    assert [(one["line"], one["column"]) for one in answer.json["mistakes"]] == [(2, 9)]


def test_missing_file_is_not_found(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by whatever named it."""
    assert (cli("config", "check", "no.toml").code, cli("stats", "--db", "a.db", "--config", "no.toml").code) == (3, 3)
    monkeypatch.setenv("JOBQ_CONFIG", "no.toml")
    assert cli("config", "check").err.startswith("error: JOBQ_CONFIG: no file at no.toml\nfix: ")


def test_help_lists_every_setting_with_its_variable_and_the_order(cli: Cli) -> None:
    """What can be configured is found without the README."""
    text = " ".join(cli("config", "check", "--help").out.split())

    assert "--set SECTION.KEY=VALUE wins over the setting's variable, that over the file, that over the default" in text
    for one in settings_of(jobq.Config).values():
        assert one.meaning in text or one.table
        assert one.variable in text or one.table
    assert "[queues.<name>] workers [JOBQ_QUEUES_<NAME>_WORKERS]" in text
    assert "event_ring_size" not in text.partition("[api]")[0]
    assert "[JOBQ_JOBS_" not in text.partition("[queues.<name>]")[2]
    assert "what --set says, else its variable, else the --config file, else the default" in " ".join(
        cli("work", "--help").out.split()
    )


def test_command_works_with_what_is_configured(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the command opens itself."""
    monkeypatch.setenv("JOBQ_JOBS_GRACE", "7")
    arguments = build_parser().parse_args(
        ["--set", "jobs.hand=9", "stats", "--db", "a.db", "--config", str(file), "--set", "jobs.durability=full"]
    )

    with open_target(arguments, create=True) as jobs:
        config = jobs.config

    assert (config.lease, config.hand, config.grace, config.durability) == (90, 9, 7, "full")
    assert config.queues == {"mail": jobq.QueueConfig(workers=3)}


def test_mistake_ends_a_command_as_usage(cli: Cli, file: Path, jobs: jobq.JobQueue) -> None:
    """Before anything is done."""
    file.write_text("[jobs]\nhnad = 1\n")

    answer = cli("job", "enqueue", "mail", "--db", jobs.path, "--config", "jobq.toml")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: jobq.toml, line 2: hnad: [jobs] has no such key\nfix: Did you mean hand?")
    assert jobs.find() == []


def test_program_with_a_configuration_of_its_own_refuses_another(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--config and --set would be ignored; JOBQ_CONFIG is passed over and that is said."""
    (tmp_path / "own_config.py").write_text("import jobq\njobs = jobq.open('own.db')\njobs.counts()\n")

    refused = cli("stats", "-A", "own_config:jobs", "--set", "jobs.hand=1")
    assert refused.code == 2
    assert "error: own_config:jobs has its own configuration\nfix: " in refused.err

    monkeypatch.setenv("JOBQ_CONFIG", "any.toml")
    passed = cli("stats", "-A", "own_config:jobs")
    assert passed.code == 0
    assert "JOBQ_CONFIG is not read" in passed.err
