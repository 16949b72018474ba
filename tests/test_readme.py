"""README.rst is valid, complete, and its examples run."""

import argparse
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from zoneinfo import ZoneInfo

import attrs
import docutils.nodes
import pytest

import jobq
from jobq.cli.exits import Exit
from jobq.cli.parser import build_parser
from jobq.declaring import ScheduleOptions
from jobq.handler import HandlerOptions
from jobq.model.duration import to_seconds
from jobq.newjob import EnqueueOptions
from jobq.observe.prometheus import JobqCollector
from jobq.settings import Setting, settings_of
from tests.readme import TEXT, parsed

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def document() -> docutils.nodes.document:
    """The parsed README."""
    return parsed()


def _blocks(document: docutils.nodes.document, language: str) -> Iterator[docutils.nodes.literal_block]:
    for block in document.findall(docutils.nodes.literal_block):
        if language in block["classes"]:
            yield block


def _first_column(document: docutils.nodes.document, name: str) -> list[str]:
    """Return the cells of the first column of the table with this class, without its heading."""
    (table,) = (table for table in document.findall(docutils.nodes.table) if name in table["classes"])
    (body,) = table.findall(docutils.nodes.tbody)
    return [row[0].astext() for row in body.findall(docutils.nodes.row)]


def _cells(document: docutils.nodes.document, name: str) -> set[str]:
    return {word for cell in _first_column(document, name) for word in cell.split(", ")}


def test_readme_is_valid(document: docutils.nodes.document) -> None:
    """Docutils finds nothing to warn of."""
    assert document.findall(docutils.nodes.section)


def test_quickstart_runs(document: docutils.nodes.document, tmp_path: Path, shell: dict[str, str]) -> None:
    """Every block of the quickstart runs, in order, in an empty directory; one that is meant to fail does."""
    (section,) = (one for one in document.findall(docutils.nodes.section) if "quickstart" in one["ids"])
    blocks = list(section.findall(docutils.nodes.literal_block))
    assert len(blocks) >= 5
    for number, block in enumerate(blocks):
        if "sh" in block["classes"]:
            done = _run(["bash", "-euc", block.astext()], tmp_path, shell)
        else:
            name = block["names"][0] if block["names"] else f"block{number}.py"
            (tmp_path / name).write_text(block.astext())
            # Modules that are only imported are compiled by those that import them.
            done = _run([sys.executable, name], tmp_path, shell)
        assert (done.returncode != 0) == ("fails" in block["classes"]), done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "heading",
    [
        *("workers-outside", "transactions", "schedules", "events", "pruning", "lines-of-jobs", "metrics-and-traces"),
        "wsgi",
    ],
)
def test_other_examples_run(
    document: docutils.nodes.document, tmp_path: Path, shell: dict[str, str], heading: str
) -> None:
    """Each other Python block stands on its own."""
    (section,) = (one for one in document.findall(docutils.nodes.section) if heading in one["ids"])
    blocks = _blocks(section, "python")  # type: ignore[arg-type]
    examples = [one.astext() for one in blocks if "sketch" not in one["classes"]]
    assert examples
    for example in examples:
        (tmp_path / "shop.py").write_text(example)

        done = _run([sys.executable, "-Werror", "shop.py"], tmp_path, shell)

        assert done.returncode == 0, done.stderr


def test_wsgi_recipe_answers(document: docutils.nodes.document, tmp_path: Path, shell: dict[str, str]) -> None:
    """A POST enqueues, a worker runs it, and a GET tells the state."""
    (block,) = (one for one in _blocks(document, "python") if "shop.py" in one["names"])
    (tmp_path / "shop.py").write_text(block.astext())
    ask = "import sys, shop; print(shop.application({'REQUEST_METHOD': sys.argv[1], 'PATH_INFO': '/1'}, print))"

    posted = _run([sys.executable, "-c", ask, "POST"], tmp_path, shell)
    worked = _run(["jobq", "work", "-A", "shop:jobs", "--burst"], tmp_path, shell)
    asked = _run([sys.executable, "-c", ask, "GET"], tmp_path, shell)

    assert '{"job": 1}' in posted.stdout, posted.stderr
    assert "receipt for order 7" in worked.stdout, worked.stderr
    assert '"succeeded"' in asked.stdout, asked.stderr


