"""A cap holds at every instant, also around leases that expire and handlers that end late."""

from typing import Any

import jobq
from jobq.testing import FakeClock


def test_b08_a_late_end_frees_nothing_of_a_cap(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A handler whose lease was taken over ends last: it changes no row, and never do two of the kind run."""
    most = []

    @jobs.job(concurrency=1)
    def capped(payload: Any, job: jobq.RunningJob) -> None:
        most.append(len(jobs.find(state="running", kind="capped")))
        if job.attempt == 1 and payload == 0:
            clock.advance(61)
            (lease,) = jobs.lease(kinds="capped", worker="other")
            assert jobs.lease(kinds="capped", worker="third") == []
            late.append(lease)

    late: list[jobq.Lease] = []
    made = jobs.enqueue_many([jobq.NewJob("capped", number) for number in range(12)])
    runner = jobq.Runner(jobs)

    assert runner.run_once()
    assert (jobs.get(made[0].id).state, jobs.get(made[0].id).last_error) == ("queued", "lease expired")
    assert runner.drain().claimed == 0
    jobs.complete(late[0])
    assert runner.drain().succeeded == 11
    assert set(most) == {1}


def test_configured_limits_win_over_declared_caps(open_again: Any, jobs: jobq.JobQueue) -> None:
    """``kind_limits`` is what a runner's claims respect."""
    limited = open_again(config=jobq.Config(kind_limits={"note": 1}))
    limited.job(name="note", concurrency=5)(lambda payload: seen.append(len(limited.lease(kinds="note"))))
    seen: list[int] = []
    limited.enqueue_many([jobq.NewJob("note"), jobq.NewJob("note")])

    assert jobq.Runner(limited).drain().succeeded == 2
    assert seen == [0, 0]
