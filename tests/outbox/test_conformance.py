"""What holds for an outbox on every kind of connection."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock
from tests.aborting import aborted
from tests.conftest import ErrorLog
from tests.outbox.conftest import staging, transaction

Make = Callable[..., jobq.Outbox]


def kinds(jobs: jobq.JobQueue) -> list[str]:
    """Return the kinds of all jobs, the first made first."""
    return [job.kind for job in reversed(jobs.find(limit=None))]


def test_a_row_and_its_job_are_committed_together(host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue) -> None:
    """The answer names the row of the outbox; the job is there when the relay was."""
    with staging(outbox, host) as connection:
        host.order(connection, 7)
        made = jobs.enqueue("mail", {"order": 7})
        assert (made.id, made.created, made.job, made.outbox_id) == (None, None, None, 1)

    assert (host.orders(), jobs.find(), outbox.pending().count) == ([7], [], 1)
    assert outbox.relay.tick() == 1
    (job,) = jobs.find()
    assert (jobs.get(job.id).payload, outbox.pending().count, outbox.relay.tick()) == ({"order": 7}, 0, 0)
    assert host.rows()[0]["job_id"] == job.id


def test_an_exception_leaves_neither(host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue) -> None:
    """The outbox rolls nothing back itself; the host does."""
    with aborted(staging(outbox, host)) as connection:
        host.order(connection, 7)
        jobs.enqueue("mail")
        jobs.enqueue_many([jobq.NewJob("mail"), jobq.NewJob("mail")])

    assert (host.orders(), host.rows(), outbox.relay.tick(), jobs.find()) == ([], [], 0, [])


def test_nothing_is_committed_by_the_outbox(host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue) -> None:
    """After the end of the block the host can still roll back."""
    with transaction(host) as connection:
        with outbox.joined(connection):
            jobs.enqueue("mail")
        host.order(connection, 1)
        assert (outbox.pending().count, host.orders(), outbox.relay.tick()) == (0, [], 0)
        host.rollback(connection)
        host.begin(connection)

    assert (outbox.pending().count, host.orders()) == (0, [])


def test_the_host_may_begin_and_end_inside_the_block(host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue) -> None:
    """Several transactions, one after the other; joining begins none."""
    connection = host.connect()
    with outbox.joined(connection):
        for number, end in ((1, host.commit), (2, host.rollback), (3, host.commit)):
            host.begin(connection)
            jobs.enqueue("mail", {"order": number})
            host.order(connection, number)
            end(connection)
    connection.close()
    outbox.relay.tick()

    assert host.orders() == [1, 3]
    assert [jobs.get(job.id).payload for job in reversed(jobs.find())] == [{"order": 1}, {"order": 3}]


def test_published_in_staged_order_a_hundred_at_a_time(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue
) -> None:
    """Single ones and batches."""
    with staging(outbox, host):
        answers = [jobs.enqueue("k0"), *jobs.enqueue_many([jobq.NewJob(f"k{n}") for n in range(1, 130)])]
        answers.append(jobs.enqueue("k130"))

    assert [one.outbox_id for one in answers] == list(range(1, 132))
    assert [outbox.relay.tick() for _ in range(3)] == [100, 31, 0]
    assert kinds(jobs) == [f"k{n}" for n in range(131)]


def test_every_option_is_resolved_when_it_is_staged(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock
) -> None:
    """What changes before the relay comes changes nothing, and delay counts from the staging."""
    options: Any = {"queue": "post", "priority": 7, "max_attempts": 3, "dedupe_key": lambda payload: "derived"}
    jobs.job(name="mail", **options)(lambda payload: None)
    parent = jobs.enqueue("parent").id
    begun = clock.now()
    meta = {"trace": "00-\u00e4\0"}
    with staging(outbox, host):
        jobs.enqueue("mail", {"text": "\u00e4\n\0'%s?"}, delay="1h", parent_id=parent, actor="user", meta=meta)
        jobs.enqueue("other", 5, queue="q", priority=-5, max_attempts=9, tenant_id="t", subject="s", run_at=begun)
    clock.advance("1d")
    jobs.job(name="other", queue="late", priority=9)(lambda payload: None)
    outbox.relay.tick()

    other, mail, _ = (jobs.get(job.id) for job in jobs.find())
    assert (mail.queue, mail.priority, mail.max_attempts, mail.dedupe_key) == ("post", 7, 3, "derived")
    assert (mail.payload, mail.parent_id, mail.actor, mail.meta) == ({"text": "\u00e4\n\0'%s?"}, parent, "user", meta)
    assert (mail.run_at - begun).total_seconds() == 3600
    assert mail.created_at == clock.now()
    assert (other.payload, other.queue, other.priority, other.max_attempts) == (5, "q", -5, 9)
    assert (other.tenant_id, other.subject, other.run_at) == ("t", "s", begun)


def test_the_label_of_a_subject_is_resolved_when_it_is_staged(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue
) -> None:
    """With a handler here or without one; a queue that the enqueue names stands."""
    jobs.job(name="mail", queue="post")(lambda payload: None)
    jobs.labels.set("order:7", "queue", "rush")
    with staging(outbox, host):
        for kind in ("mail", "unheard"):
            jobs.enqueue(kind, subject="order:7")
        jobs.enqueue("mail", subject="order:7", queue="desk")
        jobs.enqueue("mail", subject="order:8")
    jobs.labels.set("order:7", "queue", "late")
    outbox.relay.tick()

    assert [job.queue for job in reversed(jobs.find())] == ["rush", "rush", "desk", "post"]


def test_a_kind_known_by_its_row_alone_is_resolved_too(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, open_again: Callable[..., jobq.JobQueue]
) -> None:
    """A producer without the handler gets the defaults that hold when it stages."""
    worker = open_again()
    worker.job(name="mail", queue="post", priority=7, max_attempts=3, max_deferrals=2)(lambda payload: None)
    worker.register()
    with staging(outbox, host):
        jobs.enqueue("mail")
        jobs.enqueue("unheard")
    later = open_again()
    later.job(name="mail", queue="else")(lambda payload: None)
    later.job(name="unheard", queue="else")(lambda payload: None)
    later.register()
    outbox.relay.tick()

    unheard, mail = jobs.find()
    assert (mail.queue, mail.priority, mail.max_attempts, mail.max_deferrals) == ("post", 7, 3, 2)
    assert (unheard.queue, unheard.priority, unheard.max_attempts) == ("default", 50, 5)


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        pytest.param(lambda jobs: jobs.enqueue("mail", {1: 2}), jobq.PayloadError, id="payload"),
        pytest.param(lambda jobs: jobs.enqueue("mail", queue="No Queue"), jobq.ArgumentError, id="queue"),
        pytest.param(lambda jobs: jobs.enqueue("gone"), jobq.RetiredKind, id="retired"),
        pytest.param(
            lambda jobs: jobs.enqueue_many([jobq.NewJob("mail"), jobq.NewJob("mail", dedupe_key="")]),
            jobq.ArgumentError,
            id="second of two",
        ),
    ],
)
def test_what_an_enqueue_refuses_is_refused_when_it_is_staged(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, refused: Callable[..., object], kind: type[Exception]
) -> None:
    """Nothing of it is staged, and the host's transaction goes on."""
    jobs.handlers.retire("gone")
    with staging(outbox, host) as connection:
        with pytest.raises(kind):
            refused(jobs)
        host.order(connection, 1)

    assert (host.orders(), host.rows()) == ([1], [])


