"""The lines that jobs log are kept with the job: those, and no others."""

import contextvars
import json
import logging
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import jobq
from jobq import lines
from jobq.observe.loglines import LogLines
from jobq.testing import FakeClock

PATIENCE = 20.0
#: Jobs stay, so that what becomes of their lines can be seen.
FOREVER = {"succeeded": None}


class Silent:
    """A logger that prints nothing."""

    def msg(self, *arguments: object, **fields: object) -> None:
        """Print nothing."""

    debug = info = warning = error = critical = msg


@pytest.fixture
def configure() -> Iterator[Callable[[jobq.JobQueue], LogLines]]:
    """Configures structlog as a host does that keeps the lines of its jobs."""

    def with_lines(jobs: jobq.JobQueue) -> LogLines:
        keeper = LogLines(jobs)
        structlog.configure(
            processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, keeper,
                        structlog.processors.KeyValueRenderer()],
            logger_factory=lambda *names: Silent(),
        )  # fmt: skip
        return keeper

    yield with_lines
    structlog.reset_defaults()


@pytest.fixture
def keeper(jobs: jobq.JobQueue, configure: Callable[[jobq.JobQueue], LogLines]) -> LogLines:
    """A configured structlog that keeps the lines of the job queue."""
    return configure(jobs)


def run(jobs: jobq.JobQueue, handler: Callable[[jobq.RunningJob], object], **options: Any) -> int:
    """Run one job whose handler is given its run, and return its id."""

    @jobs.job(name="talk", **options)
    def talk(payload: Any, job: jobq.RunningJob) -> None:
        handler(job)

    made = jobs.enqueue("talk")
    jobq.Runner(jobs).drain()
    assert made.id is not None
    return made.id


def said(jobs: jobq.JobQueue, job_id: int) -> list[str]:
    """Return the events of the lines of a job."""
    return [line.event for line in jobs.log_lines(job_id)]


def test_a_line_is_kept_with_its_job(jobs: jobq.JobQueue, keeper: LogLines, clock: FakeClock) -> None:
    """Time, level, event and fields; what the row of the job says already is left out."""

    def talk(job: jobq.RunningJob) -> None:
        structlog.get_logger("host").warning("found", boxes=[1, 2], where=Path("/tmp"), none=None)
        clock.advance(2)
        job.log.info("done")

    job_id = run(jobs, talk)
    first, second = jobs.log_lines(job_id)

    assert first == jobq.LogLine(
        job_id=job_id, attempt=1, at=second.at.replace(second=0), level="warning", event="found",
        fields={"boxes": [1, 2], "where": "PosixPath('/tmp')", "none": None},
    )  # fmt: skip
    assert (second.level, second.event, second.fields, second.at) == ("info", "done", {}, clock.now())


def test_lines_outside_of_runs_are_not_kept(jobs: jobq.JobQueue, keeper: LogLines) -> None:
    """Those before and after, with whatever ids; the one line about the attempt as well, which the row says."""
    structlog.get_logger("host").info("before", job_id=1, attempt=1)

    job_id = run(jobs, lambda job: job.log.info("inside"))
    structlog.get_logger("host").info("after", job_id=job_id, attempt=1)
    jobq.Runner(jobs).drain()

    assert said(jobs, job_id) == ["inside"]


def test_the_line_is_passed_on_as_it_is(jobs: jobq.JobQueue, keeper: LogLines) -> None:
    """Other processors see what they would see without it."""
    passed = {"event": "x", "level": "info", "exc_info": True, "job_id": 3}
    assert keeper(None, "info", passed) is passed
    assert passed == {"event": "x", "level": "info", "exc_info": True, "job_id": 3}


def test_lines_of_threads_of_the_handler(jobs: jobq.JobQueue, keeper: LogLines) -> None:
    """A thread that copied the context belongs to the run, as does one that logs through ``job.log``."""

    def talk(job: jobq.RunningJob) -> None:
        context = contextvars.copy_context()
        for target in (
            lambda: context.run(structlog.get_logger().info, "copied"),
            lambda: job.log.info("bound"),
            lambda: structlog.get_logger().info("nobody's"),
        ):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join(PATIENCE)

    assert said(jobs, run(jobs, talk)) == ["copied", "bound"]


def test_lines_of_another_job_queue_are_its_own(
    jobs: jobq.JobQueue, keeper: LogLines, clock: FakeClock, tmp_path: Path
) -> None:
    """The same ids mean other jobs there."""
    with jobq.open(tmp_path / "other.db", clock=clock) as other:
        theirs = run(other, lambda job: structlog.get_logger().info("elsewhere"))
        ours = run(jobs, lambda job: structlog.get_logger().info("here"))
        assert theirs == ours
        assert (said(other, theirs), said(jobs, ours)) == ([], ["here"])


