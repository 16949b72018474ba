"""The watch: what other processes do is noticed soon, and looking costs next to nothing."""

import collections
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest

import jobq
from jobq.gate import Permit
from jobq.runtime.parts import Parts
from jobq.runtime.pool import Pool
from tests.runtime.conftest import PATIENCE, Changes

Open = Callable[..., jobq.JobQueue]


class Verbs:
    """A store that counts the calls of its verbs."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: collections.Counter[str] = collections.Counter()

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return verb(*args, **kwargs)

        return counted


class Watched:
    """A watch with one pool whose only thread is idle, and the count of its store's verbs."""

    def __init__(self, jobs: jobq.JobQueue) -> None:
        describe: Any = None
        self.jobs = jobs
        jobs.job(name="note")(lambda payload: None)
        jobs.register()
        self.parts = Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)
        self.pool = Pool("default", on_idle=lambda: None)
        self.parts.watch.pools = lambda: (self.pool,)
        self.parts.exchange.request(None)
        self.seat = self.pool.seat("w")
        self.pool.share(self.pool.reserve(self.seat), [None])
        self.thread = threading.Thread(target=self.pool.rest, args=(self.seat,))
        self.thread.start()
        while not self.pool.idle:
            pass
        self.parts.watch.tick()
        self.verbs = Verbs(jobs._store)
        jobs._store = self.verbs  # type: ignore[assignment]

    @property
    def woken(self) -> bool:
        """Whether the idle thread was woken."""
        self.thread.join(0.3)
        return not self.thread.is_alive()

    def close(self) -> None:
        """Let the thread end."""
        self.pool.close()
        self.thread.join(PATIENCE)


@pytest.fixture
def watched(jobs: jobq.JobQueue) -> Iterator[Watched]:
    """A watch over an idle pool."""
    found = Watched(jobs)
    yield found
    found.close()


def test_b61_an_idle_poll_is_one_statement(watched: Watched) -> None:
    """While nothing was committed anywhere, a poll reads the change counter and nothing else."""
    for _ in range(50):
        watched.parts.watch.tick()

    assert watched.verbs.calls == {"data_version": 50}
    assert watched.parts.watch.pause() == watched.jobs.config.poll


@pytest.mark.parametrize("blocked", ["paused", "capped", "unknown", "future"])
def test_b61_blocked_jobs_do_not_make_it_look_again(watched: Watched, blocked: str) -> None:
    """Jobs that cannot be claimed cost one look, not one for each poll, and wake nobody."""
    jobs = watched.jobs
    match blocked:
        case "paused":
            jobs.enqueue("note")
            jobs.pause("default")
        case "capped":
            jobs.job(name="capped", concurrency=1)(lambda payload: None)
            jobs.enqueue("capped")
            jobs.lease(worker="other", kinds="capped")
            jobs.enqueue("capped")
        case "unknown":
            jobs.enqueue("stranger")
        case "future":
            jobs.enqueue("note", delay="1h")
    watched.verbs.calls.clear()
    for _ in range(50):
        watched.parts.watch.tick()

    assert watched.verbs.calls == {"data_version": 50, "look": 1}
    assert not watched.woken


@pytest.mark.parametrize(
    "polls", [pytest.param(20, id="short"), pytest.param(200, id="ten-seconds", marks=pytest.mark.storm)]
)
def test_b61_idle_threads_share_one_watch(open_real: Open, changes: Changes, polls: int) -> None:
    """Eight idle threads cost no more statements than one: at most two for each poll of the process."""
    seen: collections.Counter[str] = collections.Counter()

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        seen[statement] += 1
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    try:
        jobs = open_real(poll=0.05)
        with jobq.Runner(jobs, workers={"default": 8}) as runner:
            changes.wait_for(lambda: None not in runner.health().loops.values())
            watch = runner._parts.watch
            watch._deaf_until = math.inf
            changes.wait_for(lambda: watch.pause() == 0.05)
            before, ticks = sum(seen.values()), seen["PRAGMA data_version"]
            changes.wait_for(lambda: seen["PRAGMA data_version"] >= ticks + polls)
            polled, statements = seen["PRAGMA data_version"] - ticks, sum(seen.values()) - before
    finally:
        apsw.connection_hooks.remove(hook)

    assert polled <= statements <= 2 * polled


