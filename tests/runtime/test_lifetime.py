"""What many starts and stops of a runner leave behind."""

import threading
from typing import Any

import apsw

import jobq
from tests.runtime.conftest import PATIENCE


def test_b49_fifty_starts_and_stops_leave_no_thread_and_no_handle(open_real: Any) -> None:
    """Afterwards there are as many as after the first, and the runner still runs jobs."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: None)
    runner = jobq.Runner(jobs, workers={"default": 2})
    counts = []
    for number in range(50):
        runner.start()
        if number % 10 == 0:
            assert jobs.enqueue("note").wait(PATIENCE).state == "succeeded"
        runner.stop()
        counts.append((threading.active_count(), len(apsw.connections())))

    assert counts[-1][0] == counts[0][0]
    assert max(handles for _, handles in counts) <= counts[0][1] + 1
    assert jobs.counts()[jobq.JobState.SUCCEEDED] == 5


def test_b58_a_listener_that_takes_its_time_changes_no_outcome(open_real: Any) -> None:
    """While it is busy with the first event jobs run and end; later it has heard every event, in order."""
    jobs = open_real()
    jobs.job(name="note")(lambda payload: "done")
    heard: list[int] = []
    entered, go_on = threading.Event(), threading.Event()

    def slow(event: jobq.JobStateChanged) -> None:
        if not heard:
            entered.set()
            assert go_on.wait(PATIENCE)
        heard.append(event.job_id)

    jobs.bus.subscribe(jobq.JobStateChanged, slow)
    with jobq.Runner(jobs, workers={"default": 2}):
        first = threading.Thread(target=jobs.enqueue, args=("note",))
        first.start()
        assert entered.wait(PATIENCE)
        made = [jobs.enqueue("note") for _ in range(20)]
        for _ in range(int(PATIENCE / 0.01)):
            if jobs.counts()[jobq.JobState.SUCCEEDED] == 21:
                break
            first.join(0.01)
        assert {jobs.get(one.id).result for one in made} == {"done"}
        assert not heard
        go_on.set()
        first.join(PATIENCE)
    assert sorted(heard) == sorted([job.id for job in jobs.find(limit=None)] * 3)
