"""Counts of a store, and the oldest job that could run."""

from jobq.model.job import JobState
from jobq.model.outcome import Failed, Succeeded
from jobq.model.stats import LaneTally, together
from tests.store.bench import Workbench


def lane(bench: Workbench, kind: str = "a", queue: str = "default") -> LaneTally:
    """Return the tally of one kind in one queue."""
    (found,) = [one for one in bench.store.survey(failures=0).lanes if (one.kind, one.queue) == (kind, queue)]
    return found


def test_empty_store_has_no_tally(bench: Workbench) -> None:
    """And all of nothing is nothing."""
    assert bench.store.survey(failures=0).lanes == ()
    assert together([]).states == dict.fromkeys(JobState, 0)
    assert together([]).oldest_runnable is None


def test_jobs_are_counted_by_queue_kind_and_state(bench: Workbench, elsewhere: Workbench) -> None:
    """Every state of every lane, seen from another process too."""
    bench.settle(bench.start(), Succeeded())
    bench.settle(bench.start("b", queue="mail", max_attempts=1), Failed(error="x", retryable=False))
    bench.cancel(bench.enqueue("b", queue="mail"))
    bench.start()
    bench.enqueue("b")
    bench.enqueue("b", queue="mail")
    bench.enqueue("b", queue="mail")

    for one in (bench, elsewhere):
        counts = {(each.queue, each.kind): each.states for each in one.store.survey(failures=0).lanes}
        assert {lane: {state.value: n for state, n in states.items() if n} for lane, states in counts.items()} == {
            ("default", "a"): {"running": 1, "succeeded": 1},
            ("default", "b"): {"queued": 1},
            ("mail", "b"): {"queued": 2, "failed": 1, "cancelled": 1},
        }


def test_last_minute_forgets_what_ended_before(bench: Workbench) -> None:
    """The rate is that of the last sixty seconds."""
    bench.settle(bench.start(), Succeeded())
    bench.clock.advance("30s")
    bench.settle(bench.start(), Succeeded())
    assert lane(bench).last_minute[JobState.SUCCEEDED] == 2

    bench.clock.advance("40s")

    assert lane(bench).last_minute[JobState.SUCCEEDED] == 1
    assert lane(bench).states[JobState.SUCCEEDED] == 2


def test_oldest_runnable_is_the_head_of_a_claimable_lane(bench: Workbench) -> None:
    """Not a future job, and counted from when it was due; a high priority does not hide an older low one."""
    bench.enqueue(delay=60.0)
    assert lane(bench).oldest_runnable is None

    bench.enqueue(priority=10)
    bench.clock.advance("5s")
    bench.enqueue(priority=100)
    bench.clock.advance("1s")
    assert lane(bench).oldest_runnable == 6

    bench.clock.advance("60s")
    assert lane(bench).oldest_runnable == 66


def test_paused_capped_and_retired_jobs_do_not_wait_for_a_worker(bench: Workbench) -> None:
    """They are queued, and nothing claimable."""
    bench.register(cap=1)
    bench.start()
    bench.enqueue()
    bench.enqueue("b", queue="mail")
    bench.enqueue("c")
    bench.store.pause("mail", who=None, why=None)
    bench.store.register([], [], ["c"])
    bench.clock.advance("5s")

    tallies = bench.store.survey(failures=0).lanes

    assert [one.states[JobState.QUEUED] for one in tallies] == [1, 1, 1]
    assert [one.oldest_runnable for one in tallies] == [None, None, None]


def test_recent_failures_are_the_last_ones_that_ended(bench: Workbench) -> None:
    """By the time of their end and not by their ids."""
    first, second, third = (bench.start() for _ in range(3))
    for claim in (second, third, first):
        bench.clock.advance("1s")
        bench.settle(claim, Failed(error="x", retryable=False))
    bench.settle(bench.start(), Succeeded())

    assert [job.id for job in bench.store.survey(failures=2).failures] == [first.id, third.id]
