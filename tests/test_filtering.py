"""Requeue and cancel by what jobs have in common, in batches, with a dry run."""

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq import (
    ArgumentError,
    Config,
    JobQueue,
    JobState,
    JobStateChanged,
    KindNotAccepted,
    NewJob,
    QueueConfig,
    Requeued,
)
from jobq.batches import BATCH, REST
from jobq.filtering import Where
from jobq.testing import FakeClock


def fail(jobs: JobQueue, kind: str = "mail", code: str = "bounced", **options: Any) -> int:
    """Make a job that failed and return its id."""
    made = jobs.enqueue(kind, **options)
    (lease,) = jobs.lease(kind, worker="w")
    assert lease.id == made.id
    jobs.fail(lease, "no luck", code=code, permanent=True)
    return made.id


def states(jobs: JobQueue, *ids: int) -> list[str]:
    """Return the states of these jobs."""
    return [jobs.get(job_id).state.value for job_id in ids]


def test_requeue_by_filter_reaches_what_fits(jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """Into another queue, too; the rest stays as it is."""
    jobs.enqueue("other", queue="slow")
    fitting, kind, code = fail(jobs), fail(jobs, "note"), fail(jobs, code="timeout")
    told = len(events)

    answer = jobs.requeue(where={"state": "failed", "kind": "mail", "failure_reason": "bounced"}, queue="slow")

    assert answer == Requeued((fitting,))
    assert states(jobs, fitting, kind, code) == ["queued", "failed", "failed"]
    assert jobs.get(fitting).queue == "slow"
    assert [event.job_id for event in events[told:]] == [fitting]


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        pytest.param({"state": "failed"}, [0, 1, 2], id="state"),
        pytest.param({"kind": "note"}, [1], id="kind"),
        pytest.param({"queue": "slow"}, [2], id="queue"),
        pytest.param({"failure_reason": "timeout"}, [0], id="error code"),
        pytest.param({"subject": "order:7"}, [1], id="subject"),
        pytest.param({"tenant_id": "acme"}, [2], id="tenant"),
        pytest.param({"older_than": "1h"}, [0], id="older"),
        pytest.param({"newer_than": "1h"}, [1, 2], id="newer"),
        pytest.param({"state": JobState.FAILED, "older_than": 3600, "kind": None}, [0], id="several"),
        pytest.param({"state": "failed", "limit": 2}, [1, 2], id="limit"),
        pytest.param({"kind": "mail", "limit": 1}, [2], id="limit without a state"),
        pytest.param({"state": "failed", "older_than": "9000d"}, [], id="older than all"),
    ],
)
def test_each_keyword_of_find_narrows_a_requeue(
    jobs: JobQueue, clock: FakeClock, where: dict[str, Any], fits: list[int]
) -> None:
    """A dry run answers with the ids, changes nothing, and the real one does what it said."""
    made = [fail(jobs, code="timeout")]
    clock.advance("1h")
    made += [fail(jobs, "note", subject="order:7"), fail(jobs, queue="slow", tenant_id="acme")]
    wanted = tuple(made[index] for index in fits)
    before = jobs.find(limit=None)

    dry = jobs.requeue(where=where, dry_run=True)  # type: ignore[arg-type]

    assert dry == Requeued(wanted)
    assert (jobs.find(limit=None), jobs.changes()) == (before, [])
    assert jobs.requeue(where=where) == dry  # type: ignore[arg-type]
    assert tuple(job.id for job in reversed(jobs.find(state="queued"))) == wanted


def test_a_filter_without_a_state_means_what_the_verb_can_change(jobs: JobQueue) -> None:
    """Nobody wants to read that a million jobs have succeeded; a state that is named is answered for."""
    done = jobs.enqueue("mail").id
    jobs.complete(jobs.lease("mail", worker="w")[0])
    failed, running, waiting = fail(jobs), jobs.enqueue("mail").id, jobs.enqueue("mail", delay="1h").id
    jobs.lease("mail", worker="w")

    assert jobs.requeue(where={"kind": "mail"}, dry_run=True) == Requeued((failed, waiting))
    assert jobs.requeue(where={"state": "succeeded"}) == Requeued((), ((done, "succeeded"),))
    assert jobs.cancel(where={"kind": "mail"}, dry_run=True) == (running, waiting)
    assert jobs.cancel(where={"kind": "mail", "state": "queued"}) == (waiting,)
    assert states(jobs, done, failed, running, waiting) == ["succeeded", "failed", "running", "cancelled"]