def test_testing_example_passes(document: docutils.nodes.document, tmp_path: Path, shell: dict[str, str]) -> None:
    """The example test passes under pytest with the plugin."""
    (block,) = (one for one in _blocks(document, "python") if "test_retries.py" in one["names"])
    (tmp_path / "test_retries.py").write_text(block.astext())
    installed = any(point.value == "jobq.pytest_plugin" for point in metadata.entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "jobq.pytest_plugin"]

    done = _run([sys.executable, "-m", "pytest", "-q", *plugin, "test_retries.py"], tmp_path, shell)

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_recipe_for_testing_an_application_passes(
    document: docutils.nodes.document, tmp_path: Path, shell: dict[str, str]
) -> None:
    """The module that opens nothing, and the tests of it, pass as they are printed."""
    for block in _blocks(document, "python"):
        if set(block["names"]) & {"letters.py", "test_letters.py"}:
            (tmp_path / block["names"][0]).write_text(block.astext())
    installed = any(point.value == "jobq.pytest_plugin" for point in metadata.entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "jobq.pytest_plugin"]

    done = _run([sys.executable, "-m", "pytest", "-q", *plugin, "test_letters.py"], tmp_path, shell)

    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_sketches_compile(document: docutils.nodes.document) -> None:
    """A block that needs a screen is at least Python."""
    for block in _blocks(document, "python"):
        compile(block.astext(), "README.rst", "exec")


def test_two_commands_are_there() -> None:
    """The commands for a fresh machine stand in the README as they are tested, and in .ci/run."""
    assert "python3 -m venv .venv && .venv/bin/pip install -q '.[cli]' && .venv/bin/jobq demo\n" in TEXT
    assert "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest\n" in TEXT


def test_every_command_and_option_is_listed(document: docutils.nodes.document) -> None:
    """The table of commands names each verb of the parser and each of its options."""
    (table,) = (table for table in document.findall(docutils.nodes.table) if "commands" in table["classes"])
    rows = {row[0].astext(): row[1].astext() for row in next(table.findall(docutils.nodes.tbody))}
    for path, parser in _verbs(build_parser(), "jobq"):
        (listed,) = (does for command, does in rows.items() if command == path or command.startswith(f"{path} "))
        named = set(re.findall(r"--[a-z-]+", listed))
        assert named == _options(parser), path
    assert len(rows) == len(list(_verbs(build_parser(), "jobq")))


def _rows(document: docutils.nodes.document, name: str) -> list[list[str]]:
    """Return the cells of the table with this class, without its heading."""
    (table,) = (table for table in document.findall(docutils.nodes.table) if name in table["classes"])
    (body,) = table.findall(docutils.nodes.tbody)
    return [[cell.astext() for cell in row] for row in body.findall(docutils.nodes.row)]


def _shown_default(setting: Setting) -> object:
    """Return a default as the tables write it, or as what their text is read as."""
    default = setting.field.default
    return {} if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def _read_default(text: str, setting: Setting) -> object:
    if setting.unit == "s":
        return to_seconds(text.replace(" ", ""), argument=setting.name)
    if setting.unit == "bytes":
        number, unit = text.split()
        return int(number) * {"KiB": 2**10, "MiB": 2**20}[unit]
    return text


def test_every_setting_is_listed(document: docutils.nodes.document) -> None:
    """The table names each field of Config with its section and its default."""
    rows = _rows(document, "config")
    settings = settings_of(jobq.Config)
    assert [(name, section) for name, section, *_ in rows] == [
        (one.key if one.key == name else f"{name} ({one.key})", f"[{one.section}]") for name, one in settings.items()
    ]
    for (_, _, default, _), one in zip(rows, settings.values(), strict=True):
        read, wanted = _read_default(default, one), _shown_default(one)
        assert read == (wanted if isinstance(read, int | float) else str(wanted)), one.name


def test_every_setting_of_a_queue_is_listed(document: docutils.nodes.document) -> None:
    """The table names each field of QueueConfig with its default."""
    found = [(name, default) for name, default, _ in _rows(document, "queue-config")]
    assert found == [(one.key, str(_shown_default(one))) for one in settings_of(jobq.QueueConfig).values()]


def test_every_metric_is_listed(document: docutils.nodes.document, jobs: jobq.JobQueue) -> None:
    """The table names each one that a scrape yields, with its labels."""
    collector = JobqCollector(jobs)
    jobs.job(name="a")(lambda payload: None)
    jobs.enqueue("a")
    jobq.Runner(jobs).drain()
    found = {
        family.name: {label for sample in family.samples for label in sample.labels} - {"le"}
        for family in collector.collect()
    }
    collector.close()

    listed = {name: {one for one in labels.split(", ") if one} for name, labels, _ in _rows(document, "metrics")}
    assert {name.removesuffix("_total"): labels for name, labels in listed.items()} == found


def test_example_of_a_configuration_file_is_valid(document: docutils.nodes.document, tmp_path: Path) -> None:
    """It is read as it is printed."""
    (block,) = (one for one in document.findall(docutils.nodes.literal_block) if "jobq.toml" in one["names"])
    (tmp_path / "jobq.toml").write_text(block.astext())

    config = jobq.Config.from_toml(tmp_path / "jobq.toml")

    assert (config.lease, config.queues["mail"].workers) == (120, 4)


def test_every_check_of_the_doctor_is_listed(document: docutils.nodes.document, jobs: jobq.JobQueue) -> None:
    """Each that there is; one more stands for what cannot be read."""
    listed = [word for cell in _first_column(document, "checks") for word in cell.split(", ")]

    assert sorted(listed) == sorted([*(finding.check for finding in jobs.doctor(deep=True)), "reading"])


