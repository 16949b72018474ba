"""Enqueueing through the job queue."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
import pytest

import jobq
from jobq import (
    Actor,
    ArgumentError,
    Config,
    DedupeConflict,
    Handlers,
    JobQueue,
    JobState,
    JobStateChanged,
    NewJob,
    PayloadError,
    Priority,
    UnknownKind,
)
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]


@attrs.frozen
class Mail:
    """A payload."""

    to: str
    subject: str = "hello"


@attrs.frozen
class Other:
    """Another class with a field of the same name."""

    to: str


def total(jobs: JobQueue) -> int:
    """Return how many jobs there are."""
    return sum(jobs.counts().values())


def test_enqueue_by_name_stores_a_job_with_the_defaults(jobs: JobQueue, clock: FakeClock) -> None:
    """A producer that has no handler enqueues by name."""
    made = jobs.enqueue("mail", {"to": "ada"})

    job = jobs.get(made.id)
    assert made.created
    assert job == made.job
    assert (job.kind, job.queue, job.state, job.payload) == ("mail", "default", JobState.QUEUED, {"to": "ada"})
    assert (job.priority, job.max_attempts, job.attempts, job.max_deferrals) == (Priority.INGEST, 5, 0, None)
    assert (job.actor, job.run_at, job.created_at) == (Actor.SYSTEM, clock.now(), clock.now())


def test_enqueue_takes_every_option(jobs: JobQueue, clock: FakeClock) -> None:
    """What is named is what is stored."""
    parent = jobs.enqueue("parent")

    job = jobs.enqueue(
        "mail",
        None,
        queue="out-1",
        priority=Priority.USER,
        delay="1h30m",
        dedupe_key="k",
        max_attempts=2,
        parent_id=parent.id,
        actor="agent",
        tenant_id="t",
        subject="s",
        meta={"trace": [1]},
    ).job

    assert (job.queue, job.priority, job.run_at) == ("out-1", 100, clock.now() + timedelta(minutes=90))
    assert (job.dedupe_key, job.max_attempts, job.parent_id, job.actor) == ("k", 2, parent.id, Actor.AGENT)
    assert (job.tenant_id, job.subject, job.meta, job.payload) == ("t", "s", {"trace": [1]}, None)
    assert jobs.get(job.id) == job
    assert "out-1" in [queue.name for queue in jobs.queues()]


def test_enqueue_of_a_typed_value_finds_its_kind(jobs: JobQueue) -> None:
    """By the class of the value, by the handler, or by name: the same job."""

    @jobs.job(queue="mail")
    def send(payload: Mail) -> None: ...

    for made in (jobs.enqueue(Mail("ada")), jobs.enqueue(send, Mail("ada")), jobs.enqueue("send", Mail("ada"))):
        assert (made.job.kind, made.job.queue) == ("send", "mail")
        assert made.job.payload == {"to": "ada", "subject": "hello"}
    assert jobs.enqueue(send, {"to": "ada"}).job.payload == {"to": "ada"}


def test_enqueue_takes_an_enum_for_its_text(jobs: JobQueue) -> None:
    """It is stored as text, so a kind that declares text takes it."""
    jobs.job(name="send", payload=Mail)(lambda payload: None)

    assert jobs.enqueue("send", {"to": JobState.QUEUED}).job.payload == {"to": "queued"}


def test_enqueue_of_a_class_that_nobody_registered_is_refused(jobs: JobQueue) -> None:
    """So is a handler of another registry."""
    stranger = Handlers().job(name="stranger")(lambda payload: None)

    for unknown in (Mail("ada"), stranger):
        with pytest.raises(UnknownKind):
            jobs.enqueue(unknown)
    assert total(jobs) == 0


def test_enqueue_of_a_plain_value_never_names_a_kind(jobs: JobQueue) -> None:
    """A handler that is declared to take a dict is not meant by every dict."""

    @jobs.job
    def take(payload: dict) -> None: ...  # type: ignore[type-arg]

    for plain in ({"to": "ada"}, 7, None):
        with pytest.raises(ArgumentError, match="kind_or_payload"):
            jobs.enqueue(plain)
    assert total(jobs) == 0


def test_enqueue_of_an_ambiguous_class_names_the_kinds(jobs: JobQueue) -> None:
    """Two handlers take the same class: the caller has to say which."""
    jobs.job(name="one", payload=Mail)(lambda payload: None)
    jobs.job(name="two", payload=Mail)(lambda payload: None)

    with pytest.raises(ArgumentError, match="one, two"):
        jobs.enqueue(Mail("ada"))
    assert jobs.enqueue("two", Mail("ada")).job.kind == "two"


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        pytest.param({}, "$.to", id="missing"),
        pytest.param({"to": 5}, "$.to", id="wrong type"),
        pytest.param({"to": "ada", "cc": "bob"}, "$.cc", id="unknown"),
        pytest.param(None, "$", id="null"),
        pytest.param(Other("ada"), "$", id="another class"),
        pytest.param(Mail(5), "$.to", id="a typed value of wrong types"),  # type: ignore[arg-type]
    ],
)
def test_enqueue_checks_the_payload_against_the_kind(jobs: JobQueue, payload: Any, path: str) -> None:
    """Refused with the path while the caller is there to see it, and nothing is written."""
    jobs.job(name="send", payload=Mail)(lambda payload: None)

    with pytest.raises(PayloadError) as raised:
        jobs.enqueue("send", payload)

    assert raised.value.path == path
    assert total(jobs) == 0


def test_enqueue_without_the_handler_takes_the_kinds_registered_defaults(jobs: JobQueue, open_again: Again) -> None:
    """Registration writes with the first verb that writes; a producer then needs no handler."""
    handlers = Handlers()
    handlers.job(name="mail", queue="out", priority=7, max_attempts=3, max_deferrals=2)(lambda payload: None)
    before = jobs.enqueue("mail").job
    consumer = open_again(handlers=handlers)
    consumer.enqueue("other")

    job = jobs.enqueue("mail").job

    assert (before.queue, before.priority, before.max_attempts) == ("default", 50, 5)
    assert (job.queue, job.priority, job.max_attempts, job.max_deferrals) == ("out", 7, 3, 2)


@pytest.mark.parametrize(
    ("argument", "declared", "configured", "registered", "wanted"),
    [
        pytest.param(2, 3, 4, None, 2, id="the argument wins"),
        pytest.param(None, 3, 4, None, 3, id="then what the handler declares"),
        pytest.param(None, None, 4, 6, 4, id="then the configuration, over the kind's row"),
        pytest.param(None, None, None, 6, 6, id="then the kind's row"),
        pytest.param(None, None, None, None, 5, id="else 5"),
    ],
)
def test_max_attempts_comes_from_the_nearest_that_says_so(
    jobs: JobQueue,
    open_again: Again,
    argument: int | None,
    declared: int | None,
    configured: int | None,
    registered: int | None,
    wanted: int,
) -> None:
    """Argument, handler, configuration, row, default."""
    elsewhere, here = Handlers(), Handlers()
    if registered is not None:
        elsewhere.job(name="mail", max_attempts=registered)(lambda payload: None)
    if declared is not None:
        here.job(name="mail", max_attempts=declared)(lambda payload: None)
    open_again(handlers=elsewhere).register()
    producer = open_again(handlers=here, config=Config(max_attempts=configured))

    assert producer.enqueue("mail", max_attempts=argument).job.max_attempts == wanted


def test_kind_limits_win_over_the_declared_cap(open_again: Again) -> None:
    """And are what the kind's row says."""
    handlers = Handlers()
    handlers.job(name="mail", concurrency=2)(lambda payload: None)
    consumer = open_again(handlers=handlers, config=Config(kind_limits={"mail": 7}))
    consumer.register()

    (kind,) = consumer.kinds()
    assert kind.cap == 7


