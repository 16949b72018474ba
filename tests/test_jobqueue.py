"""The job queue as a whole: B17 through its verbs, its decorator and its gates."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import jobq
from jobq import Config, ConfigError, Handlers, JobQueue, JobState, JobStateChanged
from tests.conftest import PATIENCE

Again = Callable[..., JobQueue]


def test_job_decorates_and_the_handler_enqueues_here(jobs: JobQueue) -> None:
    """The quickstart's first step."""

    @jobs.job(queue="mail")
    def send(payload: Any) -> None: ...

    @jobs.job
    def plain(payload: Any) -> None: ...

    assert send.enqueue({"to": "ada"}).job.queue == "mail"
    assert plain.enqueue().job.queue == "default"
    assert jobs.handlers.kinds() == ("plain", "send")


def test_handlers_of_the_job_queue_take_registrations(jobs: JobQueue) -> None:
    """``jobs.handlers.job`` is the same as ``jobs.job``."""
    send = jobs.handlers.job(name="send")(lambda payload: None)

    assert send.enqueue().job.kind == "send"


def test_gate_is_made_once_with_its_permits(jobs: JobQueue) -> None:
    """Another number for the same name is a mistake; below 1 becomes 1."""
    gate = jobs.gate("llm", permits=2)

    assert jobs.gate("llm") is gate
    assert (gate.permits, gate.free, jobs.gate("gpu", permits=0).permits) == (2, 2, 1)
    with pytest.raises(ConfigError):
        jobs.gate("llm", permits=3)


def test_b17_rolled_back_enqueue_leaves_its_key_to_the_next(jobs: JobQueue, open_again: Again) -> None:
    """A batch that holds a key and is refused gives it back: the other thread's job is the one row for it."""
    other, start, made = open_again(), threading.Barrier(2), []
    jobs.enqueue("letter", dedupe_key="taken")
    refused: list[Exception] = []

    def roll_back() -> None:
        start.wait(PATIENCE)
        for _ in range(20):
            try:
                jobs.enqueue_many(
                    [jobq.NewJob("mail", dedupe_key="k"), jobq.NewJob("mail", dedupe_key="taken")]
                )
            except jobq.DedupeConflict as error:
                refused.append(error)

    def enqueue() -> None:
        start.wait(PATIENCE)
        made.extend(other.enqueue("mail", dedupe_key="k") for _ in range(20))

    threads = [threading.Thread(target=roll_back), threading.Thread(target=enqueue)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    (row,) = jobs.find(dedupe_key="k")
    assert len(refused) == 20
    assert {one.id for one in made} == {row.id}


def test_events_of_one_job_come_in_the_order_of_its_commits(jobs: JobQueue, events: list[JobStateChanged]) -> None:
    """Whichever threads made them, and whichever delivers."""
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait(PATIENCE)
        for _ in range(25):
            jobs.enqueue(f"kind-{number}")
            for lease in jobs.lease(worker=str(number)):
                jobs.complete(lease)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    by_job: dict[int, list[JobState]] = {}
    for event in events:
        by_job.setdefault(event.job_id, []).append(event.state)
    whole = [JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED]
    assert len(by_job) == 100
    assert all(states == whole[: len(states)] for states in by_job.values())
    assert sum(len(states) for states in by_job.values()) == len(events) == 300


def test_configured_queues_exist_from_the_first_write(open_again: Again) -> None:
    """So that a pause or a requeue to one that has no job yet is no mistake."""
    jobs = open_again(config=Config(queues={"slow": jobq.QueueConfig(workers=1)}))

    assert jobs.pause("slow") is True


def test_producer_that_only_enqueues_starts_no_thread(jobs: JobQueue) -> None:
    """A web process pays for nothing else."""
    before = threading.active_count()

    jobs.enqueue("mail")
    jobs.find()

    assert threading.active_count() == before


def test_policy_and_attempts_of_a_kind(jobs: JobQueue) -> None:
    """What tools show: the handler's where it is here, else the defaults."""
    policy = jobq.RetryPolicy(base=1)
    jobs.job(name="mail", retry=policy, max_attempts=3)(lambda payload: None)

    assert (jobs.policy("mail"), jobs.max_attempts("mail")) == (policy, 3)
    assert (jobs.policy("other"), jobs.max_attempts("other")) == (Config().retry, 5)


def test_policy_that_was_broken_by_hand_is_the_default(jobs: JobQueue, open_again: Again) -> None:
    """A bad row of a kind does not keep its jobs from being settled."""
    handlers = Handlers()
    handlers.job(name="mail", retry=jobq.RetryPolicy(base=1))(lambda payload: None)
    open_again(handlers=handlers).register()

    for broken in ('{"base": -1}', "[1]", "{"):
        _write(jobs, broken)
        assert jobs.policy("mail").base == 5
        assert jobs.enqueue("mail").created


def _write(jobs: JobQueue, retry: str) -> None:
    connection = apsw.Connection(jobs.path)
    connection.execute("UPDATE jobq_kind SET retry = ?", (retry,))
    connection.close()


def test_repr_names_the_file(jobs: JobQueue) -> None:
    """And whether it is closed; it asks nothing of the database."""
    assert jobs.path in repr(jobs)
    jobs.close()
    assert "closed" in repr(jobs)


def test_close_that_finds_the_writer_busy_leaves_the_queue_open(tmp_path: Path) -> None:
    """It may be called again; nothing leaks."""
    jobs = jobq.open(tmp_path / "a.db")
    engine = jobs.store.engine  # type: ignore[attr-defined]
    engine._quiet_within = 0.01
    ticket = engine._writer.hold(busy_timeout=1)
    done: list[BaseException] = []

    def close() -> None:
        with pytest.raises(jobq.StoreBusy) as caught:
            jobs.close()
        done.append(caught.value)

    thread = threading.Thread(target=close)
    thread.start()
    thread.join(10)
    engine._writer.let_go(ticket)

    assert len(done) == 1
    assert jobs.enqueue("a").created
    jobs.close()
    with pytest.raises(jobq.QueueClosed):
        jobs.enqueue("a")
