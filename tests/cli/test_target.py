"""Which job queue a command works on."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import jobq
from tests.cli.conftest import Answer, finish, start

Cli = Callable[..., Answer]

APP = """
import jobq

jobs = jobq.open({path!r})
handlers = jobq.Handlers()


class Held:
    inner = jobs
"""


@pytest.fixture
def app(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A module with a JobQueue and a Handlers, of another name in each test, because imported modules stay."""
    name = f"app_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(APP.format(path=str(tmp_path / "app.db")))
    return name


VERBS = [
    ("job", "list"), ("job", "show", 1), ("job", "cancel", 1), ("job", "requeue", 1), ("job", "wait", 1),
    ("job", "reschedule", 1, "--delay", 0), ("queue", "list"), ("queue", "pause", "default"),
    ("queue", "resume", "default"), ("kind", "list"), ("kind", "retries", "mail"), ("stats",), ("doctor",),
]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("foreign", [True, False])
def test_file_without_a_job_queue_is_not_found_and_stays_as_it_is(
    cli: Cli, tmp_path: Path, verb: tuple[object, ...], foreign: bool
) -> None:
    """Looking into the database of another program, or an empty file, writes nothing into it."""
    target = tmp_path / "other.db"
    target.touch()
    if foreign:
        connection = apsw.Connection(str(target))
        connection.execute("CREATE TABLE theirs (x)")
        connection.close()
    before = target.read_bytes()

    answer = cli(*verb, "--db", "other.db")

    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error: no job queue in other.db\nfix: ")
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]


def test_module_that_makes_its_database_is_told(app: str, tmp_path: Path) -> None:
    """The file of -A is made by the module; that is said once, and not of one that was there."""
    first = finish(start("job", "list", "-A", f"{app}:jobs", cwd=tmp_path))
    second = finish(start("job", "list", "-A", f"{app}:jobs", cwd=tmp_path))

    assert first.code == second.code == 0
    assert f"note: made a new database at {tmp_path}/app.db\n" in first.err
    assert "made" not in second.err


@pytest.mark.parametrize("verb", [("job", "list"), ("stats",), ("queue", "list"), ("kind", "list"), ("doctor",)])
def test_database_that_is_not_there_is_not_found(cli: Cli, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """A misspelt path is not made into an empty database."""
    answer = cli(*verb, "--db", "missing.db")

    assert answer.code == 3
    assert "no database at missing.db" in answer.err
    assert not (tmp_path / "missing.db").exists()


def test_app_names_a_job_queue_of_the_working_directory(cli: Cli, app: str) -> None:
    """-A imports from the directory the command was started in, and follows attributes."""
    assert cli("-A", f"{app}:Held.inner", "job", "enqueue", "mail").code == 0
    assert len(cli("job", "list", "--json", "--db", "app.db").json) == 1


def test_app_of_handlers_needs_a_database(cli: Cli, app: str) -> None:
    """A Handlers has no database of its own."""
    alone = cli("job", "enqueue", "mail", "-A", f"{app}:handlers")

    assert (alone.code, "--db" in alone.err) == (2, True)
    assert cli("job", "enqueue", "mail", "-A", f"{app}:handlers", "--db", "x.db").code == 0


def test_app_with_another_database_is_a_usage_error(cli: Cli, app: str) -> None:
    """A JobQueue has its database; --db may only repeat it."""
    assert cli("job", "list", "-A", f"{app}:jobs", "--db", "x.db").code == 2
    assert cli("job", "enqueue", "mail", "-A", f"{app}:jobs", "--db", "app.db").code == 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        pytest.param("{app}", "MODULE:ATTR", id="no_attribute"),
        pytest.param("{app}:nope", "In {app} these are: handlers, jobs.", id="no_such_attribute"),
        pytest.param("{app}:jobq", "neither a JobQueue nor a Handlers", id="wrong_type"),
        pytest.param("missing_module:jobs", "ModuleNotFoundError", id="no_module"),
        pytest.param("{app}.py:jobs", "Did you mean -A {app}:jobs?", id="file"),
        pytest.param("./{app}:jobs", "Did you mean -A {app}:jobs?", id="path"),
        pytest.param("shop/tasks.py:app.jobs", "Did you mean -A shop.tasks:app.jobs?", id="file_of_a_package"),
        pytest.param("../{app}.py:jobs", "Did you mean -A {app}:jobs, run in /", id="file_elsewhere"),
    ],
)
def test_bad_app_is_a_usage_error(cli: Cli, app: str, target: str, words: str) -> None:
    """What is wrong with -A is said in a sentence."""
    answer = cli("stats", "-A", target.format(app=app))

    assert answer.code == 2
    assert words.format(app=app) in answer.err


@pytest.mark.parametrize("code", ["0", "None", "3", "'no settings'"])
def test_module_that_exits_is_an_error_that_names_it(cli: Cli, tmp_path: Path, code: str) -> None:
    """A module that calls sys.exit while it is imported does not end the command without a word."""
    (tmp_path / f"exits_{abs(hash(code))}.py").write_text(f"import sys\nsys.exit({code})\n")

    answer = cli("stats", "-A", f"exits_{abs(hash(code))}:jobs")

    assert answer.code == 1
    assert answer.err.startswith(f"error: importing exits_{abs(hash(code))} called sys.exit({code})\n")


def test_nothing_named_is_a_usage_error(cli: Cli) -> None:
    """Without -A and --db there is no job queue."""
    assert cli("stats").code == 2


def test_environment_stands_for_options(cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Common and other options are read from their variables; the command line wins."""
    for _ in range(3):
        jobs.enqueue("mail")
    monkeypatch.setenv("JOBQ_DB", jobs.path)
    monkeypatch.setenv("JOBQ_JSON", "yes")
    monkeypatch.setenv("JOBQ_JOB_LIST_LIMIT", "2")

    assert len(cli("job", "list").json) == 2
    assert len(cli("job", "list", "--limit", "1").json) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("JOBQ_JSON", "maybe"), ("JOBQ_JOB_LIST_LIMIT", "x"), ("JOBQ_JOB_LIST_STATE", "x")]
)
def test_bad_environment_is_a_usage_error(
    cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A bad value in the environment is refused like one on the command line."""
    monkeypatch.setenv(name, value)

    assert cli("job", "list", "--db", jobs.path).code == 2


@pytest.mark.parametrize("content", [b"this is not a database, but it is long enough to be looked at" * 20, None])
def test_what_is_no_database_is_an_error_without_traceback(cli: Cli, tmp_path: Path, content: bytes | None) -> None:
    """A text file and a directory are refused and left as they are."""
    target = tmp_path / "other"
    target.write_bytes(content) if content is not None else target.mkdir()

    answer = cli("job", "enqueue", "mail", "--db", target)

    assert answer.code == 1
    assert answer.err.startswith("error: ")
    assert content is None or target.read_bytes() == content
