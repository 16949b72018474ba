"""What stands around one job, by the claim's own conditions."""

from collections.abc import Mapping

import pytest

from jobq.model.circumstances import Circumstances, Pause
from jobq.model.filter import Filter
from jobq.model.job import JobState
from jobq.model.outcome import Failed, Postponed, Succeeded
from tests.store.bench import Workbench, draft, ids


def seen(
    bench: Workbench, job_id: int, served: Mapping[str, tuple[str, ...]] | None = None, **limits: int
) -> Circumstances:
    """Return what stands around a job."""
    found = bench.store.circumstances(job_id, served=served or {}, limits=limits)
    assert found is not None
    return found


def test_a_job_that_nothing_keeps(bench: Workbench) -> None:
    """No pause, no cap, nobody better; an unknown id is None."""
    job_id = bench.enqueue()
    assert seen(bench, job_id) == Circumstances(bench.store.find(Filter(), limit=1)[0])
    assert bench.store.circumstances(99, served={}, limits={}) is None


def test_pauses_and_retirement(bench: Workbench) -> None:
    """Of its queue and of its kind, with who and why."""
    job_id = bench.enqueue()
    bench.store.pause("default", who="ada", why="disk full")
    bench.store.pause_kind("a", who=None, why="bad deploy")
    bench.store.register([], [], ["a"])
    found = seen(bench, job_id)
    assert found.queue_pause == Pause(bench.now, "ada", "disk full")
    assert found.kind_pause == Pause(bench.now, None, "bad deploy")
    assert found.retired


def test_the_cap_is_the_claims_and_names_who_fills_it(bench: Workbench) -> None:
    """A configured limit wins over the registered cap, as in a claim."""
    bench.register("a", cap=2)
    for _ in range(3):
        bench.enqueue()
    running = ids(bench.claim("w", "w"))
    waiting = bench.enqueue(priority=1)
    found = seen(bench, waiting)
    assert (found.cap, found.running, found.running_ids) == (2, 2, tuple(running))
    assert seen(bench, waiting, a=9).cap == 9
    assert (found.better, seen(bench, waiting, a=9).better) == (0, 1)


def test_a_deferral_is_told_from_a_retry(bench: Workbench) -> None:
    """Also when both happened, in either order."""
    claim = bench.start()
    bench.settle(claim, Postponed(until=bench.after(5), reason="busy"))
    assert seen(bench, claim.id).deferred
    bench.clock.advance(5)
    (again,) = bench.claim()
    bench.settle(again, Failed(error="ValueError: x"))
    assert not seen(bench, claim.id).deferred
    bench.clock.advance(60)
    (third,) = bench.claim()
    bench.settle(third, Postponed(until=bench.after(5), reason="busy"))
    assert seen(bench, claim.id).deferred


def test_better_jobs_are_those_that_a_claim_takes_first(bench: Workbench) -> None:
    """Higher priority, or as high and due earlier, or as early and an id before; of this queue, claimable now."""
    better = [bench.enqueue("b", priority=60), bench.enqueue("a"), bench.enqueue("b", run_at=bench.after(-9))]
    mine = bench.enqueue("a")
    for options in (
        {"priority": 40},
        {"kind": "b"},
        {"queue": "mail", "priority": 900},
        {"priority": 900, "delay": 60},
        {"kind": "halted", "priority": 900},
        {"kind": "old", "priority": 900},
        {"kind": "full", "priority": 900},
    ):
        bench.enqueue(**options)  # type: ignore[arg-type]
    bench.register("full", cap=1)
    bench.start("full", queue="mail")
    bench.store.pause_kind("halted", who=None, why=None)
    bench.store.register([], [], ["old"])
    assert seen(bench, mine).better == len(better)
    assert seen(bench, mine, {"default": ("a",)}).better == 1
    assert seen(bench, mine, {"mail": ("a",)}).better == len(better)
    taken = ids(bench.claim(*"wwww", queues=("default",)))
    assert (set(taken[:3]), taken[3]) == (set(better), mine)


def test_nothing_is_better_than_what_is_not_due(bench: Workbench) -> None:
    """Order is among what can be claimed."""
    bench.enqueue()
    assert seen(bench, bench.enqueue(delay=5, priority=1)).better == 0


@pytest.mark.parametrize(("ahead", "counted"), [(1000, 1000), (1001, 1001), (3000, 1001)])
def test_better_jobs_are_counted_to_a_bound(bench: Workbench, ahead: int, counted: int) -> None:
    """Beyond a thousand the number does not matter."""
    bench.store.enqueue([draft()] * (ahead - 500) + [draft(priority=70)] * 500)
    assert seen(bench, bench.enqueue()).better == counted


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SUCCEEDED, JobState.CANCELLED])
def test_a_job_that_is_not_queued_stands_alone(bench: Workbench, state: JobState) -> None:
    """What would keep a queued one does not matter for it."""
    bench.register("a", cap=1)
    claim = bench.start()
    if state is JobState.SUCCEEDED:
        bench.settle(claim, Succeeded())
    elif state is JobState.CANCELLED:
        bench.cancel(claim.id)
        bench.settle(claim, Failed(error="x"))
    bench.store.pause("default", who=None, why=None)
    found = seen(bench, claim.id)
    assert (found.job.state, found.queue_pause, found.cap) == (state, None, None)
