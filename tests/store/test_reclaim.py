"""Expired leases: taken back, held after a sleep, clamped and moved when the clock is set back."""

import pytest

from jobq.model.job import JobState
from jobq.model.outcome import Failed, Succeeded
from tests.store.bench import LEASE, POLICY, Workbench, draft, ids, request


def test_a_lease_is_taken_back_when_it_ends_and_not_before(bench: Workbench) -> None:
    """To the millisecond."""
    claim = bench.start()
    bench.clock.advance(LEASE - 0.001)
    assert bench.store.reclaim(hold_expired=False) == 0
    assert bench.claim() == []
    bench.clock.advance(0.001)
    assert bench.store.reclaim(hold_expired=False) == 1
    assert bench.state(claim.id) is JobState.QUEUED


def test_a_claim_takes_back_what_expired_and_may_take_it_again(bench: Workbench, elsewhere: Workbench) -> None:
    """A dead worker's jobs are free within lease and one poll, without any other service."""
    old = bench.start()
    bench.clock.advance(LEASE)
    (new,) = elsewhere.claim("w2")
    assert (new.id, new.attempts, new.last_error) == (old.id, 2, "lease expired")
    assert [(change.previous, change.state) for change in elsewhere.feed] == [
        (JobState.RUNNING, JobState.QUEUED),
        (JobState.QUEUED, JobState.RUNNING),
    ]


def test_a_claim_that_finds_other_jobs_takes_back_what_expired(bench: Workbench) -> None:
    """To the millisecond, and the job has its place in the order at once; a cap has room for it."""
    bench.register("a", cap=1)
    old, other = bench.enqueue(priority=100), bench.enqueue("b", priority=10)
    assert ids(bench.claim()) == [old]
    bench.clock.advance(LEASE - 0.001)
    assert ids(bench.claim()) == [other]
    third = bench.enqueue("b", priority=10)
    bench.clock.advance(0.001)
    assert ids(bench.claim("w", "v")) == [old, third]


def test_a_beating_worker_is_never_reclaimed(bench: Workbench) -> None:
    """However long its handler."""
    claim = bench.start()
    for _ in range(60):
        bench.clock.advance(LEASE / 3)
        assert len(bench.store.extend([(claim.id, claim.token)], durable=False)) == 1
        assert bench.claim() == []
    job = bench.get(claim.id)
    assert (job.attempts, job.token) == (1, claim.token)


def test_a_job_that_kills_its_process_ends_after_max_attempts_starts(bench: Workbench) -> None:
    """The death of a process counts as an attempt."""
    job_id, starts = bench.enqueue(max_attempts=3), 0
    while claims := bench.claim():
        starts += len(claims)
        bench.clock.advance(LEASE)
    job = bench.get(job_id)
    assert (starts, job.state, job.failure_reason) == (3, JobState.FAILED, "lease_expired")
    assert [run.error for run in bench.store.history(job_id)] == ["lease expired"] * 3


def test_all_expired_leases_are_taken_back_however_many(bench: Workbench) -> None:
    """In bounded transactions, and the answer counts all of them."""
    bench.store.enqueue([draft()] * 1200)
    assert len(bench.claim(hand=1200)) == 1200
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=False) == 1200
    assert bench.store.reclaim(hold_expired=False) == 0


def test_after_a_sleep_each_expired_lease_is_granted_one_more(bench: Workbench) -> None:
    """At most once: a dead worker's job comes back one lease later."""
    claim = bench.start()
    bench.clock.advance(10 * LEASE)
    assert bench.store.reclaim(hold_expired=True) == 0
    assert bench.get(claim.id).lease_until == bench.after(LEASE)
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=True) == 1


def test_a_claim_holds_expired_leases_when_asked_to(bench: Workbench) -> None:
    """It is the claim that would take them back otherwise."""
    claim = bench.start()
    bench.clock.advance(LEASE)
    assert bench.claim(hold_expired=True) == []
    assert bench.get(claim.id).token == claim.token
    bench.clock.advance(LEASE)
    assert ids(bench.claim(hold_expired=True)) == [claim.id]


