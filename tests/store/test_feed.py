"""The feed: what is told of each commit, in the order of the commits, and nothing of what was undone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobq.errors import DedupeConflict
from jobq.model.events import Change
from jobq.model.job import JobState
from jobq.model.lease import Settlement
from jobq.model.outcome import Failed, Postponed, Released, Succeeded
from tests.store.bench import LEASE, Workbench, draft, request

QUEUED, RUNNING = JobState.QUEUED, JobState.RUNNING


def told(bench: Workbench) -> list[tuple[JobState | None, JobState, int]]:
    """Return and forget what was fed."""
    changes = [(change.previous, change.state, change.attempt) for change in bench.feed]
    bench.feed.clear()
    return changes


def test_each_transition_is_told_once(bench: Workbench) -> None:
    """Previous state, new state, attempts."""
    claim = bench.start()
    assert told(bench) == [(None, QUEUED, 0), (QUEUED, RUNNING, 1)]
    bench.settle(claim, Postponed(until=bench.now))
    assert told(bench) == [(RUNNING, QUEUED, 0)]
    (claim,) = bench.claim()
    bench.settle(claim, Released())
    assert told(bench) == [(QUEUED, RUNNING, 1), (RUNNING, QUEUED, 0)]
    (claim,) = bench.claim()
    bench.settle(claim, Failed(error="x", retryable=False))
    assert told(bench) == [(QUEUED, RUNNING, 1), (RUNNING, JobState.FAILED, 1)]
    bench.requeue(claim.id)
    assert told(bench) == [(JobState.FAILED, QUEUED, 0)]
    bench.cancel(claim.id)
    assert told(bench) == [(QUEUED, JobState.CANCELLED, 0)]


def test_a_change_names_the_job_and_when_it_may_run(bench: Workbench) -> None:
    """Waiting workers are woken by it: due times for queued jobs, none for others."""
    job_id = bench.enqueue("k", queue="mail", delay=60)
    at = bench.now
    assert bench.feed == [Change(job_id, "k", "mail", None, QUEUED, 0, bench.after(60), at)]
    bench.feed.clear()
    bench.clock.advance(60)
    (claim,) = bench.claim()
    bench.settle(claim, Failed(error="x"))
    assert [change.run_at for change in bench.feed] == [None, bench.after(10)]
    bench.feed.clear()
    bench.clock.advance(10)
    bench.settle(bench.claim()[0], Succeeded())
    assert [change.run_at for change in bench.feed] == [None, None]


def test_what_changes_no_state_is_not_told(bench: Workbench) -> None:
    """Beats, requests, pauses, reschedules, superseded settles."""
    claim = bench.start()
    waiting = bench.enqueue(delay=60)
    told(bench)
    bench.store.extend([(claim.id, claim.token)], durable=False)
    bench.cancel(claim.id)
    bench.store.reschedule(waiting, run_at=None, delay=5, priority=None)
    bench.store.pause("default", who=None, why=None)
    bench.settle(claim._replace(token="old"), Succeeded())
    assert told(bench) == []


def test_nothing_is_told_of_what_was_rolled_back(bench: Workbench) -> None:
    """The verb failed half way, after it had inserted."""
    bench.enqueue("a", dedupe_key="k")
    told(bench)
    with pytest.raises(DedupeConflict):
        bench.store.enqueue([draft("b"), draft("b", dedupe_key="k")])
    assert told(bench) == []


def test_a_reclaim_is_told_before_the_claim_that_made_it(bench: Workbench) -> None:
    """In the order in which the rows changed."""
    bench.start(max_attempts=1)
    bench.enqueue()
    bench.clock.advance(LEASE)
    told(bench)
    bench.claim()
    assert told(bench) == [(RUNNING, JobState.FAILED, 1), (QUEUED, RUNNING, 1)]


def test_a_settle_is_told_before_the_claim_of_the_same_transaction(bench: Workbench) -> None:
    """The end of the one before the start of the other."""
    claim, following = bench.start(), bench.enqueue()
    told(bench)
    settled, claims = bench.store.settle_and_claim(
        [Settlement(claim.id, claim.token, Succeeded())], request(), durable=False
    )
    assert ([one.job_id for one in settled], [one.id for one in claims]) == ([claim.id], [following])
    assert told(bench) == [(RUNNING, JobState.SUCCEEDED, 1), (QUEUED, RUNNING, 1)]


def test_the_feed_is_in_the_order_of_the_commits(bench: Workbench) -> None:
    """Eight threads on one store: for each job the changes follow each other, and ids are told as they rise."""
    start = threading.Barrier(8)

    def work(_: int) -> None:
        start.wait(20)
        for _ in range(10):
            bench.enqueue()
            for claim in bench.store.claim(request("x", "y"), durable=False):
                bench.settle(claim, Succeeded())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8), timeout=60))
    made = [change.job_id for change in bench.feed if change.previous is None]
    assert made == list(range(1, 81))
    last: dict[int, JobState] = {}
    for change in bench.feed:
        assert last.get(change.job_id) == change.previous
        last[change.job_id] = change.state
