"""What is refused is refused with a typed error that says what to do, and nothing is written."""

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

import jobq
from jobq import errors
from jobq.testing import FakeClock


@attrs.frozen
class Mail:
    to: str


REFUSED = [
    pytest.param(lambda jobs: jobs.enqueue(""), errors.ArgumentError, id="empty kind"),
    pytest.param(lambda jobs: jobs.enqueue("a\nb"), errors.ArgumentError, id="control character"),
    pytest.param(lambda jobs: jobs.enqueue("k" * 201), errors.ArgumentError, id="long kind"),
    pytest.param(lambda jobs: jobs.enqueue(None), errors.ArgumentError, id="no kind"),
    pytest.param(lambda jobs: jobs.enqueue(Mail("a")), errors.UnknownKind, id="unregistered class"),
    pytest.param(lambda jobs: jobs.enqueue("k", queue="Bad Name"), errors.ArgumentError, id="queue name"),
    pytest.param(lambda jobs: jobs.enqueue("k", priority=1001), errors.ArgumentError, id="priority"),
    pytest.param(lambda jobs: jobs.enqueue("k", priority="urgent"), errors.ArgumentError, id="priority name"),
    pytest.param(lambda jobs: jobs.enqueue("k", max_attempts=0), errors.ArgumentError, id="max_attempts"),
    pytest.param(lambda jobs: jobs.enqueue("k", delay=True), errors.ArgumentError, id="bool delay"),
    pytest.param(
        lambda jobs: jobs.enqueue("k", delay=1, run_at=datetime(2024, 1, 1, tzinfo=UTC)),
        errors.ArgumentError,
        id="two times",
    ),
    pytest.param(lambda jobs: jobs.enqueue("k", run_at=date(2024, 1, 1)), errors.ArgumentError, id="a date"),
    pytest.param(lambda jobs: jobs.enqueue("k", run_at=datetime(2024, 1, 1)), errors.ArgumentError, id="naive"),  # noqa: DTZ001
    pytest.param(lambda jobs: jobs.enqueue("k", dedupe_key=""), errors.ArgumentError, id="empty key"),
    pytest.param(lambda jobs: jobs.enqueue("k", actor="god"), errors.ArgumentError, id="actor"),
    pytest.param(lambda jobs: jobs.enqueue("k", meta=[1]), errors.ArgumentError, id="meta"),
    pytest.param(lambda jobs: jobs.enqueue("k", {"a": (1,)}), errors.PayloadError, id="tuple"),
    pytest.param(lambda jobs: jobs.enqueue("k", {"a": float("nan")}), errors.PayloadError, id="nan"),
    pytest.param(lambda jobs: jobs.enqueue("k", "x" * 2**21), errors.PayloadTooLarge, id="too large"),
    pytest.param(lambda jobs: jobs.enqueue("k", parent_id=99), errors.JobNotFound, id="unknown parent"),
    pytest.param(lambda jobs: jobs.enqueue_many(5), errors.ArgumentError, id="no items"),
    pytest.param(lambda jobs: jobs.enqueue_many([1]), errors.ArgumentError, id="no NewJob"),
    pytest.param(lambda jobs: jobs.enqueue_many([], chunk=0), errors.ArgumentError, id="chunk"),
    pytest.param(lambda jobs: jobs.get(10**5000), errors.JobNotFound, id="huge id"),
    pytest.param(lambda jobs: jobs.get("1"), errors.ArgumentError, id="text id"),
    pytest.param(lambda jobs: jobs.cancel(99), errors.JobNotFound, id="cancel"),
    pytest.param(lambda jobs: jobs.requeue(99), errors.JobNotFound, id="requeue"),
    pytest.param(lambda jobs: jobs.reschedule(99, delay=1), errors.JobNotFound, id="reschedule"),
    pytest.param(lambda jobs: jobs.reschedule(99), errors.ArgumentError, id="reschedule nothing"),
    pytest.param(lambda jobs: jobs.pause("nosuch"), errors.QueueNotFound, id="pause"),
    pytest.param(lambda jobs: jobs.pause(kind="nosuch"), errors.UnknownKind, id="pause kind"),
    pytest.param(lambda jobs: jobs.pause("default", kind="k"), errors.ArgumentError, id="pause both"),
    pytest.param(lambda jobs: jobs.resume(), errors.ArgumentError, id="resume nothing"),
    pytest.param(lambda jobs: jobs.wait(99, timeout=0), errors.JobNotFound, id="wait"),
    pytest.param(lambda jobs: jobs.find(limit=-5), errors.ArgumentError, id="limit"),
    pytest.param(lambda jobs: jobs.lease(kinds=[5]), errors.ArgumentError, id="lease kinds"),
    pytest.param(lambda jobs: jobs.lease(length=0), errors.ArgumentError, id="lease length"),
    pytest.param(lambda jobs: jobs.complete("x"), errors.ArgumentError, id="no lease"),
    pytest.param(lambda jobs: jobs.bus.stream(maxsize=0), errors.ArgumentError, id="maxsize"),
    pytest.param(
        lambda jobs: jobs.job(name="n", concurrency=0)(lambda payload: None), errors.ArgumentError, id="concurrency"
    ),
    pytest.param(lambda jobs: jobs.job(name="n", retry=5)(lambda payload: None), errors.ArgumentError, id="retry"),
    pytest.param(lambda jobs: jobq.Runner(jobs, workers={"default": 0}), errors.ArgumentError, id="workers"),
    pytest.param(lambda jobs: jobq.Runner("x.db"), errors.ArgumentError, id="runner of a path"),
    pytest.param(lambda jobs: jobq.RetryPolicy(base=-1), errors.ArgumentError, id="base"),
    pytest.param(lambda jobs: jobq.RetryPolicy(jitter=2), errors.ArgumentError, id="jitter"),
    pytest.param(lambda jobs: jobq.Config(durability="some"), errors.ConfigError, id="durability"),
    pytest.param(lambda jobs: jobq.Config(lease="soon"), errors.ConfigError, id="config lease"),
    pytest.param(lambda jobs: jobq.Config(leese=5), errors.ConfigError, id="config keyword"),
    pytest.param(lambda jobs: jobq.Config.from_toml(5), errors.ArgumentError, id="config path"),
    pytest.param(lambda jobs: jobq.Config.from_toml("/nowhere.toml"), errors.ConfigFileError, id="config file"),
]