def test_b59_a_crash_between_publish_and_mark_makes_one_job(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the job has run and was pruned before the relay came back."""
    with staging(outbox, host):
        jobs.enqueue("mail")
        jobs.enqueue("keyed", dedupe_key="k")
        jobs.enqueue("keyed", dedupe_key="k")
    with monkeypatch.context() as patch:
        patch.setattr(outbox._contact, "ask", _ask_but_not("note", outbox._contact.ask))
        with pytest.raises(jobq.OutboxUnavailable):
            outbox.relay.tick()
    assert (kinds(jobs), outbox.pending().count) == (["mail", "keyed"], 3)
    jobs.job(name="mail")(lambda payload: None)
    jobs.job(name="keyed")(lambda payload: None)
    assert jobq.Runner(jobs).drain().succeeded == 2
    assert jobs.prune(older_than=0).counts["succeeded"] == 2

    assert (outbox.relay.tick(), outbox.pending().count, jobs.find()) == (0, 0, [])
    assert [row["job_id"] for row in host.rows()] == [1, 2, 2]


def _ask_but_not(name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
    def asked(call: Callable[..., Any], *arguments: Any) -> Any:
        if call.__name__ == name:
            raise jobq.OutboxUnavailable("the test says so")
        return ask(call, *arguments)

    return asked


def test_b17_a_key_that_was_staged_is_held_by_nobody_yet(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue
) -> None:
    """Who enqueues meanwhile has the one job; what was staged finds it, or was rolled back."""
    with aborted(staging(outbox, host)):
        jobs.enqueue("mail", dedupe_key="rolled back")
        first = jobs.enqueue("mail", dedupe_key="rolled back", join=False)
    with staging(outbox, host):
        jobs.enqueue("mail", dedupe_key="k")
        second = jobs.enqueue("mail", dedupe_key="k", join=False)
    outbox.relay.tick()

    assert (first.created, second.created) == (True, True)
    assert [job.id for job in jobs.find()] == [second.id, first.id]
    assert host.rows()[-1]["job_id"] == second.id


def test_two_relays_at_once_make_each_job_once(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, make_outbox: Make
) -> None:
    """They read the same rows, and the table of what was published decides."""
    with staging(outbox, host):
        jobs.enqueue_many([jobq.NewJob(f"k{n}") for n in range(20)])
    barrier = threading.Barrier(2)
    both = outbox, make_outbox(host)
    for one in both:
        one.relay._read = _after(barrier, one.relay._read)  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        counts = [future.result(20) for future in [pool.submit(one.relay.tick) for one in both]]

    assert (sum(counts), kinds(jobs)) == (20, [f"k{n}" for n in range(20)])
    assert outbox.pending().count == 0


def _after(barrier: threading.Barrier, call: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*arguments: Any) -> Any:
        barrier.wait(20)
        return call(*arguments)

    return wait


def _break_text(host: Any, jobs: jobq.JobQueue) -> Callable[[], object]:
    text = host.rows()[1]["draft"]
    host.spoil(2, "draft", text[:-1])
    return lambda: host.spoil(2, "draft", text)


def _age_text(host: Any, jobs: jobq.JobQueue) -> Callable[[], object]:
    text = host.rows()[1]["draft"]
    host.spoil(2, "draft", json.dumps({**json.loads(text), "v": 2}))
    return lambda: host.spoil(2, "draft", text)


def _take_key(host: Any, jobs: jobq.JobQueue) -> Callable[[], object]:
    holder = jobs.enqueue("holder", dedupe_key="k").id
    return lambda: jobs.cancel(holder)


def _lose_parent(host: Any, jobs: jobq.JobQueue) -> Callable[[], object]:
    text = host.rows()[1]["draft"]
    host.spoil(2, "draft", json.dumps({**json.loads(text), "parent_id": 99}))
    return lambda: host.spoil(2, "draft", text)


def _break_constraint(host: Any, jobs: jobq.JobQueue) -> Callable[[], object]:
    text = host.rows()[1]["draft"]
    host.spoil(2, "draft", json.dumps({**json.loads(text), "priority": 5000}))
    return lambda: host.spoil(2, "draft", text)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        pytest.param(_break_text, "ArgumentError", id="broken text"),
        pytest.param(_age_text, "version", id="another version"),
        pytest.param(_take_key, "DedupeConflict", id="key taken"),
        pytest.param(_lose_parent, "JobNotFound", id="no such parent"),
        pytest.param(_break_constraint, "priority", id="out of range"),
    ],
)
def test_b59_a_row_that_cannot_be_published_stops_no_other(
    host: Any,
    outbox: jobq.Outbox,
    jobs: jobq.JobQueue,
    clock: FakeClock,
    break_it: Callable[..., Callable[[], object]],
    says: str,
) -> None:
    """It is kept with its error and tried again after growing pauses; once it is mended it is published."""
    with staging(outbox, host):
        jobs.enqueue("first")
        jobs.enqueue("second", dedupe_key="k")
        jobs.enqueue("third")
    mend = break_it(host, jobs)
    assert outbox.relay.tick() == 2
    assert [kind for kind in kinds(jobs) if kind != "holder"] == ["first", "third"]
    (failure,) = outbox.failing()
    assert (failure.outbox_id, failure.kind, failure.attempts) == (2, "second", 1)
    assert says in failure.error
    pauses = []
    for _ in range(11):
        due = outbox.relay.next_due()
        assert due is not None
        pauses.append((due - clock.now()).total_seconds())
        clock.advance(pauses[-1] - 0.001)
        assert (outbox.relay.tick(), outbox.failing()[0].attempts) == (0, len(pauses))
        clock.advance(0.001)
        outbox.relay.tick()
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    mend()
    clock.advance("5m")

    assert (outbox.relay.tick(), outbox.failing(), outbox.pending().count) == (1, [], 0)
    assert kinds(jobs)[-1] == "second"


def test_pending_counts_and_says_how_old(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock
) -> None:
    """Of what is committed."""
    assert outbox.pending() == jobq.OutboxPending(count=0, failing=0, age=None)
    with staging(outbox, host):
        jobs.enqueue("mail")
    clock.advance(90)
    with staging(outbox, host):
        jobs.enqueue("mail")
    host.spoil(2, "draft", "?")

    assert outbox.pending() == jobq.OutboxPending(count=2, failing=0, age=90.0)
    outbox.relay.tick()
    assert outbox.pending() == jobq.OutboxPending(count=1, failing=1, age=0.0)


def test_a_closed_connection_is_refused(host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue) -> None:
    """When it is joined or is to make the table, with the fix; a session has none to close."""
    connection = host.connect()
    connection.close()
    if type(connection).__name__ in ("Session", "scoped_session"):
        pytest.skip("a session that was closed begins anew")

    with pytest.raises(jobq.OutboxUnavailable) as caught, outbox.joined(connection):
        jobs.enqueue("mail")
    assert caught.value.fix
    with pytest.raises(jobq.OutboxUnavailable):
        outbox.create_table(connection)


def test_making_the_table_again_changes_nothing(host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue) -> None:
    """Nor does making it on a connection of the host's."""
    with staging(outbox, host) as connection:
        outbox.create_table(connection)
        jobs.enqueue("mail")
    outbox.create_table()

    assert len(host.rows()) == 1


def test_trouble_with_the_hosts_database_is_typed(
    host: Any, jobs: jobq.JobQueue, errors: ErrorLog
) -> None:
    """Whatever connect() raises; its text is not shown, for it may hold a password."""

    def connect() -> Any:
        raise ConnectionError("postgres://eve:hush@db")

    outbox = jobq.Outbox(jobs, connect=connect)
    for call in (outbox.relay.tick, outbox.pending, outbox.create_table):
        with pytest.raises(jobq.OutboxUnavailable, match="ConnectionError") as caught:
            call()
        assert "hush" not in str(caught.value)
