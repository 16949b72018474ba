"""Scenarios in which other job systems failed, as far as a store alone can show them; ids as in the list of cases."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest

from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.lease import ClaimRequest, Settlement
from jobq.model.outcome import Cancelled, Failed, Released, Succeeded
from jobq.store.base import Filter
from tests.store.bench import LEASE, POLICY, Stores, Workbench, draft, ids

PATIENCE = 20.0


def test_b01_two_processes_of_four_threads_run_each_job_once(bench: Workbench, elsewhere: Workbench) -> None:
    """A claim is one transaction: 200 jobs, 200 distinct claims, every one its job's first."""
    bench.store.enqueue([draft() for _ in range(200)])
    start = threading.Barrier(8)

    def drain(side: Workbench) -> list[tuple[int, int]]:
        start.wait(PATIENCE)
        done: list[tuple[int, int]] = []
        claims = side.claim()
        while claims:
            done += [(claim.id, claim.attempts) for claim in claims]
            ends = [Settlement(claim.id, claim.token, Succeeded()) for claim in claims]
            request = ClaimRequest(("w",), LEASE)
            settled, claims = side.store.settle_and_claim(ends, request, durable=False)
            assert [answer.verdict for answer in settled] == [Verdict.SUCCEEDED] * len(ends)
        return done

    with ThreadPoolExecutor(8) as pool:
        runs = list(chain.from_iterable(pool.map(drain, [bench, elsewhere] * 4, timeout=PATIENCE)))
    assert Counter(job_id for job_id, _ in runs) == Counter(range(1, 201))
    assert {attempt for _, attempt in runs} == {1}
    assert bench.store.count(Filter())[JobState.SUCCEEDED] == 200


def test_b07_a_job_that_finishes_while_it_is_reclaimed_stays_finished(bench: Workbench, elsewhere: Workbench) -> None:
    """The lease had expired, but the owner was first: reclaiming finds nothing."""
    claim = bench.start()
    bench.clock.advance(LEASE)
    assert elsewhere.store.look(ClaimRequest(("w",), LEASE)).expired
    assert bench.settle(claim, Succeeded('"mine"')) is Verdict.SUCCEEDED
    before = bench.get(claim.id)
    assert elsewhere.store.reclaim(hold_expired=False) == 0
    assert bench.get(claim.id) == before
    assert (before.attempts, before.result) == (1, "mine")


def test_b08_an_expired_lease_under_a_cap_frees_one_place_once(bench: Workbench, elsewhere: Workbench) -> None:
    """Running rows never exceed the cap, and the late finish changes nothing and frees nothing."""
    bench.register("a", cap=1)
    bench.store.enqueue([draft() for _ in range(12)])
    (old,) = bench.claim()
    assert elsewhere.claim("w", "w") == []
    bench.clock.advance(LEASE)
    (new,) = elsewhere.claim("w", "w")
    assert bench.running("a") == 1
    assert bench.settle(old, Succeeded()) is Verdict.SUPERSEDED
    assert bench.claim("w", "w") == []
    assert bench.running("a") == 1
    assert elsewhere.settle(new, Succeeded()) is Verdict.SUCCEEDED
    assert len(bench.claim("w", "w")) == 1


def test_b17_an_enqueue_waits_for_another_that_is_rolled_back(stores: Stores, bench: Workbench) -> None:
    """It never answers with a row that does not exist."""
    elsewhere, inside, go = stores.bench_elsewhere(), threading.Event(), threading.Event()

    def now_of_a_failing_enqueue() -> object:
        inside.set()
        assert go.wait(PATIENCE)
        raise LookupError("rolled back")

    failing = stores.open(now=now_of_a_failing_enqueue)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        lost = pool.submit(failing.enqueue, [draft(dedupe_key="k")])
        assert inside.wait(PATIENCE)
        made = pool.submit(elsewhere.place, dedupe_key="k")
        assert not made.done()
        go.set()
        with pytest.raises(LookupError):
            lost.result(PATIENCE)
        placed = made.result(PATIENCE)
    assert placed.created
    assert [job.id for job in bench.store.find(Filter(dedupe_key="k"), limit=None)] == [placed.id]


def test_b17_an_enqueue_waits_for_another_that_commits(stores: Stores, bench: Workbench) -> None:
    """Two processes, one key: both answers name the one row."""
    elsewhere, inside, go = stores.bench_elsewhere(), threading.Event(), threading.Event()

    def slow() -> object:
        inside.set()
        assert go.wait(PATIENCE)
        return stores.clock.now()

    first = stores.open(now=slow)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first.enqueue, [draft(dedupe_key="k")])
        assert inside.wait(PATIENCE)
        two = pool.submit(elsewhere.place, dedupe_key="k")
        go.set()
        (made,), held = one.result(PATIENCE), two.result(PATIENCE)
    assert (made.created, held.created, held.id) == (True, False, made.id)