def test_cancel_by_filter_asks_the_running_ones(jobs: JobQueue) -> None:
    """As with ids: the running handler is asked, the queued jobs end at once."""
    running, waiting, other = jobs.enqueue("mail").id, jobs.enqueue("mail").id, jobs.enqueue("note").id
    (lease,) = jobs.lease("mail", worker="w")

    assert jobs.cancel(where={"kind": "mail"}) == (running, waiting)

    assert jobs.extend(lease).cancel_requested
    assert states(jobs, running, waiting, other) == ["running", "cancelled", "queued"]


def test_cancel_by_filter_reaches_what_is_below_jobs_that_ended(jobs: JobQueue) -> None:
    """With children, in one transaction; parents of every state are meant."""
    parent = jobs.enqueue("batch").id
    (lease,) = jobs.lease("batch", worker="w")
    part = jobs.enqueue("mail", parent_id=parent).id
    jobs.complete(lease)

    assert jobs.cancel(where={"kind": "batch"}) == ()
    assert jobs.cancel(where={"kind": "batch"}, children=True) == (part,)


def test_requeue_into_a_queue_that_accepts_other_kinds(jobs: JobQueue, open_again: Callable[..., JobQueue]) -> None:
    """A bare id raises the typed error."""
    job_id = fail(jobs)
    strict = open_again(config=Config(queues={"notes": QueueConfig(kinds=["note"])}))

    with pytest.raises(KindNotAccepted) as caught:
        strict.requeue(job_id, queue="notes")

    assert (caught.value.kind, caught.value.queue, caught.value.accepted) == ("mail", "notes", ("note",))
    assert states(jobs, job_id) == ["failed"]


def test_many_jobs_are_dealt_with_in_several_transactions(jobs: JobQueue) -> None:
    """So that nobody waits long for the write lock; inside a transaction of the host's it is all or nothing."""
    count = 2 * BATCH + 1
    made = tuple(one.id for one in jobs.enqueue_many([NewJob("mail") for _ in range(count)]))
    batches: list[int] = []
    store, real = jobs.store, jobs.store.cancel

    def counted(ids: Any, **options: Any) -> Any:
        batches.append(len(ids))
        return real(ids, **options)

    store.cancel = counted  # type: ignore[method-assign]

    def fail_late() -> None:
        with jobs.transaction():
            assert jobs.cancel(where={"kind": "mail"}) == made
            raise LookupError

    with pytest.raises(LookupError):
        fail_late()
    assert jobs.counts()[JobState.QUEUED] == count
    assert jobs.cancel(where={"kind": "mail"}) == made
    assert batches == [BATCH, BATCH, 1] * 2
    assert jobs.requeue(where={"state": "cancelled"}).ids == made
    assert len(jobs.changes(limit=10_000)) == count


def test_others_get_the_write_lock_between_two_transactions(tmp_path: Path) -> None:
    """SQLite's wait is not fair: without a rest another process hardly ever finds the lock free, and gives up."""
    with jobq.open(tmp_path / "jobs.db") as jobs:
        jobs.enqueue_many([NewJob("mail") for _ in range(2 * BATCH + 1)])
        held: list[float] = []
        real = {"cancel": jobs.store.cancel, "requeue": jobs.store.requeue, "heal": jobs.store.heal}

        def timed(verb: str) -> Any:
            def run(*arguments: Any, **options: Any) -> Any:
                held.append(time.monotonic())
                answer = real[verb](*arguments, **options)
                held.append(time.monotonic())
                return answer

            return run

        for verb in real:
            setattr(jobs.store, verb, timed(verb))
        calls: list[Callable[[], object]] = [
            lambda: jobs.cancel(where={"kind": "mail"}), lambda: jobs.requeue(where={"kind": "mail"}),
        ]  # fmt: skip
        for call in calls:
            held.clear()
            call()
            gaps = [later - sooner for sooner, later in zip(held[1::2], held[2::2], strict=False)]
            assert len(gaps) == 2
            assert min(gaps) >= REST
        held.clear()
        jobs.cancel(where={"kind": "mail"}, dry_run=True)
        assert len(held) == 2