def test_b69_a_foreign_job_starts_within_a_poll(watched: Watched, open_again: Any) -> None:
    """With the signal inside the process lost, the change counter alone wakes a thread."""
    watched.jobs.bus.watch(lambda change: None)
    open_again().enqueue("note")
    watched.parts.watch.tick()

    assert watched.woken


def test_a_due_time_wakes_without_any_commit(watched: Watched, clock: Any) -> None:
    """A job that falls due is looked for then."""
    watched.jobs.enqueue("note", delay=5)
    watched.parts.watch.tick()
    clock.advance(4.9)
    watched.parts.watch.tick()
    assert not watched.woken
    clock.advance(0.2)
    watched.parts.watch.tick()
    assert watched.woken


def test_an_expired_lease_wakes_a_thread(watched: Watched, clock: Any) -> None:
    """The claim takes expired leases back, so one idle thread is enough."""
    watched.jobs.enqueue("note")
    watched.jobs.lease(worker="dead")
    watched.parts.watch.tick()
    clock.advance(61)
    watched.parts.watch.tick()
    assert watched.woken


def test_a_permit_that_came_free_unused_is_noticed(watched: Watched) -> None:
    """A claim that found no permit looks again when there is one, though nobody told it."""
    gate = watched.jobs.gate("llm")
    watched.jobs.job(name="ask", gate="llm")(lambda payload: None)
    watched.jobs.enqueue("ask")
    permit = Permit()
    assert gate.take(permit)
    watched.parts.exchange.settle_and_claim((), [], workers=("w",), queues=None, hand=1)
    watched.parts.watch.tick()
    assert not watched.woken
    gate.put_back(permit)
    watched.parts.watch.tick()
    assert watched.woken


def test_the_end_of_a_capped_run_brings_a_look(watched: Watched, clock: Any) -> None:
    """Another pool's job may have waited for it, or that of another process; ends of other kinds bring none."""
    jobs, watch, poked, rung = watched.jobs, watched.parts.watch, [], []
    jobs.job(name="capped", concurrency=1)(lambda payload: None)
    watch.poke = lambda: poked.append(1)  # type: ignore[method-assign]
    jobs.doorbell.want = lambda: rung.append(1)  # type: ignore[method-assign]
    jobs.bus.watch(watch.on_change, wants=watch.concerns)
    for kind in ("capped", "note"):
        jobs.enqueue(kind, queue="other")
        jobs.complete(jobs.lease(worker="w", kinds=kind)[0])

    assert (poked, rung) == ([1], [1])


def test_it_sleeps_while_every_thread_is_busy(jobs: jobq.JobQueue) -> None:
    """Without an idle thread and without jobs of its own it does not poll at all."""
    describe: Any = None
    parts = Parts(jobs, delegates=None, around=None, describe=describe, on_fatal=lambda: None)
    verbs = Verbs(jobs._store)
    jobs._store = verbs  # type: ignore[assignment]
    parts.watch.tick()

    assert not verbs.calls
    assert parts.watch.pause() == 60


def test_a_cancel_of_another_process_reaches_the_handler_soon(open_real: Open) -> None:
    """The owner's token is set within a second, also while all of its threads are busy."""
    jobs = open_real()
    began, seen = threading.Event(), []

    @jobs.job
    def stoppable(payload: Any, job: jobq.RunningJob) -> None:
        jobs.live.clear()
        began.set()
        seen.append(job.cancel_token.wait(PATIENCE))
        seen.append(job.cancel_token.reason)
        job.cancel_token.raise_if_requested()

    made = jobs.enqueue("stoppable")
    with jobq.Runner(jobs, workers={"default": 1}):
        assert began.wait(PATIENCE)
        assert jobs.cancel(made.id)
        assert made.wait(5).state == "cancelled"
    assert seen == [True, jobq.CancelReason.USER]
