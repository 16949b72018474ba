"""What all tests have in common: a fake clock, a temporary job queue, and a look for leaks after each test."""

import gc
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import jobq
from jobq.model.events import JobStateChanged
from jobq.testing import FakeClock
from tests.postgres import Cluster, NoPostgres
from tests.ready import ready_file

#: A thread that is about to end is waited for so long, in seconds.
PATIENCE = 5.0
#: Where Linux keeps files in memory, and the bytes that must be free there.
MEMORY, ROOM = Path("/dev/shm"), 2**29


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that tests start share what they compile: half of a start is that; no file is left."""
    if "PYTHONPYCACHEPREFIX" not in os.environ:
        compiled = tempfile.TemporaryDirectory(prefix="jobq-compiled-")
        config.add_cleanup(compiled.cleanup)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled.name
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look again and again at what pytest has made of five thousand tests."""
    gc.collect()
    gc.freeze()


class ErrorLog(logging.Handler):
    """Keeps the names of the events that jobq logged as errors; a test that expects some takes them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._events: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first word of a line: the event's name."""
        self._events.append(record.getMessage().split(" ")[0])

    def take(self) -> list[str]:
        """Return the events since the last call; they count as read."""
        events, self._events = self._events, []
        return events


@pytest.fixture
def errors() -> Iterator[ErrorLog]:
    """The errors that jobq logs during the test."""
    handler = ErrorLog()
    logger = logging.getLogger("jobq")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def _no_leaks(request: pytest.FixtureRequest, errors: ErrorLog) -> Iterator[None]:
    """Fail a test that leaves a thread, an open connection or an unread error in the log behind.

    A test that asks for pytest's ``caplog`` reads the log itself.
    """
    threads = set(threading.enumerate())
    handles = set(map(id, apsw.connections()))
    yield
    strays = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in strays:
        thread.join(PATIENCE)
    assert not [thread.name for thread in strays if thread.is_alive()], "a thread is still running"
    left_open = [handle for handle in apsw.connections() if id(handle) not in handles]
    if left_open:
        # One that is only part of a cycle is none.
        del left_open[:]
        gc.collect()
        left_open = [handle for handle in apsw.connections() if id(handle) not in handles]
    assert not [handle.filename for handle in left_open], "a connection is still open"
    assert "caplog" in request.fixturenames or not errors.take(), "an error was logged and not looked at"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where the system has room: for tests that make files by the hundred and kill processes."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="jobq-", dir=MEMORY) as place:
        yield Path(place)


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still at the first instant of 2024."""
    return FakeClock()


@pytest.fixture
def jobs(clock: FakeClock) -> Iterator[jobq.JobQueue]:
    """A temporary job queue on the fake clock."""
    with (
        tempfile.TemporaryDirectory(prefix="jobq-") as place,
        jobq.open(ready_file(Path(place, "jobq.db")), clock=clock) as queue,
    ):
        yield queue


@pytest.fixture
def open_again(jobs: jobq.JobQueue, clock: FakeClock) -> Iterator[Callable[..., jobq.JobQueue]]:
    """Opens the same file once more, with other handlers or another configuration."""
    opened: list[jobq.JobQueue] = []

    def again(**settings: object) -> jobq.JobQueue:
        queue = jobq.open(jobs.path, **{"clock": clock, **settings})  # type: ignore[arg-type]
        opened.append(queue)
        return queue

    yield again
    for queue in opened:
        queue.close()


@pytest.fixture
def runner(jobs: jobq.JobQueue) -> Iterator[object]:
    """A runner of that job queue, not started; stopped after the test."""
    made = jobq.Runner(jobs)
    yield made
    made.stop()


@pytest.fixture
def events(jobs: jobq.JobQueue) -> list[JobStateChanged]:
    """Every change of a job's state that the bus tells."""
    told: list[JobStateChanged] = []
    jobs.bus.subscribe(JobStateChanged, told.append)
    return told


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """The session's own PostgreSQL, started by the first test that asks; skips where there is none."""
    try:
        cluster = Cluster()
        cluster.start()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield cluster
    cluster.stop()


@pytest.fixture
def postgres_dsn(postgres_cluster: Cluster) -> Iterator[str]:
    """The URI of a PostgreSQL database that the test has for itself and that is empty."""
    yield postgres_cluster.dsn
    postgres_cluster.clear()
