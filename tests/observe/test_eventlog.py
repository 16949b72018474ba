"""The event log of a job queue."""

import contextlib
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import jobq
from jobq.testing import FakeClock
from tests.conftest import PATIENCE, ErrorLog
from tests.observe.test_rotating import full_disk

Open = Callable[..., jobq.JobQueue]


@attrs.frozen(kw_only=True)
class Shipped(jobq.Event):
    """An event of a host."""

    order: int
    address: str = attrs.field(default="10 Downing Street", metadata=jobq.PRIVATE)


@attrs.frozen(kw_only=True)
class Whispered(jobq.Event):
    """A private event of a host."""

    private: ClassVar[bool] = True
    text: str = "10 Downing Street"


@attrs.frozen(kw_only=True)
class Noted(jobq.Event):
    """An event of a host that says something."""

    note: str


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "events.jsonl"


def logged(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def config(path: Path, **settings: Any) -> jobq.Config:
    """Return a configuration with an event log."""
    return jobq.Config(events_file=str(path), **settings)


def test_everything_that_is_told_is_logged_in_order(path: Path, clock: FakeClock) -> None:
    """The life of a job, a pause, and a host's event without its private field; the file is for its owner only."""
    with jobq.open(clock=clock, config=config(path)) as jobs:
        jobs.handlers.job(name="k")(lambda payload: None)
        jobs.enqueue("k", {"secret": "payload"})
        jobq.Runner(jobs).drain()
        jobs.pause("default", why="10 Downing Street")
        jobs.bus.publish(Shipped(order=7))
        jobs.bus.publish(Whispered())
        assert jobs.event_log is not None
        assert (jobs.event_log.written, jobs.event_log.lost, jobs.event_log.dropped) == (5, 0, 0)

        lines = logged(path)

    assert [(line["kind"], line["data"].get("state", "")) for line in lines] == [
        ("JobStateChanged", "queued"), ("JobStateChanged", "running"), ("JobStateChanged", "succeeded"),
        ("QueueStateChanged", ""), ("Shipped", ""),
    ]  # fmt: skip
    assert lines[0]["ts"] == "2024-01-01T00:00:00.000+00:00"
    assert lines[-1]["data"] == {"order": 7}
    assert "secret" not in path.read_text()
    assert "Downing" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", [pytest.param(None, id="not configured"), pytest.param("", id="turned off")])
def test_library_logs_no_events_unless_told(tmp_path: Path, name: str | None) -> None:
    """Nothing lies beside the database."""
    with jobq.open(tmp_path / "jobs.db", config=jobq.Config(events_file=name)) as jobs:
        jobs.enqueue("k")
        assert jobs.event_log is None

    assert [one.name for one in tmp_path.iterdir()] == ["jobs.db"]


def test_rolled_back_event_is_not_logged(path: Path) -> None:
    """Nothing is told of what did not happen."""
    with jobq.open(config=config(path)) as jobs, contextlib.suppress(ZeroDivisionError), jobs.transaction():
        jobs.enqueue("k")
        jobs.bus.publish(Shipped(order=1))
        raise ZeroDivisionError

    assert logged(path) == []


def test_two_job_queues_of_one_file_log_an_event_once(tmp_path: Path, path: Path) -> None:
    """They share the bus and the log; another one's file gets the same events."""
    database, other = tmp_path / "jobs.db", tmp_path / "other.jsonl"
    one, two, three = (jobq.open(database, config=config(file)) for file in (path, path, other))
    one.enqueue("k")
    one.close()
    two.enqueue("k")
    two.close()
    three.enqueue("k")
    three.close()

    assert [line["data"]["job_id"] for line in logged(path)] == [1, 2]
    assert [line["data"]["job_id"] for line in logged(other)] == [1, 2, 3]


def test_b26_event_log_that_is_shared_hides_what_any_redactor_knows(path: Path, tmp_path: Path) -> None:
    """Of all job queues on its bus, whoever opened it, until they are closed."""
    database = tmp_path / "jobs.db"
    with jobq.open(database, config=config(path)) as plain:
        with jobq.open(database, redact=lambda text: text.replace("XYZZY", "-")) as other:
            other.bus.publish(Noted(note="XYZZY"))
        plain.bus.publish(Noted(note="XYZZY"))

    assert [line["data"]["note"] for line in logged(path)] == ["-", "XYZZY"]


def test_log_events_takes_the_place_of_the_log_before(tmp_path: Path, path: Path) -> None:
    """Each event is in one of them."""
    with jobq.open(config=config(path)) as jobs:
        jobs.enqueue("k")
        log = jobs.log_events(tmp_path / "other.jsonl")
        jobs.enqueue("k")
        assert jobs.event_log is log
        assert log.path == str(tmp_path / "other.jsonl")

    assert [line["data"]["job_id"] for line in logged(path)] == [1]
    assert [line["data"]["job_id"] for line in logged(tmp_path / "other.jsonl")] == [2]


def test_log_events_of_a_closed_job_queue_is_refused(path: Path) -> None:
    """Nobody would close the log any more."""
    jobs = jobq.open()
    jobs.close()

    with pytest.raises(jobq.QueueClosed):
        jobs.log_events(path)
    assert not path.exists()


def test_place_that_cannot_be_written_is_refused_when_it_is_configured(tmp_path: Path) -> None:
    """The error says what to do, and nothing stays open."""
    with pytest.raises(jobq.ConfigError, match=r"events_file: .*missing.*No such file") as caught:
        jobq.open(tmp_path / "jobs.db", config=config(tmp_path / "missing" / "events.jsonl"))
    assert caught.value.fix


@pytest.mark.parametrize("value", [pytest.param(5, id="number"), pytest.param(b"a", id="bytes"), "a\0b"])
def test_path_that_is_none_is_a_configuration_error(jobs: jobq.JobQueue, value: Any) -> None:
    """Before anything is opened, and where a log is begun later."""
    for begin in (lambda: jobq.Config(events_file=value), lambda: jobs.log_events(value)):
        with pytest.raises(jobq.ConfigError, match="events_file"):
            begin()


def test_log_that_is_begun_later_needs_a_name(jobs: jobq.JobQueue) -> None:
    """What stands for no log in a configuration is no file here."""
    for value in ("", None):
        with pytest.raises(jobq.ConfigError, match="events_file: the path of a file is needed"):
            jobs.log_events(value)  # type: ignore[arg-type]


def test_full_disk_costs_counted_events_and_no_job(path: Path, errors: ErrorLog) -> None:
    """Verbs and outcomes are as ever; the log is told once, and goes on when there is room."""
    with jobq.open(config=config(path)) as jobs:
        jobs.handlers.job(name="k")(lambda payload: None)
        jobs.enqueue("k")
        log, size = jobs.event_log, path.stat().st_size
        assert log is not None
        with full_disk(size + 10):
            for number in range(20):
                jobs.bus.publish(Shipped(order=number))
        assert jobq.Runner(jobs).drain().succeeded == 1
        assert errors.take() == ["jobq.logfile.failed"]
        assert (log.written, log.lost) == (3, 20)

    assert [line["kind"] for line in logged(path)] == ["JobStateChanged"] * 3


def test_events_of_many_threads_are_all_there(path: Path) -> None:
    """Each thread's in its order, in whole lines, whoever delivers them."""
    with jobq.open(config=config(path, file_max_bytes=4_096, file_backups=1_000)) as jobs:

        def publish(thread: int) -> None:
            for number in range(500):
                jobs.bus.publish(Shipped(order=thread * 500 + number))

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

    files = sorted(path.parent.glob("events.jsonl*"), key=lambda one: -int(one.suffix[1:] if one != path else 0))
    orders = [line["data"]["order"] for file in files for line in logged(file)]
    assert sorted(orders) == list(range(2_000))
    for thread in range(4):
        mine = [order for order in orders if order // 500 == thread]
        assert mine == sorted(mine)


def in_child(work: Callable[[], bool]) -> int:
    """Fork, and return 0 if the work answered True in the child."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_forked_child_logs_what_happens_in_it(path: Path) -> None:
    """To the same file, and nothing of the parent's twice: not what the parent was about to write either."""
    with jobq.open(config=config(path)) as jobs:
        answers: list[int] = []

        def publish() -> bool:
            jobs.bus.publish(Shipped(order=2))
            log = jobs.event_log
            return log is not None and log.written == 1

        def fork_once(event: Shipped) -> None:
            if event.order == 1:
                answers.append(in_child(publish))

        jobs.bus.subscribe(Shipped, fork_once)
        jobs.bus.publish(Shipped(order=1))
        jobs.bus.publish(Shipped(order=3))

    assert answers == [0]
    assert [line["data"]["order"] for line in logged(path)] == [2, 1, 3]


def test_b58_slow_and_raising_listeners_and_a_stalled_stream_change_no_outcome(
    path: Path, errors: ErrorLog
) -> None:
    """The job succeeds, others are told, and the log has everything."""
    told: list[object] = []

    def broken(_: jobq.Event) -> None:
        raise ValueError("no")

    with jobq.open(config=config(path)) as jobs, jobs.bus.stream(maxsize=1) as stalled:
        jobs.handlers.job(name="k")(lambda payload: None)
        jobs.bus.subscribe(jobq.JobStateChanged, broken)
        jobs.bus.subscribe(jobq.JobStateChanged, told.append)
        jobs.enqueue("k")
        assert jobq.Runner(jobs).drain().succeeded == 1
        assert stalled.dropped == 2

    assert errors.take() == ["jobq.bus.listener_failed"] * 3
    assert len(told) == len(logged(path)) == 3