def test_every_option_of_the_decorator_is_listed(document: docutils.nodes.document) -> None:
    """The table names each keyword of the job decorator."""
    assert _cells(document, "job-options") == set(HandlerOptions.__annotations__)


def test_every_option_of_enqueue_is_listed(document: docutils.nodes.document) -> None:
    """The table names each keyword of enqueue."""
    assert _cells(document, "enqueue-options") == set(EnqueueOptions.__annotations__)


def test_every_option_of_an_outbox_is_listed(document: docutils.nodes.document) -> None:
    """The table names each argument of Outbox."""
    assert _cells(document, "outbox-options") == set(inspect.signature(jobq.Outbox).parameters)


def test_every_option_of_a_schedule_is_listed(document: docutils.nodes.document) -> None:
    """The table names each keyword of schedules.add and handlers.schedule."""
    assert _cells(document, "schedule-options") == set(ScheduleOptions.__annotations__)


def _local(expression: str, start: datetime, count: int) -> list[str]:
    """Return the next runs of an expression in Berlin, as its clocks show them with the offset's hour."""
    cron, found = jobq.Cron(expression, tz="Europe/Berlin"), [start]
    while len(found) <= count:
        found.append(cron.next_after(found[-1]))
    return [f"{when.astimezone(ZoneInfo('Europe/Berlin')):%H:%M%z}"[:8] for when in found[1:]]


@pytest.mark.parametrize(
    ("expression", "skipped", "repeated"),
    [
        pytest.param("30 2 * * *", ["03:00+02", "02:30+02"], ["02:30+02", "02:30+01"], id="fixed"),
        pytest.param("0,30 2 * * *", ["03:00+02", "02:00+02"], ["02:00+02", "02:30+02", "02:00+01"], id="several"),
        pytest.param(
            "*/30 * * * *",
            ["01:00+01", "01:30+01", "03:00+02"],
            ["01:00+02", "01:30+02", "02:00+02", "02:30+02", "02:00+01", "02:30+01", "03:00+01"],
            id="elapsed",
        ),
    ],
)
def test_b40_the_table_of_clock_changes_is_true(
    document: docutils.nodes.document, expression: str, skipped: list[str], repeated: list[str]
) -> None:
    """Each row of it, on the nights of 31 March and 27 October 2024 in Berlin."""
    assert any(f"``{expression}``" in TEXT and expression in cell for cell in _first_column(document, "dst"))
    assert _local(expression, datetime(2024, 3, 30, 23, 45, tzinfo=UTC), len(skipped)) == skipped
    assert _local(expression, datetime(2024, 10, 26, 22, 45, tzinfo=UTC), len(repeated)) == repeated
def test_every_attribute_of_a_running_job_is_listed(document: docutils.nodes.document) -> None:
    """The table names each public attribute and method."""
    public = {name for name in dir(jobq.RunningJob) if not name.startswith("_")}
    assert {name.removesuffix("(...)") for name in _cells(document, "running-job")} == public


def test_every_failure_reason_of_its_own_is_listed(document: docutils.nodes.document) -> None:
    """The table names each code that a literal of the package gives as the reason of an end, and no other."""
    source = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "jobq").rglob("*.py")))
    places = r'(?:\breason=|unrecoverable\(error, |moment, error, |return (?=\S+ None$))"([a-z_]+)"'
    given = re.findall(places, source, re.MULTILINE)
    assert set(_first_column(document, "failure-reasons")) == set(given)


def test_every_reason_of_an_explanation_is_listed(document: docutils.nodes.document) -> None:
    """The table names each code, in the order of importance."""
    assert _first_column(document, "explanations") == list(jobq.ReasonCode)


def test_every_exit_code_is_listed(document: docutils.nodes.document) -> None:
    """The table names each exit code."""
    assert _first_column(document, "exit-codes") == [str(code.value) for code in Exit]


def test_retry_table_is_what_the_policy_says(document: docutils.nodes.document) -> None:
    """The table of default delays is the default policy's schedule."""
    delays = jobq.RetryPolicy().schedule(5)

    assert _first_column(document, "retries") == [str(n) for n in range(1, len(delays) + 1)]
    assert all(f"     - {delay:g}s\n" in TEXT for delay in delays)


def _verbs(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield path, parser
    for group in groups:
        for name, child in group.choices.items():
            yield from _verbs(child, f"{path} {name}")


def _options(parser: argparse.ArgumentParser) -> set[str]:
    common = {"--help", "--app", "--db", "--config", "--set", "--json"}
    return {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")} - common


def _run(command: list[str], cwd: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which ``jobq`` and ``python`` are this Python's, whether or not the package is installed."""
    programs = tmp_path_factory.mktemp("bin")
    for name, call in (("jobq", "-m jobq"), ("python", "")):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JOBQ_")}
    return {**kept, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