def test_b18_requeue_by_filter_of_three_of_which_one_clashes(jobs: JobQueue) -> None:
    """The other two run; the clash names who holds the key; a dry run knows of it."""
    first, clash, third = fail(jobs), fail(jobs, dedupe_key="k"), fail(jobs)
    holder = jobs.enqueue("mail", dedupe_key="k").id

    dry = jobs.requeue(where={"state": "failed"}, dry_run=True)
    answer = jobs.requeue(where={"state": "failed"})

    assert dry == answer
    assert answer == Requeued((first, third), ((clash, f"dedupe key held by job {holder}"),))
    assert states(jobs, clash) == ["failed"]


def test_b20_a_requeued_job_holds_its_key_again(jobs: JobQueue) -> None:
    """An enqueue under it answers with that job, until it has ended."""
    job_id = fail(jobs, dedupe_key="k")
    jobs.requeue(where={"dedupe_key": "k"})

    assert jobs.enqueue("mail", dedupe_key="k").id == job_id
    jobs.cancel(job_id)
    assert jobs.enqueue("mail", dedupe_key="k").created


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda jobs: jobs.requeue(), id="nothing"),
        pytest.param(lambda jobs: jobs.requeue(1, where={"state": "failed"}), id="both"),
        pytest.param(lambda jobs: jobs.cancel(), id="cancel nothing"),
        pytest.param(lambda jobs: jobs.cancel([1], where={"state": "queued"}), id="cancel both"),
        pytest.param(lambda jobs: jobs.requeue(where={}), id="every job"),
        pytest.param(lambda jobs: jobs.cancel(where={"kind": None, "limit": 5}), id="every job, in effect"),
        pytest.param(lambda jobs: jobs.requeue(where="failed"), id="text"),
        pytest.param(lambda jobs: jobs.requeue(where={"state": "done"}), id="state"),
        pytest.param(lambda jobs: jobs.requeue(where={"older_than": -1}), id="negative age"),
        pytest.param(lambda jobs: jobs.requeue(where={"older_than": "soon"}), id="age"),
        pytest.param(lambda jobs: jobs.find(newer_than=True), id="age of find"),
        pytest.param(lambda jobs: jobs.changes(1, subject="s"), id="changes of both"),
        pytest.param(lambda jobs: jobs.changes(subject=""), id="changes of no subject"),
    ],
)
def test_bad_filters_are_refused(jobs: JobQueue, call: Callable[[JobQueue], object]) -> None:
    """With the argument's name, and nothing is written."""
    job_id = fail(jobs)

    with pytest.raises(ArgumentError):
        call(jobs)
    assert (states(jobs, job_id), jobs.changes()) == (["failed"], [])


def test_an_unknown_keyword_names_the_nearest_one(jobs: JobQueue) -> None:
    """A misspelt one must not widen the search."""
    with pytest.raises(ArgumentError) as caught:
        jobs.requeue(where={"sate": "failed"})  # type: ignore[typeddict-unknown-key]
    assert caught.value.fix == "Did you mean state?"
    with pytest.raises(ArgumentError, match="no keyword"):
        jobs.cancel(where={"zzz": 1})  # type: ignore[typeddict-unknown-key]


def test_every_keyword_of_find_is_one_of_a_filter() -> None:
    """The two do not drift apart."""
    assert set(Where.__annotations__) == set(inspect.signature(jobq.JobQueue.find).parameters) - {"self"}
