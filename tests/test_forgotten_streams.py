"""A stream that its client has forgotten leaves nothing behind on the bus."""

import gc

import jobq


def audience(jobs: jobq.JobQueue) -> int:
    """Return how many are told events."""
    return len(jobs.bus._audience)


def test_a_forgotten_stream_is_told_nothing_more(jobs: jobq.JobQueue) -> None:
    """The next event finds that nobody holds it."""
    jobs.bus.stream(jobq.JobStateChanged)
    gc.collect()
    assert audience(jobs) == 1

    jobs.enqueue("a")

    assert audience(jobs) == 0


def test_opening_another_one_forgets_it_too(jobs: jobq.JobQueue) -> None:
    """Where nothing happens meanwhile, streams do not pile up."""
    for _ in range(5):
        jobs.bus.stream()
        gc.collect()
    with jobs.bus.stream():
        assert audience(jobs) == 1


def test_a_held_stream_goes_on(jobs: jobq.JobQueue) -> None:
    """Whoever iterates over it, or waits for it, holds it."""
    events = iter(jobs.bus.stream(jobq.JobStateChanged))
    get = jobs.bus.stream(jobq.JobStateChanged).get
    gc.collect()

    made = jobs.enqueue("a")

    assert audience(jobs) == 2
    event = get(timeout=0)
    assert isinstance(event, jobq.JobStateChanged)
    assert next(events) == event
    assert event.job_id == made.id


def test_a_listener_needs_nobody_to_hold_it(jobs: jobq.JobQueue) -> None:
    """It goes on until its subscription is closed."""
    seen: list[jobq.Event] = []
    jobs.bus.subscribe(jobq.JobStateChanged, seen.append)
    gc.collect()
    jobs.enqueue("a")
    assert len(seen) == 1