def test_b18_a_key_is_held_through_backoff(bench: Workbench) -> None:
    """a) the second enqueue returns the first id."""
    first = bench.enqueue(dedupe_key="k")
    bench.settle(bench.claim()[0], Failed(error="x"))
    assert bench.place(dedupe_key="k").id == first


def test_b18_a_bulk_requeue_skips_the_one_that_clashes(bench: Workbench) -> None:
    """c) the other two are requeued, and d) claiming goes on."""
    dead = [bench.start(dedupe_key=f"k{n}") for n in range(3)]
    for claim in dead:
        bench.settle(claim, Failed(error="x", retryable=False))
    holder = bench.enqueue(dedupe_key="k1")
    answer = bench.requeue(*ids(dead))
    assert answer.ids == (dead[0].id, dead[2].id)
    assert [job_id for job_id, _ in answer.refused] == [dead[1].id]
    assert sorted(ids(bench.claim("w", "w", "w", "w"))) == sorted([*answer.ids, holder])


def test_b18_a_reclaim_never_clashes_with_a_key(bench: Workbench) -> None:
    """d) the running job held its key all the time."""
    claim = bench.start(dedupe_key="k")
    bench.clock.advance(LEASE)
    assert bench.place(dedupe_key="k").id == claim.id
    assert bench.store.reclaim(hold_expired=False) == 1
    assert bench.place(dedupe_key="k").id == claim.id


def test_b20_fifty_threads_make_one_row(bench: Workbench, elsewhere: Workbench) -> None:
    """All at once, over two processes: one is the maker, all name the same job."""
    start = threading.Barrier(50)

    def place(side: Workbench) -> tuple[int, bool]:
        start.wait(PATIENCE)
        placed = side.place(dedupe_key="k")
        return placed.id, placed.created

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(place, [bench, elsewhere] * 25, timeout=PATIENCE))
    assert len({job_id for job_id, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1
    assert bench.store.count(Filter())[JobState.QUEUED] == 1


@pytest.mark.parametrize("moment", ["queued", "claimed", "settled"])
def test_b27_a_cancel_at_any_moment_never_leads_to_a_retry(bench: Workbench, moment: str) -> None:
    """Queued: never starts. Running: a success stands, all else is cancelled. Ended: False."""
    job_id = bench.enqueue()
    if moment == "queued":
        assert bench.cancel(job_id) is Verdict.CANCELLED
        assert bench.claim() == []
        return
    (claim,) = bench.claim()
    if moment == "settled":
        bench.settle(claim, Succeeded())
        before = bench.get(job_id)
        assert bench.cancel(job_id) is None
        assert bench.get(job_id) == before
        return
    assert bench.cancel(job_id) is Verdict.REQUESTED
    assert bench.settle(claim, Cancelled()) is Verdict.CANCELLED
    assert bench.claim() == []


def test_b30_a_cap_waits_for_the_dead_lease_and_then_lets_one_in(bench: Workbench, elsewhere: Workbench) -> None:
    """A restart at once finds nothing to run; after the lease exactly one."""
    bench.register("a", cap=1)
    for _ in range(3):
        bench.enqueue()
    bench.claim()
    assert elsewhere.claim("w", "w", "w") == []
    bench.clock.advance(LEASE)
    assert len(elsewhere.claim("w", "w", "w")) == 1


def test_b63_one_job_behind_ten_thousand_that_may_not_run_is_next(bench: Workbench) -> None:
    """Capped, paused, in the future: none of them is in the way. What it costs is counted beside each store."""
    bench.register("capped", cap=1)
    bench.start("capped")
    waiting = [draft("capped", priority=1000)] * 4000
    waiting += [draft("a", queue="mail", priority=1000)] * 3000 + [draft("a", delay=60, priority=1000)] * 3000
    bench.store.enqueue(waiting)
    bench.store.pause("mail", who=None, why=None)
    job_id = bench.enqueue("a", priority=-1000)
    assert ids(bench.claim("w", "w")) == [job_id]


def test_the_time_is_read_after_the_lock_is_held(stores: Stores, bench: Workbench) -> None:
    """A lease computed before waiting for the lock may be born expired."""
    bench.enqueue()
    inside, go, asked = threading.Event(), threading.Event(), threading.Event()

    def holding() -> object:
        inside.set()
        assert go.wait(PATIENCE)
        return stores.clock.now()

    def waiting() -> object:
        asked.set()
        return stores.clock.now()

    holder = stores.open(now=holding)  # type: ignore[arg-type]
    waiter = stores.open(now=waiting)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(holder.enqueue, [draft("b")])
        assert inside.wait(PATIENCE)
        claimed = pool.submit(waiter.claim, ClaimRequest(("w",), LEASE), durable=False)
        assert not asked.wait(0.05)
        stores.clock.advance(2 * LEASE)
        go.set()
        held.result(PATIENCE)
        (claim,) = claimed.result(PATIENCE)
    job = bench.get(claim.id)
    assert (job.started_at, job.lease_until) == (bench.now, bench.after(LEASE))
    assert bench.settle(claim, Released(), POLICY) is Verdict.RELEASED
