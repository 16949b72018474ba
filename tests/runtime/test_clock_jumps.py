"""What a runner makes of a clock that jumps, through the real store."""

from datetime import timedelta
from typing import Any

import jobq
from jobq.testing import FakeClock


def test_after_a_sleep_an_expired_lease_is_granted_one_more_length(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The owner that slept as well gets the chance to beat; only when it does not is its job taken back."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    (lease,) = jobs.lease(worker="sleeper")
    runner = jobq.Runner(jobs)
    clock.jump("8h")

    assert runner.drain().claimed == 0
    clock.advance(30)
    assert runner.drain().claimed == 0
    assert jobs.extend(lease).until > clock.now()
    clock.advance(61)
    assert runner.drain().claimed == 1


def test_a_dead_owner_costs_one_lease_after_a_sleep(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A lease is granted at most one such extension."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    jobs.lease(worker="dead")
    runner = jobq.Runner(jobs)
    clock.jump("8h")
    assert runner.drain().claimed == 0
    clock.advance(60)
    assert runner.drain().claimed == 1


def test_advancing_is_no_sleep(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Time that passes on both clocks expires leases as usual."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    jobs.lease(worker="dead")
    runner = jobq.Runner(jobs)
    clock.advance("8h")

    assert runner.drain().claimed == 1


def test_b35_a_clock_set_back_keeps_due_jobs_due(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Jobs that were due still run; those that were not keep their distance."""
    ran: list[Any] = []
    jobs.job(name="note")(ran.append)
    jobs.enqueue("note", "due")
    jobs.enqueue("note", "later", delay="10m")
    runner = jobq.Runner(jobs)
    clock.advance(1)
    clock.jump("-12h")

    assert runner.drain().succeeded == 1
    assert ran == ["due"]
    clock.advance(timedelta(hours=12, minutes=10))
    assert runner.drain().succeeded == 1


def test_b35_a_running_job_keeps_its_lease_when_the_clock_goes_back(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Neither the jump nor the return to the old time costs the owner its job; a dead owner's lease is not hours."""

    @jobs.job
    def slow(payload: Any, job: jobq.RunningJob) -> str:
        clock.jump("-12h")
        runner.maintenance.tick()
        runner.heartbeat.tick()
        clock.advance(50)
        assert job.cancel_token.reason is None
        return "done"

    made = jobs.enqueue("slow")
    runner = jobq.Runner(jobs)
    assert runner.drain().succeeded == 1

    jobs.enqueue("slow")
    jobs.lease(worker="dead")
    clock.jump("-12h")
    runner.maintenance.tick()
    (job,) = jobs.find(state="running")
    assert job.lease_until is not None
    assert job.lease_until - clock.now() <= timedelta(seconds=60)
    assert jobs.get(made.id).attempts == 1


def test_a_process_that_starts_after_a_wake_holds_back(
    jobs: jobq.JobQueue, open_again: Any, clock: FakeClock
) -> None:
    """A runner's row from before the sleep tells the new process not to take leases back yet."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    jobs.lease(worker="sleeper")
    jobq.Runner(jobs).heartbeat.tick()
    clock.jump("8h")

    assert jobq.Runner(open_again()).bootstrap().reclaimed == 0


def test_an_outside_worker_takes_nothing_of_runners_that_slept(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """A lease taken right after a wake leaves what a runner holds alone, until that had the chance to beat."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    (held,) = jobs.lease(worker="of a runner")
    jobq.Runner(jobs).heartbeat.tick()
    clock.jump("8h")

    assert jobs.lease(worker="outside") == []
    assert jobs.extend(held).until > clock.now()


def test_an_outside_worker_takes_what_a_dead_runner_held(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Where no clock has moved, a lease that is over is taken at once."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note")
    jobs.lease(worker="of a runner")
    jobq.Runner(jobs).heartbeat.tick()
    clock.advance(61)

    assert len(jobs.lease(worker="outside")) == 1


def test_b35_ten_years_ahead_and_back_again(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """What runs keeps its lease over both steps, what was due runs, and a schedule makes up for one slot, not for ten
    years; when the clock is back, its next slot is a period away."""
    ran: list[Any] = []
    jobs.job(name="note")(ran.append)
    jobs.schedules.add("s", every="1m", kind="note", payload="slot")
    runner = jobq.Runner(jobs)

    @jobs.job
    def slow(payload: Any, job: jobq.RunningJob) -> str:
        for step in ("3650d", "-3650d"):
            clock.jump(step)
            runner.maintenance.tick()
            runner.heartbeat.tick()
            made.extend(runner.scheduler.tick())
            assert job.cancel_token.reason is None
        return "done"

    made: list[jobq.Dispatched] = []
    first = jobs.enqueue("slow")
    jobs.enqueue("note", "due")
    assert runner.drain().claimed == 3

    assert (jobs.get(first.id).result, jobs.get(first.id).attempts) == ("done", 1)
    assert sorted(ran) == ["due", "slot"]
    assert len(made) == 1
    (schedule,) = jobs.schedules.list()
    assert schedule.next_run is not None
    assert timedelta(0) < schedule.next_run - clock.now() <= timedelta(minutes=1)


def test_a_job_for_later_is_not_later_after_twelve_hours_back_and_forth(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """The distance to a future due time is the clock's own affair; once the old time is back, so is the job."""
    jobs.job(name="note")(lambda payload: None)
    jobs.enqueue("note", delay="10m")
    runner = jobq.Runner(jobs)
    for step in ("-12h", "12h"):
        clock.jump(step)
        runner.maintenance.tick()
        assert runner.drain().claimed == 0
    clock.advance("10m")

    assert runner.drain().succeeded == 1


def test_b35_clock_steps_inside_a_drain_lose_no_job(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Handlers during which the clock is set, back and forth: each job runs once, and the schedule goes on."""
    steps = [-12 * 3600.0, 36 * 3600.0, -5.0, 3650 * 86400.0, -3650 * 86400.0]
    ran: list[int] = []

    @jobs.job
    def steps_on(payload: Any, job: jobq.RunningJob) -> None:
        ran.append(job.id)
        if steps:
            clock.jump(steps.pop(0))

    jobs.schedules.add("minutely", every="1m", kind="steps_on")
    made = [jobs.enqueue("steps_on", delay=delay).id for delay in (0, 0, 0, 0, 0, 0, 30)]
    runner = jobq.Runner(jobs)

    # The leap ahead makes the last one due.
    assert runner.drain().succeeded == 7
    assert runner.drain(until="1h").succeeded > 1
    assert sorted(ran) == sorted(set(ran))
    assert set(made) <= set(ran)
    assert {job.state for job in jobs.find(limit=None)} == {"succeeded"}
    assert clock.now() < jobs.schedules.get("minutely").next_run <= clock.now() + timedelta(minutes=1)