def test_a_beat_makes_a_held_lease_an_ordinary_one(bench: Workbench) -> None:
    """Its owner lives, so the next sleep may hold it again."""
    claim = bench.start()
    for _ in range(3):
        bench.clock.advance(LEASE)
        assert bench.store.reclaim(hold_expired=True) == 0
        bench.store.extend([(claim.id, claim.token)], durable=False)
    assert bench.state(claim.id) is JobState.RUNNING


def test_a_retry_after_a_held_lease_may_be_held_again(bench: Workbench) -> None:
    """The extension belongs to the lease, not to the job."""
    claim = bench.start()
    bench.clock.advance(LEASE)
    bench.store.reclaim(hold_expired=True)
    bench.settle(claim, Failed(error="x"))
    bench.clock.advance(POLICY.delay(1, 0))
    (again,) = bench.claim()
    bench.clock.advance(LEASE)
    assert bench.store.reclaim(hold_expired=True) == 0
    assert bench.get(again.id).token == again.token


def test_a_live_lease_is_not_lengthened_by_a_hold(bench: Workbench) -> None:
    """Only what expired is granted anything."""
    claim = bench.start()
    until = bench.get(claim.id).lease_until
    bench.clock.advance(1)
    bench.store.reclaim(hold_expired=True)
    assert bench.get(claim.id).lease_until == until


def test_leases_further_ahead_than_their_length_are_shortened(bench: Workbench) -> None:
    """The clock was set back: a dead worker's job is free one lease from now and not in twelve hours."""
    claim = bench.start()
    bench.clock.jump("-12h")
    assert bench.store.reclaim(hold_expired=False) == 0
    assert bench.get(claim.id).lease_until == bench.after(LEASE)
    bench.clock.advance(LEASE)
    assert ids(bench.claim()) == [claim.id]


def test_b35_jobs_already_due_still_run_after_the_clock_was_set_back(bench: Workbench) -> None:
    """Due times that had passed move back with the clock; those that had not keep theirs, as do new jobs."""
    due, just_due, future = bench.enqueue(delay=-5), bench.enqueue(delay=0), bench.enqueue(delay=3600)
    since, later = bench.now, bench.get(future).run_at
    running = bench.start(priority=60)
    bench.clock.jump("-12h")
    made_after = bench.enqueue(delay=30)
    assert bench.claim("w", "w") == []
    assert bench.store.move_due_times(since=since, stepped_back=12 * 3600) == 2
    assert bench.store.move_due_times(since=since, stepped_back=12 * 3600) == 0
    assert ids(bench.claim("w", "w", "w")) == [due, just_due]
    assert bench.get(future).run_at == later
    assert bench.get(made_after).run_at == bench.after(30)
    assert bench.get(running.id).token == running.token


def test_b35_a_backoff_that_began_after_the_step_is_not_cut_short(bench: Workbench, elsewhere: Workbench) -> None:
    """Two processes notice the step; between them a job failed and waits for its delay on the new clock."""
    claim, since = bench.start(), bench.now
    waiting = bench.enqueue(delay=-1)
    bench.clock.jump("-12h")
    assert bench.store.move_due_times(since=since, stepped_back=12 * 3600) == 1
    (second,) = bench.claim()
    assert second.id == waiting
    bench.settle(second, Failed(error="x"))
    bench.settle(claim, Succeeded())
    assert elsewhere.store.move_due_times(since=since, stepped_back=12 * 3600) == 0
    assert bench.get(waiting).run_at == bench.after(10)


def test_a_settle_stands_whatever_the_clock_did(bench: Workbench) -> None:
    """A lease is fenced by its token, in the past and in the future."""
    for jump in ("-12h", "24h"):
        claim = bench.start()
        bench.clock.jump(jump)
        assert bench.settle(claim, Succeeded()) == "succeeded"


@pytest.mark.parametrize("hold", [True, False])
def test_there_may_be_nothing_to_take_back(bench: Workbench, hold: bool) -> None:
    """Zero, and nothing is announced."""
    bench.enqueue()
    told = len(bench.feed)
    assert bench.store.reclaim(hold_expired=hold) == 0
    assert len(bench.feed) == told
    assert bench.store.look(request()).expired is False
