"""Configuration from a file, from variables and from KEY=VALUE texts."""

from pathlib import Path

import attrs
import pytest

from jobq import Config, ConfigError, ConfigFileError, QueueConfig, configsources
from jobq.configfile import load
from jobq.settings import Settings, setting, settings_of
from jobq.tomltext import MOST_BYTES, line_of

WHOLE = """
[jobs]
lease = "90s"
max_attempts = 7
backoff_base = 1
backoff_max = "10m"
backoff_jitter = 0.5
kind_limits = { mail = 2 }
grace = 10
payload_max_bytes = 1000
result_max_bytes = 2000
durability = "full"
busy_timeout = "1s"
poll = "20ms"
hand = 1

[queues.mail]
workers = 3
hidden = true
kinds = ["mail", "fax"]

[queues.slow]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a configuration that nobody has written yet."""
    return tmp_path / "jobq.toml"


def mistake(file: Path, text: str | bytes) -> ConfigFileError:
    """Return what is wrong with a file of this text."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigFileError) as caught:
        Config.from_toml(file)
    assert caught.value.path == str(file)
    return caught.value


def test_file_says_what_keywords_say(file: Path) -> None:
    """Every key of [jobs] and a queue with and without settings."""
    file.write_text(WHOLE)

    assert Config.from_toml(file) == Config(
        lease=90, max_attempts=7, backoff_base=1, backoff_max=600, backoff_jitter=0.5, kind_limits={"mail": 2},
        grace=10, payload_max_bytes=1000, result_max_bytes=2000, durability="full", busy_timeout=1, poll=0.02, hand=1,
        queues={"mail": QueueConfig(workers=3, hidden=True, kinds=["mail", "fax"]), "slow": QueueConfig()},
    )  # fmt: skip


def test_empty_file_is_the_default(file: Path) -> None:
    """As is one with a byte order mark and the line ends of Windows."""
    file.write_bytes("\ufeff# nothing\r\n[jobs]\r\n".encode())

    assert Config.from_toml(file) == Config()


@pytest.mark.parametrize(
    ("text", "line", "problem", "fix"),
    [
        pytest.param("[jobs]\nlaese = 5", 2, "laese: [jobs] has no such key", "Did you mean lease?", id="key"),
        pytest.param("\n[job]\nlease = 5", 2, "job: there is no such section", "Did you mean jobs?", id="section"),
        pytest.param("lease = 5", 1, "lease: it stands outside of any section", "Move it below [jobs].", id="outside"),
        pytest.param("jobs = 5", 1, "jobs: a section is needed", "Write [jobs]", id="no section"),
        pytest.param("[jobs]\nzzz = 5", 2, "zzz: [jobs] has no such key", "Known: backoff_base,", id="far key"),
        pytest.param("[queues.mail]\nworker = 1", 2, "worker: [queues.mail] has no such", "workers?", id="queue key"),
        pytest.param("[queues]\nworkers = 1", 2, "queues.workers: a section by name", "[queues.<name>]", id="no name"),
        pytest.param("[queues.Mail]\nworkers = 1", 1, "queues: a queue's name is a lower", "", id="queue name"),
        pytest.param('[jobs]\ndurability = "ful"', 2, "durability: one of full,", "Did you mean full?", id="word"),
        pytest.param("[jobs]\nlease = true", 2, "lease: a duration cannot be a bool", '"90s"', id="type"),
        pytest.param("[jobs]\nhand = 0", 2, "hand: a whole number from 1 to 1,000 is needed", "", id="range"),
        pytest.param("[jobs]\nlease = 1979-05-27", 2, "lease: a duration cannot be a date", '"90s"', id="date"),
        pytest.param("[jobs.kind_limits]\nmail = 0", 2, "kind_limits['mail']: a whole number", "", id="cap"),
        pytest.param("[jobs.retention]\nfailed = 1\nfialed = 1", 3, "retention: there is no", "failed?", id="in"),
        pytest.param("[jobs]\nlease = { a = 1, b = 2 }", 2, "lease: a duration cannot be a dict", '"90s"', id="table"),
    ],
)
def test_mistake_names_its_line_and_what_is_known(file: Path, text: str, line: int, problem: str, fix: str) -> None:
    """Unknown words come with the nearest known one, bad values with what is expected."""
    found = mistake(file, text)

    assert found.line == line
    assert found.problem.startswith(problem)
    assert f", line {line}: {problem}" in str(found)
    assert fix in str(found.fix)


def test_line_is_that_of_the_definition() -> None:
    """Not of a comment, of another section's key, or of a text of several lines that mentions it."""
    text = '# lease\n[queues.lease]\n[log]\nnote = """\nlease = 3\n"""\nlease = 1\n\n'
    text += "[jobs]\nhand = 3 # lease\nlease = 4\n# lease"

    assert line_of(text, ("jobs", "lease")) == 11
    assert line_of(text, ("log", "lease")) == 7
    assert line_of(text, ("queues", "lease")) == 2
    assert line_of('[jobs]\n"le\\u0061se" = 1', ("jobs", "lease")) is None


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        pytest.param("[jobs]\nlease = = 2", 2, 9, "Invalid value", id="syntax"),
        pytest.param("[jobs]\nlease = [1,\n", 2, None, "", id="end of document"),
        pytest.param("[jobs]\nlease = 1\nlease = 2\n", 3, 10, "Cannot overwrite a value", id="twice"),
        pytest.param(b"[jobs]\nlease = '\xff'", 2, None, "it is not UTF-8 text", id="encoding"),
        pytest.param("a = " + "[" * 30_000, None, None, "it is nested too deeply", id="deep list"),
        pytest.param("\na" + ".a" * 30_000 + " = 1", 2, None, "it has over 100 dots", id="deep key"),
        pytest.param("#" * (MOST_BYTES + 1), None, None, "it has over 65,536 bytes", id="huge"),
    ],
)
def test_broken_file_is_refused_where_it_breaks(
    file: Path, text: str | bytes, line: int | None, column: int | None, problem: str
) -> None:
    """With line and column where there are some; a bomb costs nothing."""
    found = mistake(file, text)

    assert (found.line, found.column) == (line, column)
    assert found.problem.startswith(problem)
    assert found.fix


