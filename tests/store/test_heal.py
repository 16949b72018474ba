"""Self-heal: transient failures that have rested run again, at most three times; everything else stays."""

import pytest

from jobq.model.effects import Verdict
from jobq.model.job import Actor, FailureClass, JobState
from jobq.model.outcome import Failed, Succeeded
from tests.store.bench import Workbench, draft

REST = 15 * 60


def end(bench: Workbench, failure_class: FailureClass | None = FailureClass.TRANSIENT) -> int:
    """Claim the next job, let it fail for good, and return its id."""
    (claim,) = bench.claim()
    assert bench.settle(claim, Failed(error="x", failure_class=failure_class, retryable=False)) is Verdict.FAILED
    return claim.id


def heal(bench: Workbench) -> tuple[int, ...]:
    """Heal what a page of the healable jobs names."""
    return bench.store.heal(bench.store.healable())


def test_a_transient_failure_heals_once_it_has_rested(bench: Workbench) -> None:
    """Exactly 15 minutes after its end; it starts over, and the log says who did it."""
    job_id = bench.enqueue()
    end(bench)
    bench.clock.advance(REST - 0.001)
    assert (bench.store.healable(), bench.store.heal([job_id])) == ([], ())
    bench.clock.advance(0.001)
    assert bench.store.healable() == [job_id]
    assert bench.store.heal([job_id, 99]) == (job_id,)
    job = bench.get(job_id)
    assert (job.state, job.attempts, job.run_at, job.last_error) == (JobState.QUEUED, 0, bench.now, None)
    (line,) = bench.store.changes(job_id=job_id, limit=9)
    assert (line.what, line.actor, line.before["state"]) == ("healed", Actor.SYSTEM, "failed")
    assert bench.store.heal([job_id]) == ()
    assert bench.feed[-1].state is JobState.QUEUED


@pytest.mark.parametrize("failure_class", [FailureClass.UNRECOVERABLE, None])
def test_other_failures_stay_parked(bench: Workbench, failure_class: FailureClass | None) -> None:
    """However long they rest."""
    job_id = bench.enqueue()
    end(bench, failure_class)
    bench.clock.advance(30 * 86_400)
    assert (bench.store.healable(), bench.store.heal([job_id])) == ([], ())
    assert bench.state(job_id) is JobState.FAILED


def test_a_job_heals_three_times_and_anew_after_a_requeue_by_hand(bench: Workbench) -> None:
    """The fourth time it stays failed, until a person has had a look."""
    job_id = bench.enqueue()
    for _ in range(2):
        for _ in range(3):
            end(bench)
            bench.clock.advance(REST)
            assert heal(bench) == (job_id,)
        end(bench)
        bench.clock.advance(REST)
        assert (bench.store.healable(), bench.store.heal([job_id])) == ([], ())
        bench.requeue(job_id)


def test_what_cannot_run_is_not_in_the_way(bench: Workbench) -> None:
    """A key that another job holds, a retired kind: more of them than one call takes, older than the one that can."""
    for _ in range(501):
        bench.enqueue(dedupe_key="k")
        end(bench)
    bench.enqueue(dedupe_key="k", delay=10 * 86_400)
    bench.store.enqueue([draft("old")])
    end(bench)
    bench.store.register([], [], ["old"])
    bench.clock.advance(1)
    healed = bench.enqueue()
    end(bench)
    bench.clock.advance(REST)
    assert heal(bench) == (healed,)


def test_of_two_with_one_key_the_older_heals(bench: Workbench) -> None:
    """The other waits until the key is free."""
    bench.enqueue(dedupe_key="k")
    one = end(bench)
    bench.enqueue(dedupe_key="k")
    two = end(bench)
    bench.clock.advance(REST)
    assert bench.store.healable() == [one, two]
    assert heal(bench) == (one,)
    bench.settle(bench.claim()[0], Succeeded())
    assert heal(bench) == (two,)


def test_a_call_is_bounded_and_two_processes_share_the_work(bench: Workbench, elsewhere: Workbench) -> None:
    """Each job heals once."""
    bench.store.enqueue([draft()] * 600)
    for _ in range(600):
        end(bench)
    bench.clock.advance(REST)
    seen = bench.store.healable()
    assert len(seen) == 500
    assert [len(elsewhere.store.heal(seen[:300])), len(bench.store.heal(seen)), len(heal(bench))] == [300, 200, 100]
    assert len(bench.store.changes(job_id=None, limit=9_999)) == 600


def test_failed_jobs_are_counted_by_whether_healing_can_help(bench: Workbench) -> None:
    """All, those that are unrecoverable, and the others."""
    for failure_class in (FailureClass.TRANSIENT, FailureClass.UNRECOVERABLE, FailureClass.UNRECOVERABLE, None):
        bench.enqueue()
        end(bench, failure_class)
    bench.enqueue()
    counted = [bench.store.count_failed(unrecoverable=which) for which in (None, True, False)]
    assert counted == [4, 2, 2]
