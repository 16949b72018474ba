"""B26: a secret that is planted wherever a text can hold one is found in no place that texts go to.

The payload and the result are the host's own values and are kept as they are; the trace is the one exception.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
import structlog
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import jobq
from jobq.model.redact import REDACTOR_FAILED
from jobq.observe.loglines import LogLines
from jobq.testing import FakeClock

SECRET = "hunter2-hunter2-hunter2"
#: One that no rule knows, for the redactor of the host.
OURS = "XYZZY-XYZZY-XYZZY"
PLANTED = f"login failed: password={SECRET} for {OURS}"


@attrs.frozen
class Receipt:
    number: int


def _raise(job: jobq.RunningJob, text: str) -> None:
    raise ValueError(text)


def _cause(job: jobq.RunningJob, text: str) -> None:
    try:
        raise KeyError(text)
    except KeyError as error:
        raise jobq.PermanentJobError(text, code=text) from error


def _defer(job: jobq.RunningJob, text: str) -> None:
    raise jobq.Deferred(text, delay=60)


def _transient(job: jobq.RunningJob, text: str) -> None:
    raise jobq.TransientJobError(text, code=text)


def _bad_result(job: jobq.RunningJob, text: str) -> Any:
    return {"number": text, text: 1}


def _stopped(job: jobq.RunningJob, text: str) -> None:
    job.cancel_token.wait(10)
    raise jobq.JobCancelled(text)


def _progress(job: jobq.RunningJob, text: str) -> None:
    job.progress(1, 2, text)
    job.progress(2, 2, text)


def _log(job: jobq.RunningJob, text: str) -> None:
    structlog.get_logger("host").info("in a field", note=text, deep={"token": SECRET, "more": [text]})
    try:
        raise ValueError(text)
    except ValueError:
        job.log.exception(text)


def _settled(job: jobq.RunningJob, text: str) -> None:
    with job.transaction() as tx:
        tx.result({"number": 1})
    raise ValueError(text)


@attrs.frozen
class Told(jobq.Event):
    """An event of the host, with a text, a name that gives away what it holds, and a private field."""

    note: str
    deep: dict[str, Any]
    private_note: str = attrs.field(metadata=jobq.PRIVATE)


@attrs.frozen
class Hushed(jobq.Event):
    """A private event of the host."""

    private: ClassVar[bool] = True

    note: str


def _publish(job: jobq.RunningJob, text: str) -> None:
    bus = job.delegates.bus
    bus.publish(Told(text, {"token": SECRET, "more": [text]}, text))
    bus.publish(Hushed(text))
    raise jobq.PermanentJobError(text)


PLACES = [_raise, _cause, _defer, _transient, _bad_result, _stopped, _progress, _log, _settled, _publish]


class Sinks:
    """Everything that a text could end in."""

    def __init__(self, jobs: jobq.JobQueue, files: Path) -> None:
        self.jobs = jobs
        self.files = files
        #: The lines of jobq's own loggers.
        self.log: list[Any] = []
        self.stream = jobs.bus.stream(private=True, maxsize=1000)

    def texts(self) -> str:
        """Return all of it."""
        with self.jobs.read() as snapshot:
            tables = snapshot.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'jobq_%'")
            rows = [snapshot.execute(f"SELECT * FROM {name}") for (name,) in tables]
        files = [file.read_text(encoding="utf-8") for file in self.files.rglob("*.log*")]
        log = self.jobs.event_log
        # All of it is in them, and nothing was lost on the way.
        assert log is not None
        assert log.written > log.lost == 0
        events = []
        while (event := self.stream.get(timeout=0)) is not None:
            # What a host says itself on the bus is for whoever subscribes to it.
            if not isinstance(event, Told | Hushed):
                events.append(event)
        return repr((rows, self.log, events)) + "".join(files)


@pytest.fixture
def redactor() -> Callable[[str], str]:
    """The redactor of the host."""
    return lambda text: text.replace(OURS, "[ours]")


@pytest.fixture(params=["table", "file"])
def sinks(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path, redactor: Callable[[str], str]
) -> Iterator[Sinks]:
    """A job queue with all that writes switched on."""
    file = None if request.param == "table" else tmp_path / "lines.log"
    config = jobq.Config(log_file=file, events_file=tmp_path / "events.log", max_attempts=1)
    with jobq.open(tmp_path / "jobs.db", clock=clock, config=config, redact=redactor) as jobs:
        found = Sinks(jobs, tmp_path)
        # What a host's own lines say is its own affair: only the library's come into the list.
        structlog.configure(processors=[structlog.contextvars.merge_contextvars, LogLines(jobs), _Ours(found.log)])
        yield found
    structlog.reset_defaults()


class _Ours:
    """Passes on the events of jobq's own loggers."""

    def __init__(self, lines: list[Any]) -> None:
        self._lines = lines

    def __call__(self, logger: Any, method: str, line: Any) -> Any:
        if str(line.get("event")).startswith("jobq."):
            self._lines.append(dict(line))
        raise structlog.DropEvent