def test_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path) -> None:
    """A missing one, a directory, and a path that is none."""
    for path, problem in ((tmp_path / "no.toml", "No such file"), (tmp_path, "Is a directory"), ("a\0b", "null byte")):
        with pytest.raises(ConfigFileError) as caught:
            Config.from_toml(path)
        assert problem in str(caught.value)


def test_every_mistake_is_found(file: Path) -> None:
    """Not only the first; the first one tells how many follow."""
    file.write_text("[jobs]\nlaese = 1\nhand = 0\n[queue.mail]\n")

    assert [one.line for one in load(Config, path=file).mistakes if isinstance(one, ConfigFileError)] == [2, 3, 4]
    file.write_text("[jobs]\nlease = { a = 1, b = 2 }\n[jobs.kind_limits]\nfax = 0\nmail = 1\nnote = 'x'\n")
    assert [one.line for one in load(Config, path=file).mistakes if isinstance(one, ConfigFileError)] == [2, 4, 6]
    file.write_text("[jobs]\nlaese = 1\nhand = 0\n[queue.mail]\n")
    with pytest.raises(ConfigFileError) as caught:
        Config.from_toml(file)
    assert "There are 2 more mistakes; `jobq config check` lists them." in caught.value.__notes__


def test_later_sources_win_setting_by_setting(file: Path) -> None:
    """A text over a variable over the file over the default; each setting says who set it."""
    file.write_text("[jobs]\nlease = 1\nhand = 2\npoll = 1\n[queues.mail]\nworkers = 1\n[queues.a]\nworkers = 5\n")
    environ = {"JOBQ_JOBS_LEASE": "20s", "JOBQ_JOBS_HAND": "3", "JOBQ_QUEUES_MAIL_WORKERS": "2", "JOBQ_JOBS_GRACE": ""}

    loaded = load(Config, path=file, environ=environ, texts=["jobs.lease=30s", "queues.mail.workers=3"])

    config = loaded.value()
    assert (config.lease, config.hand, config.poll, config.grace) == (30, 3, 1, 30)
    assert config.queues == {"mail": QueueConfig(workers=3), "a": QueueConfig(workers=5)}
    assert loaded.sources[("jobs", "lease")] == "--set jobs.lease"
    assert loaded.sources[("jobs", "hand")] == "JOBQ_JOBS_HAND"
    assert loaded.sources[("jobs", "poll")] == "file"
    assert ("jobs", "grace") not in loaded.sources