@pytest.mark.parametrize(("attempt", "kind"), REFUSED)
def test_refusal_is_typed_and_says_what_to_do(
    jobs: jobq.JobQueue, attempt: Callable[[jobq.JobQueue], object], kind: type[jobq.JobqError]
) -> None:
    """With a sentence in ``fix``, which a traceback shows as well, and no row left behind."""
    with pytest.raises(kind) as caught:
        attempt(jobs)

    assert caught.value.fix
    assert caught.value.fix in caught.value.__notes__
    assert jobs.find(limit=None) == []
    assert [queue.name for queue in jobs.queues()] == ["default"]


def test_item_that_is_refused_is_named(jobs: jobq.JobQueue) -> None:
    """A note of enqueue_many says which one it was."""
    with pytest.raises(jobq.PayloadError) as caught:
        jobs.enqueue_many([jobq.NewJob("a", 1), jobq.NewJob("a", {1})])

    assert any("items[1]" in note for note in caught.value.__notes__)
    assert jobs.find() == []


def test_key_function_that_raises_is_refused_without_its_text(jobs: jobq.JobQueue) -> None:
    """The text of a KeyError would quote the payload."""

    @jobs.job(dedupe_key=lambda payload: payload["secret"])
    def keyed(payload: dict) -> None:  # type: ignore[type-arg]
        """Never run."""

    with pytest.raises(jobq.ArgumentError, match="KeyError") as caught:
        jobs.enqueue("keyed", {"hush": 1})
    assert "secret" not in str(caught.value)


def samples() -> list[Any]:
    """Return one error of each class."""
    return [
        errors.ArgumentError("delay", "it is late"),
        errors.ConfigError("no"),
        errors.PayloadError("$.a", "no"),
        errors.PayloadTooLarge(5, 4),
        errors.ResultError("$", "no"),
        errors.UnknownKind("k"),
        errors.RetiredKind("k"),
        errors.JobNotFound(3),
        errors.QueueNotFound("q", known=("default",)),
        errors.InvalidTransition(3, "running", "requeued"),
        errors.DedupeConflict(3, why="taken"),
        errors.LeaseLost(3),
        errors.WaitTimeout(3, "queued", 1.5),
        errors.NoQueueInstalled("k", attached=0),
        errors.OutsideTransaction("none is open"),
        errors.NotPublished(3),
        errors.OutboxTableMissing(),
        errors.OutboxUnavailable("closed", busy=True),
        errors.QueueClosed(),
        errors.ForeignHandle("a.db"),
        errors.ForkedHandle("a.db"),
        errors.BackupRefused("a.db", "it exists"),
        errors.SchemaTooNew("a.db", 9, 1),
        errors.StoreBusy("a.db", "locked", code=5),
        errors.StoreFull("a.db", "full", code=13, outcome_unknown=True),
        errors.Deferred("later", delay="1m"),
        errors.PermanentJobError("no", code="bounced"),
        errors.TransientJobError("later"),
    ]


@pytest.mark.parametrize("error", [pytest.param(error, id=type(error).__name__) for error in samples()])
@pytest.mark.parametrize(
    "carry",
    [
        pytest.param(lambda error: pickle.loads(pickle.dumps(error)), id="pickle"),
        pytest.param(copy.copy, id="copy"),
    ],
)
def test_error_travels_between_processes(error: jobq.JobqError, carry: Callable[[Any], Any]) -> None:
    """Class, text and data arrive."""
    arrived = carry(error)

    assert type(arrived) is type(error)
    assert (str(arrived), vars(arrived)) == (str(error), vars(error))


@pytest.mark.parametrize("content", [pytest.param(None, id="missing"), pytest.param(b"", id="empty")])
def test_open_without_create_makes_nothing(tmp_path: Path, content: bytes | None) -> None:
    """A missing file stays missing, another's file stays as it is."""
    path = tmp_path / "a.db"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(jobq.StoreUnavailable):
        jobq.open(path, create=False)

    assert (path.read_bytes() if path.exists() else None) == content
    assert [found.name for found in tmp_path.iterdir()] == ([] if content is None else ["a.db"])


def test_open_without_create_opens_a_job_queue(tmp_path: Path) -> None:
    """One that is there."""
    jobq.open(tmp_path / "a.db").close()

    with jobq.open(tmp_path / "a.db", create=False) as jobs:
        assert jobs.enqueue("a").created


def test_cancel_that_is_rehearsed_changes_nothing(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """It answers as the real one would."""
    waiting, leased, ended = (jobs.enqueue(kind).id for kind in ("a", "b", "c"))
    jobs.cancel(ended)
    (lease,) = jobs.lease("b")
    before = jobs.find()

    assert jobs.cancel((waiting, leased, ended, 99), dry_run=True) == (waiting, leased)
    assert jobs.cancel(ended, dry_run=False) is False
    assert jobs.cancel(waiting, dry_run=True) is True

    assert jobs.find() == before
    assert not jobs.extend(lease).cancel_requested
