"""Pauses of queues and kinds: at once, in every process, with who and why, until somebody resumes."""

from collections.abc import Callable
from typing import Any

import pytest

from jobq import (
    ArgumentError,
    Event,
    JobQueue,
    KindStateChanged,
    QueueNotFound,
    QueueStateChanged,
    Runner,
    UnknownKind,
)
from jobq.testing import FakeClock

Again = Callable[..., JobQueue]
#: A queue and a kind, as the verbs name them, and the kind's or queue's value in the listing.
TARGETS: list[Any] = [
    pytest.param({"queue": "default"}, lambda jobs: jobs.queues()[0], QueueStateChanged, id="queue"),
    pytest.param({"kind": "mail"}, lambda jobs: jobs.kinds()[0], KindStateChanged, id="kind"),
]


@pytest.mark.parametrize(("target", "info", "event"), TARGETS)
def test_pause_stops_claims_until_resume(
    jobs: JobQueue, clock: FakeClock, target: dict[str, str], info: Callable[[JobQueue], Any], event: Any
) -> None:
    """The row remembers who and why, redacted; the second time nothing changes; each change is told."""
    jobs.enqueue("mail")
    told: list[Event] = []
    jobs.bus.subscribe(event, told.append)

    assert jobs.pause(**target, who="ada", why="token=abcdefgh12345678") is True
    assert jobs.pause(**target) is False
    assert jobs.lease(worker="w") == []
    assert jobs.lease("mail", worker="w") == []
    found = info(jobs)
    assert (found.paused, found.paused_at, found.paused_by, found.queued) == (True, clock.now(), "ada", 1)
    assert "abcdefgh" not in str(found.paused_why)
    assert jobs.resume(**target) is True
    assert jobs.resume(**target) is False
    assert len(jobs.lease(worker="w")) == 1
    assert told == [event(**target, paused=True, at=clock.now()), event(**target, paused=False, at=clock.now())]


def test_a_pause_of_a_kind_outlives_restart_and_registration(jobs: JobQueue, open_again: Again) -> None:
    """Whoever starts next and registers the kind runs nothing of it, and other kinds as ever."""
    jobs.job(name="mail")(lambda payload: None)
    jobs.pause(kind="mail", why="bad deploy")

    again = open_again()
    again.job(name="mail")(lambda payload: None)
    again.job(name="note")(lambda payload: None)
    again.enqueue("mail")
    again.enqueue("note")

    assert Runner(again).drain().succeeded == 1
    assert again.kinds()[0].paused_why == "bad deploy"
    again.resume(kind="mail")
    assert Runner(again).drain().succeeded == 1


def test_the_doctor_tells_of_forgotten_pauses(jobs: JobQueue) -> None:
    """Of queues and of kinds that have jobs; a paused kind needs no handler for now."""
    jobs.enqueue("mail")
    jobs.pause("default")
    jobs.pause(kind="mail")

    found = {finding.check: finding for finding in jobs.doctor()}

    assert found["pauses"].detail == "paused with jobs waiting: queue default, kind mail"
    assert found["kinds"].ok


def test_pause_of_what_is_unknown_is_refused(jobs: JobQueue) -> None:
    """A mistyped name must not look like a success; one that a handler here names is known."""
    jobs.job(name="send", queue="mail")(lambda payload: None)

    for verb in (jobs.pause, jobs.resume):
        with pytest.raises(QueueNotFound):
            verb("main")
        with pytest.raises(UnknownKind):
            verb(kind="sent")
    assert jobs.pause("mail") is True
    assert jobs.pause(kind="send") is True


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"queue": "default", "kind": "mail"}, id="both"),
        pytest.param({"queue": "No way"}, id="bad queue"),
        pytest.param({"kind": ""}, id="bad kind"),
        pytest.param({"queue": "default", "who": 5}, id="who is a number"),
    ],
)
def test_pause_refuses_bad_arguments(jobs: JobQueue, target: dict[str, Any]) -> None:
    """With the argument's name, and before anything is written."""
    with pytest.raises(ArgumentError):
        jobs.pause(**target)
    assert not jobs.queues()[0].paused


def test_a_pause_inside_a_transaction_is_a_part_of_it(jobs: JobQueue) -> None:
    """Rolled back, it was never there and nobody hears of it."""
    jobs.enqueue("mail")
    told: list[Event] = []
    jobs.bus.subscribe(KindStateChanged, told.append)

    def fail() -> None:
        with jobs.transaction():
            jobs.pause(kind="mail")
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert (jobs.kinds()[0].paused, told) == (False, [])