def test_variables_are_read_only_when_they_are_given(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library looks at no environment by itself."""
    file.write_text("")
    monkeypatch.setenv("JOBQ_JOBS_HAND", "7")

    assert Config.from_toml(file).hand == 32
    assert Config.from_toml(file, environ={"JOBQ_JOBS_HAND": "8"}).hand == 8


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90.0), ('"90s"', 90.0), ("1.5", 1.5), ("1979", 1979.0)],
)
def test_text_is_read_as_in_a_file_and_needs_no_quotes(text: str, value: float) -> None:
    """Numbers stay numbers, words need no quotes."""
    assert load(Config, texts=[f"jobs.lease={text}"]).value().lease == value


def test_text_may_be_an_inline_table_and_cannot_smuggle_a_second_key() -> None:
    """One text sets one setting."""
    assert load(Config, texts=["jobs.kind_limits={ mail = 2 }"]).value().kind_limits == {"mail": 2}
    (found,) = load(Config, texts=["jobs.lease=1\nb = 2"]).mistakes
    assert str(found).startswith("--set jobs.lease: ")


@pytest.mark.parametrize(
    ("environ", "texts", "problem"),
    [
        ({"JOBQ_JOBS_LAESE": "1"}, [], "JOBQ_JOBS_LAESE: no setting has this variable"),
        ({"JOBQ_QUEUES_MAIL_WORKER": "1"}, [], "JOBQ_QUEUES_MAIL_WORKER: no setting has this variable"),
        ({"JOBQ_QUEUES__WORKERS": "1"}, [], "JOBQ_QUEUES__WORKERS: no setting has this variable"),
        ({"JOBQ_JOBS_HAND": "0"}, [], "JOBQ_JOBS_HAND: hand: a whole number"),
        ({}, ["hand=3"], "--set 'hand=3' is not SECTION.KEY=VALUE"),
        ({}, ["jobs.hand"], "--set 'jobs.hand' is not SECTION.KEY=VALUE"),
        ({}, ["a.b.c.d=1"], "--set 'a.b.c.d' has more than three names"),
        ({}, ["jobs.kind_limits.mail=1"], "--set jobs.kind_limits.mail: jobs.kind_limits: it takes one value"),
        ({}, ["jobs.hnad=1"], "--set jobs.hnad: hnad: [jobs] has no such key"),
    ],
)
def test_mistake_outside_of_a_file_names_its_source(environ: dict[str, str], texts: list[str], problem: str) -> None:
    """The variable or the text."""
    (found,) = load(Config, environ=environ, texts=texts).mistakes

    assert str(found).startswith(problem)
    assert type(found) is ConfigError
    assert found.fix


def test_variables_of_the_command_line_are_none_of_ours() -> None:
    """Options of commands share the prefix."""
    environ = {"JOBQ_DB": "a.db", "JOBQ_JOB_LIST_LIMIT": "3", "JOBQ_WORK_GRACE": "1", "JOBQ": "x", "JOBQ_": "x"}

    assert load(Config, environ=environ).mistakes == ()


@attrs.frozen(kw_only=True)
class _Own(Settings):
    file: str = attrs.field(default="", converter=str, metadata=setting("where", section="log", key="events_file"))
    size: int = attrs.field(default=1, metadata=setting("how large", section="log"))


def test_new_field_is_read_by_its_metadata_alone(file: Path) -> None:
    """A key may have another name than its field, and a field no converter."""
    file.write_text('[log]\nevents_file = "a.log"\nsize = 3\n')

    assert load(_Own, path=file).value() == _Own(file="a.log", size=3)
    assert load(_Own, texts=["log.events_file="]).value().file == ""
    assert load(_Own, texts=["log.events_file=2024-01-01"]).value().file == "2024-01-01"
    (found,) = load(_Own, texts=["log.event_file=x"]).mistakes
    assert found.fix == "Did you mean events_file?"


def test_every_field_says_what_it_means_and_where_it_stands() -> None:
    """Else it could not be read from a file; no two are the same key or variable."""
    for kind in (Config, QueueConfig):
        settings = settings_of(kind)
        assert list(settings) == [field.name for field in attrs.fields(kind)]
        assert all(one.meaning and one.field.converter for one in settings.values())
        assert len({(one.section, one.key) for one in settings.values()}) == len(settings)
        assert len({one.variable for one in settings.values()}) == len(settings)


def test_shared_sections_are_those_that_commands_are_called_like() -> None:
    """An unknown variable of such a section may be an option's."""
    from jobq.cli.parser import build_parser

    (commands,) = (action.choices for action in build_parser()._actions if hasattr(action.choices, "keys"))
    sections = {one.section for one in settings_of(Config).values()}
    assert sections & set(commands) <= set(configsources.SHARED)