def _run(sinks: Sinks, place: Callable[..., Any], *texts: str) -> None:
    """Run one job for each text, which is planted in this place."""
    jobs = sinks.jobs
    left = list(texts)

    @jobs.job(timeout=5, result=Receipt)
    def leaky(payload: Any, job: jobq.RunningJob) -> Any:
        return place(job, left.pop())

    for _ in texts:
        leaky.enqueue()
    assert jobq.Runner(jobs, delegates=jobs).drain().claimed == len(texts)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_b26_no_sink_has_the_secret(sinks: Sinks, place: Callable[..., Any]) -> None:
    """Neither the one that a built-in rule knows, nor the one that the host's redactor knows."""
    _run(sinks, place, PLANTED)

    texts = sinks.texts()

    assert "hunter2" not in texts
    assert "XYZZY" not in texts
    assert "[redacted]" in texts or place in (_bad_result, _settled)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_b26_a_secret_that_straddles_the_end_is_not_shown_in_part(sinks: Sinks, place: Callable[..., Any]) -> None:
    """It is redacted first, and cut after; wherever the 500 characters end in it."""
    _run(sinks, place, *("x" * pad + f" password={SECRET} {OURS}" for pad in range(440, 512, 6)))
    texts = sinks.texts()
    assert "hunter" not in texts
    assert "XYZ" not in texts


@pytest.mark.parametrize("redactor", [lambda text: 1 / 0], ids=["raises"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_b26_a_redactor_that_fails_leaves_a_constant(sinks: Sinks, place: Callable[..., Any]) -> None:
    """Nothing of the text is kept."""
    _run(sinks, place, f"nothing but {OURS} in here")
    texts = sinks.texts()
    assert "XYZZY" not in texts
    assert "nothing but" not in texts
    assert REDACTOR_FAILED in texts or place in (_bad_result, _settled)


@pytest.mark.parametrize("end", ["fail", "defer", "pause", "expire"])
def test_b26_verbs_from_outside(sinks: Sinks, end: str, clock: FakeClock) -> None:
    """What an outside worker, or an operator, says."""
    jobs = sinks.jobs
    made = jobs.enqueue("outside")
    (lease,) = jobs.lease("outside", worker="w")
    if end == "fail":
        jobs.fail(lease, PLANTED, code=PLANTED)
    elif end == "defer":
        jobs.defer(lease, delay=5, reason=PLANTED)
    elif end == "pause":
        jobs.pause("default", why=PLANTED)
        jobs.schedules.add("s", every=5, kind="outside")
        jobs.schedules.pause("s", why=PLANTED)
    else:
        clock.advance("1d")
        jobq.Runner(jobs).maintenance.tick()
        assert jobs.get(made.id).last_error == "lease expired"
    texts = sinks.texts()
    assert "hunter2" not in texts
    assert "XYZZY" not in texts


def test_the_standard_log_has_no_secret(jobs: jobq.JobQueue, caplog: Any) -> None:
    """Where the host has no structlog."""
    caplog.set_level(logging.DEBUG, logger="jobq")

    @jobs.job(max_attempts=1)
    def leaky(payload: Any) -> None:
        raise ValueError(PLANTED)

    leaky.enqueue()
    jobq.Runner(jobs).drain()

    assert "jobq.job.failed" in caplog.text
    assert "hunter2" not in caplog.text


#: How a secret is written where no rule of the host's knows it.
SHAPES = (
    "password={}", "PASSWORD: {}", '"api_key": "{}"', "token='{}'", "Authorization: Bearer {}",
    "authorization: Basic {}", "https://ada:{}@example.org/x", "client_secret={}&next=1", "{{'secret': '{}'}}",
    "SECRET_KEY={}",
)  # fmt: skip
#: What is no part of a word, of which a secret's piece could be one.
_NOISE = st.characters(exclude_categories=["L", "N", "Pc", "Pd", "Cs"])


def _secret(drawn: tuple[int, int]) -> str:
    """Return letters and digits that stand nowhere else, as words of the code would."""
    number, length = drawn
    return hashlib.sha256(str(number).encode()).hexdigest()[:length]


@pytest.mark.parametrize(
    "examples", [pytest.param(6, id="short"), pytest.param(500, id="long", marks=pytest.mark.storm)]
)
def test_b26_no_piece_of_any_secret_is_in_any_sink(sinks: Sinks, examples: int) -> None:
    """Any secret in any shape, with anything around it and wherever the cut falls, said in every place in turn."""
    jobs, plan = sinks.jobs, []

    @jobs.job(timeout=5, result=Receipt)
    def leaky(payload: Any, job: jobq.RunningJob) -> Any:
        place, text = plan.pop()
        return place(job, text)

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(
        secret=st.tuples(st.integers(0, 2**64), st.integers(14, 40)).map(_secret),
        shape=st.sampled_from(SHAPES),
        pad=st.integers(0, 520),
        before=st.text(_NOISE, max_size=10),
        after=st.text(_NOISE, max_size=20),
    )
    def check(secret: str, shape: str, pad: int, before: str, after: str) -> None:
        text = "x" * pad + f" {before} {shape.format(secret)} {after}"
        plan.extend((place, text) for place in PLACES)
        for _ in PLACES:
            leaky.enqueue()
        assert jobq.Runner(jobs).drain().claimed == len(PLACES)
        texts = sinks.texts()
        assert not [piece for piece in (secret[at : at + 7] for at in range(len(secret) - 6)) if piece in texts]
        # The deferred one: it would run in a later round.
        jobs.cancel(where={"kind": "leaky", "state": "queued"})
        jobs.prune(older_than=0)

    check()