def test_registration_is_written_once(jobs: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until something else is registered; nearly every verb then pays one comparison."""
    written: list[int] = []
    register = jobs.store.register

    def counted(*arguments: Any) -> None:
        written.append(1)
        register(*arguments)

    monkeypatch.setattr(jobs.store, "register", counted)
    jobs.job(name="one")(lambda payload: None)
    for _ in range(3):
        jobs.enqueue("one")
    assert len(written) == 1

    jobs.job(name="two")(lambda payload: None)
    for _ in range(3):
        jobs.enqueue("two")
    assert len(written) == 2


def test_enqueue_many_is_one_transaction(jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """One item that is refused leaves nothing behind: no job, no event."""
    with pytest.raises(PayloadError):
        jobs.enqueue_many([NewJob("mail", 1), NewJob("mail", {2})])
    jobs.enqueue("letter", dedupe_key="k")
    with pytest.raises(DedupeConflict):
        jobs.enqueue_many([NewJob("mail", 1), NewJob("mail", 2, dedupe_key="k")])

    assert total(jobs) == 1
    assert len(events) == 1


def test_enqueue_many_by_chunks_keeps_the_chunks_before_a_refusal(jobs: JobQueue) -> None:
    """Each chunk is a transaction of its own; the source is read chunk by chunk."""
    with pytest.raises(PayloadError):
        jobs.enqueue_many([NewJob("mail", n) for n in (1, 2, 3, {4}, 5)], chunk=2)

    assert total(jobs) == 2


def test_enqueue_many_of_nothing_writes_nothing(jobs: JobQueue) -> None:
    """An empty batch is an empty answer."""
    assert jobs.enqueue_many([]) == []


def test_enqueue_many_takes_a_large_batch(jobs: JobQueue) -> None:
    """More than SQLite has variables."""
    answers = jobs.enqueue_many(NewJob("mail", n) for n in range(40_000))

    assert len({answer.id for answer in answers}) == 40_000
    assert jobs.counts()[JobState.QUEUED] == 40_000


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda jobs: jobs.enqueue_many(["mail"]), id="text in place of NewJob"),
        pytest.param(lambda jobs: jobs.enqueue_many([NewJob("mail")], chunk=0), id="chunk 0"),
        pytest.param(lambda jobs: jobs.enqueue_many([NewJob("mail", priority=2000)]), id="an option"),
    ],
)
def test_enqueue_many_refuses_bad_arguments(jobs: JobQueue, call: Callable[[JobQueue], object]) -> None:
    """As enqueue does."""
    with pytest.raises(ArgumentError):
        call(jobs)
    assert total(jobs) == 0


def test_enqueued_is_a_small_value(jobs: JobQueue) -> None:
    """Comparable, hashable, with a text that names the job."""
    made = jobs.enqueue("mail", dedupe_key="k")
    again = jobs.enqueue("mail", dedupe_key="k")

    assert repr(made) == f"Enqueued(id={made.id}, created=True)"
    assert made != again
    assert made != (made.id, True)
    assert len({made, again}) == 2
    assert made.job is made.job


def test_enqueue_tells_the_bus_after_the_commit(jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """A listener finds the job in the database."""
    found: list[jobq.Job] = []
    jobs.bus.subscribe(JobStateChanged, lambda event: found.append(jobs.get(event.job_id)))

    made = jobs.enqueue("mail")

    assert [(event.job_id, event.previous, event.state) for event in events] == [(made.id, None, JobState.QUEUED)]
    assert found == [made.job]


def test_enqueue_from_a_listener_is_heard_afterwards(jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """Listeners may call any verb."""
    jobs.bus.subscribe(
        JobStateChanged, lambda event: jobs.enqueue("child") if event.kind == "parent" else None
    )

    jobs.enqueue("parent")

    assert [event.kind for event in events] == ["parent", "child"]
