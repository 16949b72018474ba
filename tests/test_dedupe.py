"""Dedupe keys through the job queue."""

import threading

import attrs
import pytest

from jobq import (
    ArgumentError,
    DedupeConflict,
    Enqueued,
    JobQueue,
    JobState,
    NewJob,
)
from jobq.testing import FakeClock
from tests.conftest import PATIENCE


@attrs.frozen
class Mail:
    """A payload."""

    to: str
    subject: str = "hello"


def total(jobs: JobQueue) -> int:
    """Return how many jobs there are."""
    return sum(jobs.counts().values())


def test_dedupe_key_is_derived_from_the_typed_payload(jobs: JobQueue) -> None:
    """By the kind's function; an explicit key wins."""
    jobs.job(name="send", payload=Mail, dedupe_key=lambda mail: f"mail:{mail.to}")(lambda payload: None)

    first, again = jobs.enqueue(Mail("ada")), jobs.enqueue("send", {"to": "ada"})
    explicit = jobs.enqueue(Mail("ada"), dedupe_key="welcome")

    assert first.job.dedupe_key == "mail:ada"
    assert (again.id, again.created) == (first.id, False)
    assert (explicit.created, explicit.job.dedupe_key) == (True, "welcome")


def test_dedupe_key_that_is_derived_badly_is_refused(jobs: JobQueue) -> None:
    """None is no key; an empty one is a mistake."""
    jobs.job(name="none", dedupe_key=lambda payload: None)(lambda payload: None)
    jobs.job(name="empty", dedupe_key=lambda payload: "")(lambda payload: None)

    assert jobs.enqueue("none").job.dedupe_key is None
    with pytest.raises(ArgumentError, match="dedupe_key"):
        jobs.enqueue("empty")


def test_b20_key_is_held_until_the_job_has_ended(jobs: JobQueue, clock: FakeClock) -> None:
    """While it runs, waits for its backoff or is deferred the key answers with the job; then it is free."""
    first = jobs.enqueue("mail", dedupe_key="k")

    (lease,) = jobs.lease(worker="w")
    running = jobs.enqueue("mail", dedupe_key="k")
    jobs.fail(lease, "no luck")
    backing_off = jobs.enqueue("mail", dedupe_key="k")
    clock.advance("1h")
    (lease,) = jobs.lease(worker="w")
    jobs.defer(lease, delay="1h")
    deferred = jobs.enqueue("mail", dedupe_key="k")
    clock.advance("1h")
    (lease,) = jobs.lease(worker="w")
    jobs.complete(lease)
    fresh = jobs.enqueue("mail", dedupe_key="k")

    assert [running, backing_off, deferred] == [Enqueued(first._placed._replace(created=False), jobs.wait)] * 3
    assert running.job.state == JobState.RUNNING
    assert fresh.created
    assert fresh.id != first.id


def test_b20_fifty_threads_enqueue_one_key_and_make_one_row(jobs: JobQueue) -> None:
    """One created it, the others were told its id."""
    start, made = threading.Barrier(50), []

    def enqueue() -> None:
        start.wait(PATIENCE)
        made.append(jobs.enqueue("mail", dedupe_key="k"))

    threads = [threading.Thread(target=enqueue) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert [one.created for one in made].count(True) == 1
    assert len({one.id for one in made}) == 1
    assert total(jobs) == 1


def test_b18_key_is_held_while_the_failed_job_backs_off(jobs: JobQueue) -> None:
    """A job that fails while the same key is enqueued answers the second enqueue."""
    first = jobs.enqueue("mail", dedupe_key="k")
    (lease,) = jobs.lease(worker="w")
    jobs.fail(lease, "no luck")

    second = jobs.enqueue("mail", dedupe_key="k")

    assert (second.id, second.created) == (first.id, False)


def test_dedupe_key_of_another_kind_conflicts(jobs: JobQueue) -> None:
    """Keys are global to the database."""
    holder = jobs.enqueue("mail", dedupe_key="k")

    with pytest.raises(DedupeConflict) as raised:
        jobs.enqueue("letter", dedupe_key="k")

    assert raised.value.holder == holder.id
    assert total(jobs) == 1


def test_enqueue_many_answers_in_input_order_and_honours_keys(jobs: JobQueue) -> None:
    """A key that an earlier item of the batch took answers with that item's job."""
    answers = jobs.enqueue_many(
        NewJob("mail", {"n": n}, dedupe_key=key) for n, key in enumerate(["a", None, "a", "b"])
    )

    assert [answer.created for answer in answers] == [True, True, False, True]
    assert answers[2].id == answers[0].id
    assert [jobs.get(answer.id).payload["n"] for answer in answers] == [0, 1, 0, 3]


def test_job_that_held_the_key_is_shown_as_it_was(jobs: JobQueue) -> None:
    """Enqueued.job is a snapshot."""
    jobs.enqueue("mail", dedupe_key="k")
    (lease,) = jobs.lease(worker="w")
    again = jobs.enqueue("mail", dedupe_key="k")
    jobs.complete(lease)

    assert again.job.state == JobState.RUNNING
