"""What an enqueue refuses, and what it takes at the edge."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest

from jobq import (
    ArgumentError,
    Config,
    JobNotFound,
    JobQueue,
    PayloadError,
    PayloadTooLarge,
    RetiredKind,
)
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]


@attrs.frozen
class Mail:
    """A payload."""

    to: str
    subject: str = "hello"


def total(jobs: JobQueue) -> int:
    """Return how many jobs there are."""
    return sum(jobs.counts().values())


def test_enqueue_refuses_two_payloads(jobs: JobQueue) -> None:
    """A payload value leaves no room for another."""
    jobs.job(name="one", payload=Mail)(lambda payload: None)

    with pytest.raises(ArgumentError, match="twice"):
        jobs.enqueue(Mail("ada"), {"to": "bob"})


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        pytest.param({"x": float("nan")}, "$.x", id="NaN"),
        pytest.param([float("inf")], "$[0]", id="infinity"),
        pytest.param({"x": (1, 2)}, "$.x", id="tuple"),
        pytest.param({"x": {1}}, "$.x", id="set"),
        pytest.param({"x": datetime(2024, 1, 1, tzinfo=UTC)}, "$.x", id="datetime"),
        pytest.param({"x": b"abc"}, "$.x", id="bytes"),
        pytest.param({1: "a", "1": "b"}, "$", id="a key that is no text"),
        pytest.param("\ud800", "$", id="lone surrogate"),
    ],
)
def test_b53_payload_that_is_no_json_is_refused_with_the_path(jobs: JobQueue, payload: Any, path: str) -> None:
    """Nothing is written, and the error shows no content."""
    with pytest.raises(PayloadError) as raised:
        jobs.enqueue("mail", payload)

    assert raised.value.path == path
    assert total(jobs) == 0


@pytest.mark.parametrize(
    "payload",
    [pytest.param(2**70, id="2**70"), pytest.param({"x": "a\0b"}, id="NUL"), pytest.param("ünïcode 🐘", id="text")],
)
def test_b53_payload_that_is_json_reads_back_equal(jobs: JobQueue, payload: Any) -> None:
    """Large integers, NUL and any text survive."""
    assert jobs.get(jobs.enqueue("mail", payload).id).payload == payload


def test_b53_payload_of_depth_10000_is_refused(jobs: JobQueue) -> None:
    """Nesting is bounded; no recursion error comes out."""
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]

    with pytest.raises(PayloadError):
        jobs.enqueue("mail", deep)


def test_b54_payload_at_the_limit_is_taken_and_one_byte_more_refused(jobs: JobQueue, open_again: Again) -> None:
    """The error names sizes and never content; nothing is written."""
    small = open_again(config=Config(payload_max_bytes=100))

    assert small.enqueue("mail", "x" * 98).job.payload == "x" * 98
    with pytest.raises(PayloadTooLarge) as raised:
        small.enqueue("mail", "x" * 99)
    assert (raised.value.size, raised.value.limit) == (101, 100)
    assert "xxx" not in str(raised.value)
    assert total(jobs) == 1


def test_b54_payload_of_50_mb_is_refused_by_default(jobs: JobQueue) -> None:
    """The limit is 1 MiB unless it is raised."""
    with pytest.raises(PayloadTooLarge):
        jobs.enqueue("mail", "x" * 50_000_000)
    assert total(jobs) == 0


@pytest.mark.parametrize(
    "delay",
    [
        pytest.param(float("nan"), id="NaN"),
        pytest.param(float("inf"), id="infinity"),
        pytest.param(-float("inf"), id="minus infinity"),
        pytest.param(True, id="bool"),
        pytest.param(10**18, id="10**18"),
        pytest.param(9_000 * 366 * 86_400, id="beyond the year 9999"),
        pytest.param("soon", id="text"),
        pytest.param([1], id="list"),
    ],
)
def test_b52_delay_out_of_range_is_refused(jobs: JobQueue, delay: Any) -> None:
    """A ValueError that names the argument; nothing is written."""
    with pytest.raises(ValueError, match="delay"):
        jobs.enqueue("mail", delay=delay)
    assert total(jobs) == 0


@pytest.mark.parametrize("delay", [pytest.param(-5, id="-5"), pytest.param(-(10**18), id="-10**18")])
def test_b52_negative_delay_means_now(jobs: JobQueue, clock: FakeClock, delay: int) -> None:
    """However far back."""
    assert jobs.enqueue("mail", delay=delay).job.run_at == clock.now()


@pytest.mark.parametrize(
    "when",
    [
        pytest.param(datetime(2024, 1, 1), id="naive"),  # noqa: DTZ001
        pytest.param("2024-01-01", id="text"),
        pytest.param(1704067200, id="number"),
        pytest.param(datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), id="out of range in UTC"),
    ],
)
def test_b52_run_at_that_is_no_instant_is_refused(jobs: JobQueue, when: Any) -> None:
    """Naive datetimes are refused at the edge, and nothing is written."""
    with pytest.raises(ValueError, match="run_at"):
        jobs.enqueue("mail", run_at=when)
    assert total(jobs) == 0


@pytest.mark.parametrize(
    "when",
    [
        pytest.param(datetime(2024, 7, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=45))), id="another zone"),
        pytest.param(datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), id="year 9999"),
        pytest.param(datetime(1969, 12, 31, 23, 59, 59, 1_000, tzinfo=UTC), id="before 1970"),
    ],
)
def test_b52_run_at_is_converted_exactly(jobs: JobQueue, when: datetime) -> None:
    """The same instant in UTC; a past one is kept."""
    job = jobs.get(jobs.enqueue("mail", run_at=when).id)

    assert job.run_at == when
    assert job.run_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        pytest.param({"delay": 1, "run_at": datetime(2024, 1, 1, tzinfo=UTC)}, "delay", id="delay and run_at"),
        pytest.param({"queue": "Mail"}, "queue", id="queue in capitals"),
        pytest.param({"queue": ""}, "queue", id="empty queue"),
        pytest.param({"queue": "q" * 42}, "queue", id="long queue"),
        pytest.param({"queue": "mail\n"}, "queue", id="queue with a newline"),
        pytest.param({"priority": 1001}, "priority", id="priority too high"),
        pytest.param({"priority": -1001}, "priority", id="priority too low"),
        pytest.param({"priority": True}, "priority", id="priority a bool"),
        pytest.param({"priority": 1.0}, "priority", id="priority a float"),
        pytest.param({"dedupe_key": ""}, "dedupe_key", id="empty key"),
        pytest.param({"dedupe_key": "k" * 513}, "dedupe_key", id="long key"),
        pytest.param({"dedupe_key": "\0"}, "dedupe_key", id="NUL in the key"),
        pytest.param({"dedupe_key": 7}, "dedupe_key", id="key a number"),
        pytest.param({"max_attempts": 0}, "max_attempts", id="no attempts"),
        pytest.param({"max_attempts": 10**20}, "max_attempts", id="too many attempts"),
        pytest.param({"parent_id": "1"}, "parent_id", id="parent a text"),
        pytest.param({"parent_id": True}, "parent_id", id="parent a bool"),
        pytest.param({"actor": "robot"}, "actor", id="actor"),
        pytest.param({"tenant_id": ""}, "tenant_id", id="empty tenant"),
        pytest.param({"subject": "\ud800"}, "subject", id="surrogate"),
        pytest.param({"meta": [1]}, "meta", id="meta a list"),
        pytest.param({"meta": {"x": float("nan")}}, "meta", id="meta no JSON"),
    ],
)
def test_enqueue_refuses_options_out_of_range(jobs: JobQueue, options: dict[str, Any], argument: str) -> None:
    """Each by name, and nothing is written."""
    with pytest.raises(ArgumentError) as raised:
        jobs.enqueue("mail", **options)

    assert raised.value.argument == argument
    assert total(jobs) == 0


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("", id="empty"),
        pytest.param("k" * 201, id="long"),
        pytest.param("a\tb", id="control character"),
        pytest.param("a\x85b", id="C1 control character"),
        pytest.param("\ud800", id="surrogate"),
    ],
)
def test_enqueue_refuses_bad_kinds(jobs: JobQueue, kind: str) -> None:
    """A kind is 1 to 200 characters without control characters."""
    with pytest.raises(ArgumentError):
        jobs.enqueue(kind)
    assert total(jobs) == 0


def test_enqueue_refuses_a_parent_that_does_not_exist(jobs: JobQueue) -> None:
    """Also one that no database could hold."""
    for parent_id in (99, 10**30):
        with pytest.raises(JobNotFound):
            jobs.enqueue("mail", parent_id=parent_id)
    assert total(jobs) == 0


def test_enqueue_refuses_a_retired_kind(jobs: JobQueue, open_again: Again) -> None:
    """Here and, once it is registered, in every process."""
    other = open_again()
    jobs.handlers.retire("old")

    with pytest.raises(RetiredKind):
        jobs.enqueue("old")
    jobs.enqueue("new")
    with pytest.raises(RetiredKind):
        other.enqueue("old")
