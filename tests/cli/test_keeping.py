"""``jobq work`` keeps what jobs log, and ``jobq job show`` prints it."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import jobq
from jobq.cli.keeping import kept_lines
from jobq.observe.loglines import LogLines
from tests.cli.conftest import Answer, finish, start

PLAIN = """
import logging
import jobq

handlers = jobq.Handlers()


@handlers.job
def talk(payload, job):
    job.log.info("page.rendered", page=7)
    job.log.debug("page.measured")
    logging.getLogger("shop").warning("low on paper")
"""
STRUCTURED = """
import structlog
import jobq

log = structlog.get_logger("early").bind()
structlog.configure(processors=(structlog.contextvars.merge_contextvars, structlog.processors.JSONRenderer()))
handlers = jobq.Handlers()


@handlers.job
def talk(payload, job):
    job.log.info("page.rendered", page=7)
    structlog.get_logger("shop").warning("low on paper", sheets=2)
"""
STANDARD = """
import logging
import jobq

logging.basicConfig(level=logging.INFO)
handlers = jobq.Handlers()


@handlers.job
def talk(payload, job):
    job.log.info("page.rendered", page=7)
    logging.getLogger("shop").info("low on %s", "paper")
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(PLAIN, [("info", "page.rendered", {"page": 7})], id="nothing configured"),
        pytest.param(
            STRUCTURED,
            [("info", "page.rendered", {"page": 7}), ("warning", "low on paper", {"sheets": 2})],
            id="structlog",
        ),
        pytest.param(
            STANDARD,
            [("info", "page.rendered", {"page": 7}), ("info", "low on paper", {"logger": "shop"})],
            id="standard library",
        ),
    ],
)
def test_work_keeps_the_lines_of_jobs_however_the_program_logs(
    tmp_path: Path, jobs: jobq.JobQueue, program: str, said: list[Any]
) -> None:
    """All of a configured log; else what ``job.log`` says. What the program prints stays as it is."""
    (tmp_path / "shop.py").write_text(program)
    made = jobs.enqueue("talk", {})

    answer = finish(start("work", "-A", "shop:handlers", "--db", jobs.path, "--burst", cwd=tmp_path))

    assert answer.code == 0, answer.err
    assert [(line.level, line.event, line.fields) for line in jobs.log_lines(made.id)] == said
    assert "low on paper" in answer.out + answer.err
    assert ("page.rendered" in answer.out + answer.err) == (program is not PLAIN)


def test_show_prints_the_lines(cli: Callable[..., Answer], jobs: jobq.JobQueue, caplog: Any) -> None:
    """The newest, escaped, with the end of a traceback; a job without lines has no such block."""
    caplog.set_level("INFO", logger="jobq.handler")
    silent = jobs.enqueue("silent").id

    @jobs.job
    def talk(payload: Any, job: jobq.RunningJob) -> None:
        for number in range(3):
            job.log.info("part\x1b[31m", number=number)
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            job.log.exception("broken")

    made = talk.enqueue()
    with kept_lines(jobs):
        jobq.Runner(jobs).drain()

    shown = cli("job", "show", made.id, "--db", jobs.path).out
    few = cli("job", "show", made.id, "--db", jobs.path, "--lines", 2).out
    answer = cli("job", "show", made.id, "--db", jobs.path, "--json").json

    assert "\nlogged\n" in shown
    assert "part\\x1b[31m number=0" in shown
    assert "error  broken exception=ZeroDivisionError: division by zero\n" in shown
    assert "Traceback" not in shown
    assert "\nlogged, the newest 2 lines\n" in few
    assert "number=1" not in few
    assert [line["event"] for line in answer["lines"]] == ["part\x1b[31m"] * 3 + ["broken"]
    assert "logged" not in cli("job", "show", silent, "--db", jobs.path).out


@pytest.fixture
def _plain_structlog() -> Iterator[None]:
    """Leave structlog as it was."""
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("_plain_structlog")
@pytest.mark.parametrize("sequence", [list, tuple])
def test_processors_are_as_before_afterwards(jobs: jobq.JobQueue, sequence: Callable[[Any], Any]) -> None:
    """Whatever they were kept in."""
    before = [structlog.contextvars.merge_contextvars, structlog.processors.JSONRenderer()]
    structlog.configure(processors=sequence(before))

    with kept_lines(jobs):
        inside = list(structlog.get_config()["processors"])

    assert [isinstance(one, LogLines) for one in inside] == [False, True, False]
    assert list(structlog.get_config()["processors"]) == before


@pytest.mark.usefixtures("_plain_structlog")
def test_a_program_that_keeps_lines_itself_is_left_alone(jobs: jobq.JobQueue) -> None:
    """No line is kept twice."""
    processors = [LogLines(jobs), structlog.processors.JSONRenderer()]
    structlog.configure(processors=processors)

    with kept_lines(jobs):
        assert len(structlog.get_config()["processors"]) == 2


@pytest.mark.parametrize("configured", [True, False], ids=["configured", "unconfigured"])
def test_loggers_are_as_before_afterwards(
    jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch, configured: bool
) -> None:
    """Handlers and level."""
    if not configured:
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
    loggers = [logging.getLogger(name) for name in (None, "jobq", "jobq.handler")]
    before = [(list(one.handlers), one.level) for one in loggers]
    with kept_lines(jobs):
        assert [(list(one.handlers), one.level) for one in loggers] != before
    assert [(list(one.handlers), one.level) for one in loggers] == before
