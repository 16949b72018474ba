"""Who joins what: the innermost block of a thread, and nothing on other threads."""

import contextvars
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock, MemoryDatabase, running_job
from tests.aborting import aborted


@pytest.fixture
def memory() -> MemoryDatabase:
    """A host's database."""
    return MemoryDatabase()


@pytest.fixture
def outbox(jobs: jobq.JobQueue, memory: MemoryDatabase) -> jobq.Outbox:
    """An outbox in it."""
    return jobq.Outbox(jobs, connect=memory.connect)


@pytest.fixture
def connection(memory: MemoryDatabase) -> Any:
    """A connection to it."""
    return memory.connect()


@pytest.fixture
def required(jobs: jobq.JobQueue, memory: MemoryDatabase) -> jobq.Outbox:
    """An outbox that requires transactions."""
    return jobq.Outbox(jobs, connect=memory.connect, mode="required")


def in_a_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns on another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *arguments).result(20)


def staged(connection: Any) -> list[str]:
    """Return the kinds that were staged through a connection and not committed."""
    return [row.kind for row in connection.staged]


def test_every_way_to_enqueue_is_staged(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """By kind, by handler, many at once, on the installed job queue, and as a child of a running job."""
    handlers = jobq.Handlers()
    loose = handlers.job(name="loose")(lambda payload: None)
    mine = jobs.job(name="mine")(lambda payload: None)
    jobq.install(jobs)
    try:
        with outbox.joined(connection):
            answers = [jobs.enqueue("a"), mine.enqueue(), loose.enqueue()]
            answers += jobs.enqueue_many([jobq.NewJob("b"), jobq.NewJob("c")], chunk=1)
            answers.append(running_job(id=7, jobs=jobs, tenant_id="t").enqueue("child"))
    finally:
        jobq.install(None)

    assert staged(connection) == ["a", "mine", "loose", "b", "c", "child"]
    assert [answer.outbox_id for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert '"parent_id":7' in connection.staged[-1].draft
    assert '"tenant_id":"t"' in connection.staged[-1].draft


def test_a_follow_up_is_not_staged(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """It belongs to the success of its job."""
    job = running_job(jobs=jobs)
    with outbox.joined(connection):
        job.follow_up("mail")

    assert (staged(connection), len(job.follow_ups)) == ([], 1)


def test_the_innermost_block_wins(jobs: jobq.JobQueue, outbox: jobq.Outbox, memory: MemoryDatabase) -> None:
    """Of transactions and of joined connections, in any order."""
    outer, inner = memory.connect(), memory.connect()
    with jobs.transaction():
        jobs.enqueue("file1")
        with outbox.joined(outer):
            jobs.enqueue("outer1")
            with outbox.joined(inner):
                jobs.enqueue("inner")
                with jobs.transaction():
                    jobs.enqueue("file2")
            jobs.enqueue("outer2")
        jobs.enqueue("file3")
    jobs.enqueue("file4")

    assert (staged(outer), staged(inner)) == (["outer1", "outer2"], ["inner"])
    assert [job.kind for job in reversed(jobs.find())] == ["file1", "file2", "file3", "file4"]


def test_a_transaction_inside_is_the_innermost(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """It ends before the joined block does; afterwards that counts again, also when it failed."""
    with outbox.joined(connection):
        with jobs.transaction():
            jobs.enqueue("file")
        with aborted(jobs.transaction()):
            jobs.enqueue("gone")
        jobs.enqueue("staged")

    assert (staged(connection), [job.kind for job in jobs.find()]) == (["staged"], ["file"])


def test_other_threads_do_not_join(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """Not even with a copy of the context."""
    with outbox.joined(connection):
        made = in_a_thread(contextvars.copy_context().run, jobs.enqueue, "direct")
        jobs.enqueue("staged")

    assert (staged(connection), [job.id for job in jobs.find()]) == (["staged"], [made.id])


def test_every_job_queue_of_the_file_joins(
    outbox: jobq.Outbox, connection: Any, open_again: Callable[..., jobq.JobQueue], clock: FakeClock
) -> None:
    """One of another file does not."""
    with jobq.open(clock=clock) as other:
        with outbox.joined(connection):
            open_again().enqueue("staged")
            other.enqueue("direct")
        assert [job.kind for job in other.find()] == ["direct"]

    assert staged(connection) == ["staged"]


def test_join_false_escapes(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """At once from a joined block; from a transaction when that has ended."""
    with outbox.joined(connection):
        made = jobs.enqueue("direct", join=False)
        assert jobs.get(made.id).kind == "direct"
    with jobs.transaction(), outbox.joined(connection):
        later = jobs.enqueue("later", join=False)
        assert (later.id, later.outbox_id, len(jobs.find())) == (None, None, 1)

    assert (staged(connection), jobs.find()[0].kind) == ([], "later")


def test_an_answer_that_was_staged_cannot_be_waited_for(
    jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any
) -> None:
    """It has no id; the error says how to find the job."""
    with outbox.joined(connection):
        made = jobs.enqueue("mail")

    with pytest.raises(jobq.NotPublished) as caught:
        made.wait(30)
    assert (caught.value.outbox_id, "find" in str(caught.value.fix)) == (1, True)
    assert repr(made) == "Enqueued(id=None, created=None, outbox_id=1)"
    assert made != jobq.Enqueued.staged(2)
    assert made == jobq.Enqueued.staged(1)


def test_other_verbs_act_at_once(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """They are no part of the host's transaction."""
    waiting = jobs.enqueue("mail").id
    with outbox.joined(connection):
        assert jobs.cancel(waiting) is True
        jobs.pause("default")
        assert in_a_thread(jobs.get, waiting).state == "cancelled"
    connection.rollback()

    assert jobs.queues()[0].paused


def test_what_a_listener_enqueues_is_not_staged(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """The event is none of the host's transaction, whoever delivers it."""
    waiting = jobs.enqueue("mail").id
    jobs.bus.subscribe(jobq.JobStateChanged, lambda event: event.state == "cancelled" and jobs.enqueue("answer"))
    with outbox.joined(connection):
        jobs.cancel(waiting)
        jobs.enqueue("staged")

    assert (staged(connection), jobs.find()[0].kind) == (["staged"], "answer")


def test_a_drain_is_refused(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """What its handlers enqueue would be staged in the host's transaction."""
    jobs.enqueue("mail")
    with outbox.joined(connection), pytest.raises(jobq.InsideTransaction):
        jobq.Runner(jobs).drain()


def test_a_tick_inside_a_transaction_is_refused(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """Its rows would be marked as published although the transaction may be rolled back with their jobs."""
    with outbox.joined(connection):
        jobs.enqueue("mail")
    connection.commit()
    with aborted(jobs.transaction()), pytest.raises(jobq.InsideTransaction):
        outbox.relay.tick()
    assert outbox.pending().count == 1

    assert (outbox.relay.tick(), [job.kind for job in jobs.find()]) == (1, ["mail"])


def test_required_refuses_an_enqueue_outside(jobs: jobq.JobQueue, required: jobq.Outbox, connection: Any) -> None:
    """With the fix and nothing written; a transaction of either kind is what it asks for."""
    for enqueue in (
        lambda: jobs.enqueue("mail"),
        lambda: jobs.enqueue_many([jobq.NewJob("mail")]),
        lambda: in_a_thread(jobs.enqueue, "mail"),
        lambda: running_job(jobs=jobs).enqueue("child"),
    ):
        with pytest.raises(jobq.OutsideTransaction) as caught:
            enqueue()
        assert "joined" in str(caught.value.fix)
    with required.joined(connection):
        jobs.enqueue("staged")
    with jobs.transaction():
        jobs.enqueue("file")
    jobs.enqueue("escaped", join=False)

    assert (staged(connection), [job.kind for job in jobs.find()]) == (["staged"], ["escaped", "file"])


def test_optional_lets_it_through(jobs: jobq.JobQueue, outbox: jobq.Outbox) -> None:
    """It is the default."""
    assert jobs.enqueue("mail").created


def test_publishing_needs_no_transaction_of_anybody(
    jobs: jobq.JobQueue, required: jobq.Outbox, connection: Any
) -> None:
    """The relay, schedules, and what a handler follows up."""
    with required.joined(connection):
        jobs.enqueue("mail")
    connection.commit()
    assert required.relay.tick() == 1
    jobs.schedules.add("s", every="1m", kind="mail")
    jobs.job(name="mail")(lambda payload, job: job.follow_up("next") if job.slot is None else None)

    assert jobq.Runner(jobs).drain(until="1m").succeeded == 2
    assert jobs.counts(kind="next")["queued"] == 1


@pytest.fixture
def plain(tmp_path: Any) -> Iterator[Callable[..., sqlite3.Connection]]:
    """Opens the host's file with the standard module, in a mode of the test's."""
    opened: list[sqlite3.Connection] = []

    def connect(**options: Any) -> sqlite3.Connection:
        opened.append(sqlite3.connect(tmp_path / "shop.sqlite", **options))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def test_required_refuses_autocommit_of_sqlite3(
    jobs: jobq.JobQueue, plain: Callable[..., sqlite3.Connection]
) -> None:
    """With an isolation level an INSERT begins a transaction; without one only BEGIN does."""
    outbox = jobq.Outbox(jobs, connect=plain, mode="required")
    outbox.create_table()
    usual = plain()
    with outbox.joined(usual):
        jobs.enqueue("mail")
    usual.rollback()
    bare = plain(isolation_level=None)
    with pytest.raises(jobq.OutsideTransaction), outbox.joined(bare):
        pass
    bare.execute("BEGIN")
    with outbox.joined(bare):
        assert jobs.enqueue("mail").outbox_id == 1
        bare.execute("ROLLBACK")
        with pytest.raises(jobq.OutsideTransaction):
            jobs.enqueue("mail")

    assert outbox.pending().count == 0


def test_a_forked_child_does_not_join(jobs: jobq.JobQueue, outbox: jobq.Outbox, connection: Any) -> None:
    """The connection is the parent's; what the child enqueues is committed at once."""
    with outbox.joined(connection):
        child = os.fork()
        if child == 0:
            try:
                jobs.enqueue("childs")
            finally:
                os._exit(len(connection.staged))
        _, status = os.waitpid(child, 0)
        jobs.enqueue("parents")

    assert (os.WEXITSTATUS(status), staged(connection)) == (0, ["parents"])
    assert [job.kind for job in jobs.find()] == ["childs"]


def test_places_of_threads_are_their_own(jobs: jobq.JobQueue, outbox: jobq.Outbox, memory: MemoryDatabase) -> None:
    """Two threads have each joined their own connection at the same time."""
    barrier = threading.Barrier(2)

    def work(kind: str) -> list[str]:
        connection = memory.connect()
        with outbox.joined(connection):
            barrier.wait(20)
            jobs.enqueue(kind)
            barrier.wait(20)
        return staged(connection)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, ["a", "b"])) == [["a"], ["b"]]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"mode": "always"}, id="mode"),
        pytest.param({"connect": "shop.sqlite"}, id="connect"),
        pytest.param({"jobs": "jobs.db"}, id="jobs"),
        pytest.param({"keep": "soon"}, id="keep"),
    ],
)
def test_a_bad_argument_is_refused(
    jobs: jobq.JobQueue, memory: MemoryDatabase, arguments: dict[str, Any]
) -> None:
    """And the job queue is as it was."""
    with pytest.raises(jobq.ArgumentError) as caught:
        jobq.Outbox(**{"jobs": jobs, "connect": memory.connect, "mode": "required", **arguments})

    assert caught.value.fix
    assert jobs.enqueue("mail").created