def test_a_failure_and_a_retry_keep_their_lines(jobs: jobq.JobQueue, keeper: LogLines, caplog: Any) -> None:
    """Each under its attempt; the traceback of an exception ends with it."""

    def talk(job: jobq.RunningJob) -> None:
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            job.log.exception("no", part=job.attempt)
            raise

    job_id = run(jobs, talk, max_attempts=2)
    jobq.Runner(jobs).drain(until="1m")
    first, second = jobs.log_lines(job_id)

    assert [(line.attempt, line.level, line.fields["part"]) for line in (first, second)] == [
        (1, "error", 1), (2, "error", 2),
    ]  # fmt: skip
    assert str(first.fields["exception"]).endswith("ZeroDivisionError: division by zero\n")
    assert "exc_info" not in first.fields


class Unfriendly:
    """Something that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        pytest.param({"a": Unfriendly()}, {"a": "(Unfriendly that cannot be shown)"}, id="repr raises"),
        pytest.param({"a": float("nan"), "b": 1}, {"a": "nan", "b": "1"}, id="nan"),
        pytest.param({"a": {(1, 2): 3}}, {"a": "{(1, 2): 3}"}, id="keys that are no text"),
        pytest.param({"a": "x\0y\ud800"}, {"a": "x\0y\ufffd"}, id="unstorable"),
        pytest.param({"job_id": "mine", "level": []}, {}, id="columns of the host's"),
        pytest.param({"level": Unfriendly()}, {}, id="level that cannot be shown"),
        pytest.param({"level": "password=hunter2"}, {}, id="level that is a secret"),
    ],
)
def test_whatever_is_logged_the_handler_goes_on(
    jobs: jobq.JobQueue, keeper: LogLines, fields: dict[str, Any], shown: dict[str, Any]
) -> None:
    """A slip in a line of the log does not fail a job."""
    job_id = run(jobs, lambda job: keeper(None, "info", {"event": Unfriendly(), **fields}))

    (line,) = jobs.log_lines(job_id)
    assert jobs.get(job_id).state == "succeeded"
    assert (line.event, line.fields, line.level) == ("(Unfriendly that cannot be shown)", shown, "info")


def test_b26_secrets_are_in_no_kept_line(jobs: jobq.JobQueue, keeper: LogLines, open_again: Any) -> None:
    """Neither in the event nor in a field nor in a traceback; with the redactor of the job queue that took the line."""
    secretive = open_again(redact=lambda text: text.replace("PLUGH", "[mine]"))
    keeping = LogLines(secretive)

    def talk(job: jobq.RunningJob) -> None:
        try:
            raise ValueError("password=hunter2 PLUGH")
        except ValueError as error:
            keeping(None, "error", {"event": "token=hunter2 PLUGH", "exc_info": error, "a": {"api_key": "hunter2"}})

    job_id = run(jobs, talk)
    (line,) = jobs.log_lines(job_id)

    assert "hunter2" not in str(line)
    assert "PLUGH" not in str(line)
    assert "[mine]" in line.event


def test_events_are_told_and_a_listener_that_logs_feeds_nothing(jobs: jobq.JobQueue, keeper: LogLines) -> None:
    """Each kept line is a private event; what a listener logs is no line of the job, on whatever thread it is told."""
    told: list[jobq.LogLine] = []

    def listener(event: jobq.LogLine) -> None:
        told.append(event)
        structlog.get_logger().info("heard", job_id=event.job_id)

    jobs.bus.subscribe(jobq.LogLine, listener)
    runner = jobq.Runner(jobs)

    def talk(job: jobq.RunningJob) -> None:
        job.log.info("one")
        runner.maintenance.tick()
        jobs.enqueue("other")
        runner.maintenance.tick()

    job_id = run(jobs, talk)
    jobq.Runner(jobs).drain()

    assert [event.event for event in told if not event.event.startswith("jobq.")] == ["one"]
    assert "heard" not in said(jobs, job_id)
    assert jobq.LogLine.private


def test_what_finds_no_room_is_counted_and_told_once(
    jobs: jobq.JobQueue, keeper: LogLines, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The handler is not held up, and the job succeeds."""
    monkeypatch.setattr(lines, "MOST_LINES", 3)
    seen: list[str] = []
    structlog.get_config()["processors"].insert(0, lambda logger, method, line: seen.append(line["event"]) or line)
    job_id = run(jobs, lambda job: [job.log.info(str(number)) for number in range(10)])

    assert (said(jobs, job_id), keeper.lost) == (["0", "1", "2"], 7)
    assert seen.count("jobq.logline.dropped") == 1
    assert jobs.get(job_id).state == "succeeded"


def test_lines_are_never_written_in_a_transaction_of_the_host(jobs: jobq.JobQueue, keeper: LogLines) -> None:
    """A rollback does not undo them."""

    def talk(job: jobq.RunningJob) -> None:
        with pytest.raises(ZeroDivisionError), jobs.transaction():  # noqa: PT012
            job.log.info("inside")
            _ = 1 / 0

    assert said(jobs, run(jobs, talk)) == ["inside"]


def test_the_newest_lines_in_their_order(jobs: jobq.JobQueue, keeper: LogLines) -> None:
    """A limit leaves the oldest out; an unknown job is an error, one without lines is not."""
    job_id = run(jobs, lambda job: [job.log.info(str(number)) for number in range(5)])
    silent = jobs.enqueue("silent").id

    assert [line.event for line in jobs.log_lines(job_id, limit=2)] == ["3", "4"]
    assert [line.event for line in jobs.log_lines(job_id, limit=None)] == ["0", "1", "2", "3", "4"]
    assert jobs.log_lines(silent) == jobs.log_lines(job_id, limit=0) == []
    with pytest.raises(jobq.JobNotFound):
        jobs.log_lines(99)


def test_old_lines_go_in_bounded_batches(
    open_again: Any, keeper: LogLines, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the configured days; one batch in each tick while there are more."""
    jobs = open_again(config=jobq.Config(retention=FOREVER))
    monkeypatch.setattr("jobq.runtime.linekeeper.PRUNE_BATCH", 2)
    job_id = run(jobs, lambda job: [job.log.info(str(number)) for number in range(5)])
    runner, counts = jobq.Runner(jobs), []

    clock.advance("6d23h")
    runner.maintenance.tick()
    assert len(said(jobs, job_id)) == 5
    clock.advance("2h")
    for _ in range(4):
        runner.maintenance.tick()
        counts.append(len(said(jobs, job_id)))

    assert counts == [3, 1, 0, 0]


def test_without_keep_days_lines_stay(open_again: Any, keeper: LogLines, clock: FakeClock) -> None:
    """None keeps them as long as their job."""
    jobs = open_again(config=jobq.Config(log_keep_days=None, retention=FOREVER))
    job_id = run(jobs, lambda job: job.log.info("kept"))
    clock.advance("3000d")
    jobq.Runner(jobs).maintenance.tick()

    assert said(jobs, job_id) == ["kept"]


def test_a_configured_file_gets_the_lines(open_again: Any, tmp_path: Path, clock: FakeClock, keeper: LogLines) -> None:
    """Instead of the table, as JSON lines, for its owner's eyes only."""
    file = tmp_path / "lines.log"
    file.touch(mode=0o644)
    jobs = open_again(config=jobq.Config(log_file=file))
    job_id = run(jobs, lambda job: job.log.info("käse", password="hunter2", title="\u202e\x9b2J"))

    text = file.read_text(encoding="utf-8")
    assert text.rstrip("\n").isprintable()
    (line,) = map(json.loads, text.splitlines())
    assert line == {
        "ts": "2024-01-01T00:00:00.000+00:00", "level": "info", "job_id": job_id, "attempt": 1, "event": "käse",
        "fields": {"password": "[redacted]", "title": "\u202e\x9b2J"},
    }  # fmt: skip
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert jobs.log_lines(job_id) == []


def test_a_file_that_cannot_be_written_stops_the_start_and_no_job(
    open_again: Any, tmp_path: Path, keeper: LogLines, errors: Any
) -> None:
    """A runner says so when it starts; lines of a drain are lost, and told once."""
    jobs = open_again(config=jobq.Config(log_file=tmp_path / "missing" / "lines.log"))
    with pytest.raises(jobq.ConfigError, match="log_file"):
        jobq.Runner(jobs).start()

    job_id = run(jobs, lambda job: job.log.info("x"))

    assert jobs.get(job_id).state == "succeeded"
    structlog.reset_defaults()


def test_the_standard_library_is_kept_too(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """By a handler for the root logger, with the name of the logger."""
    handler = LogLines(jobs).handler(logging.INFO)
    logger = logging.getLogger("shop")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logging.getLogger("jobq.handler").addHandler(handler)
    logging.getLogger("jobq.handler").setLevel(logging.INFO)
    try:

        def talk(job: jobq.RunningJob) -> None:
            logger.info("%d boxes", 3)
            logger.debug("not this")
            job.log.info("sold", boxes=3)

        job_id = run(jobs, talk)
        logger.info("outside")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logging.getLogger("jobq.handler").removeHandler(handler)
        logging.getLogger("jobq.handler").setLevel(logging.NOTSET)

    assert [(line.level, line.event, line.fields) for line in jobs.log_lines(job_id)] == [
        ("info", "3 boxes", {"logger": "shop"}), ("info", "sold", {"boxes": 3}),
    ]  # fmt: skip


def test_threads_of_a_runner_keep_lines_and_write_the_last_at_stop(
    configure: Callable[[jobq.JobQueue], LogLines],
) -> None:
    """Within a second or two while it runs; all of them when it has stopped."""
    with jobq.open() as jobs:
        configure(jobs)

        @jobs.job
        def talk(payload: Any, job: jobq.RunningJob) -> None:
            job.log.info("hello", n=payload)

        made = [talk.enqueue(number) for number in range(40)]
        with jobq.Runner(jobs, workers={"default": 4}):
            for one in made:
                one.wait(PATIENCE)

        found = [(line.job_id, line.fields["n"]) for one in made for line in jobs.log_lines(one.id)]
        assert found == [(one.id, number) for number, one in enumerate(made)]
