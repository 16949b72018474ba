"""Which reasons hold for a job, in which order, and what each sentence tells the person on call."""

from datetime import timedelta
from typing import Any

import attrs
import pytest

from jobq.model.circumstances import Circumstances, Pause, Staff
from jobq.model.explanation import Explanation, ReasonCode
from jobq.model.instant import EPOCH
from jobq.model.job import Actor, FailureClass, JobInfo, JobState
from jobq.model.reasons import explain

NOW = EPOCH + timedelta(days=20_000)
FULL = Staff(alive=2, serving=1, handling=1, both=1)
PAUSE = Pause(NOW, "ada", "disk full")


def job(**fields: Any) -> JobInfo:
    """Return a queued job that is due."""
    values: dict[str, Any] = dict.fromkeys(field.name for field in attrs.fields(JobInfo))
    values |= {
        "id": 7,
        "kind": "send_email",
        "queue": "mail",
        "state": JobState.QUEUED,
        "priority": 50,
        "actor": Actor.SYSTEM,
        "attempts": 0,
        "max_attempts": 5,
        "deferrals": 0,
        "run_at": NOW,
        "created_at": NOW,
        "meta": {},
    }
    return JobInfo(**{**values, **fields})


def why(staff: Staff = FULL, *, job_: JobInfo | None = None, **seen: Any) -> Explanation:
    """Explain a job under these circumstances."""
    return explain(Circumstances(job_ or job(), **seen), staff, now=NOW)


LATER = {"run_at": NOW + timedelta(hours=1, seconds=30)}
RUNNING = {"state": JobState.RUNNING, "attempts": 2, "worker": "host:1:w", "lease_until": NOW + timedelta(minutes=1)}

CASES = [
    pytest.param(why(), "next", "the next free worker of the queue mail", {"queue": "mail"}, id="next"),
    pytest.param(
        why(queue_pause=PAUSE),
        "queue_paused",
        "queue mail is paused since 2024-10-04 00:00:00Z by ada (disk full); `jobq queue resume mail`.",
        {"queue": "mail", "paused_at": NOW, "paused_by": "ada", "paused_why": "disk full"},
        id="queue paused",
    ),
    pytest.param(
        why(kind_pause=Pause(NOW, None, None)),
        "kind_paused",
        "kind send_email is paused since 2024-10-04 00:00:00Z; `jobq kind resume send_email`.",
        {"kind": "send_email", "paused_at": NOW, "paused_by": None, "paused_why": None},
        id="kind paused",
    ),
    pytest.param(
        why(cap=2, running=2, running_ids=(3, 4)),
        "capped",
        "kind send_email is at its cap: 2 of at most 2 run, jobs 3, 4; it runs when one of them has ended.",
        {"kind": "send_email", "cap": 2, "running": 2, "jobs": [3, 4]},
        id="capped",
    ),
    pytest.param(
        why(cap=1, running=25, running_ids=tuple(range(20))),
        "capped",
        "19 and 5 more; it runs",
        {"kind": "send_email", "cap": 1, "running": 25, "jobs": list(range(20))},
        id="far above a cap that was lowered",
    ),
    pytest.param(
        why(job_=job(**LATER)),
        "not_due",
        "not due until 2024-10-04 01:00:30Z, in 1h30s; `jobq job reschedule 7 --delay 0` lets it run now.",
        {"run_at": LATER["run_at"], "seconds": 3630.0},
        id="not due",
    ),
    pytest.param(
        why(Staff(alive=0, serving=0, handling=0, both=0)),
        "unserved",
        "No runner is alive, so nobody serves the queue mail; `jobq work -A MODULE:ATTR` starts one.",
        {"queue": "mail", "runners": 0},
        id="no runner",
    ),
    pytest.param(
        why(Staff(alive=1, serving=0, handling=1, both=0)),
        "unserved",
        "Nobody serves the queue mail: 1 runner is alive, without workers for it; "
        "`jobq work -A MODULE:ATTR --workers mail=1`",
        {"queue": "mail", "runners": 1},
        id="nobody serves the queue",
    ),
    pytest.param(
        why(Staff(alive=2, serving=2, handling=0, both=0)),
        "no_handler",
        "No live runner has a handler of the kind send_email (2 runners are alive); `jobq work",
        {"kind": "send_email", "runners": 2},
        id="no handler",
    ),
    pytest.param(
        why(Staff(alive=2, serving=1, handling=1, both=0)),
        "no_handler",
        "No live runner both serves the queue mail and has a handler of the kind send_email",
        {"kind": "send_email", "runners": 2},
        id="queue here, handler there",
    ),
    pytest.param(
        why(retired=True), "retired", "retired: nobody runs it", {"kind": "send_email"}, id="retired"
    ),
    pytest.param(
        why(better=1),
        "behind",
        "behind 1 better job of the queue mail, which have a higher priority than 50 or were due earlier; "
        "`jobq job reschedule 7 --priority N` moves it up.",
        {"better": 1, "more": False},
        id="behind one",
    ),
    pytest.param(why(better=1000), "behind", "behind 1,000 better", {"better": 1000, "more": False}, id="behind 1,000"),
    pytest.param(
        why(better=1001), "behind", "behind more than 1,000 better", {"better": 1000, "more": True}, id="behind more"
    ),
]


@pytest.mark.parametrize(("found", "code", "says", "data"), CASES)
def test_a_reason_alone(found: Explanation, code: str, says: str, data: dict[str, Any]) -> None:
    """Its code, the sentence with the command that helps, and the same as data."""
    (reason,) = found.reasons
    assert reason.code == code
    assert says in reason.text
    assert reason.data == data
    assert reason.text.endswith(".")


def test_every_code_is_shown_here() -> None:
    """A new reason gets a case."""
    told = {str(case.values[1]) for case in CASES}  # type: ignore[attr-defined]
    assert told | {"ended", "running", "deferred", "retrying"} == set(ReasonCode)


def test_a_deferred_job_says_why_its_handler_deferred_it() -> None:
    """Beside the time that it waits for."""
    waiting = job(**LATER, deferrals=2, last_error="smtp down")
    found = why(job_=waiting, deferred=True)
    assert found.codes == (ReasonCode.NOT_DUE, ReasonCode.DEFERRED)
    assert "deferred it (2 so far), because: smtp down." in found.reasons[1].text
    assert found.reasons[1].data == {"deferrals": 2, "because": "smtp down"}


def test_a_retried_job_says_what_failed() -> None:
    """It waits for its delay; one that is due says nothing of it."""
    failed = job(**LATER, attempts=1, deferrals=1, last_error="OSError: reset")
    found = why(job_=failed)
    assert found.codes == (ReasonCode.NOT_DUE, ReasonCode.RETRYING)
    assert "attempt 1 of 5 failed: OSError: reset." in found.reasons[1].text
    assert why(job_=job(attempts=1, last_error="OSError: reset")).codes == (ReasonCode.NEXT,)


def test_reasons_that_hold_at_once_are_all_given_in_order() -> None:
    """The one that has to be mended first comes first."""
    found = why(
        Staff(alive=2, serving=0, handling=0, both=0),
        job_=job(**LATER, deferrals=1, last_error="later"),
        queue_pause=PAUSE,
        kind_pause=PAUSE,
        retired=True,
        cap=1,
        running=1,
        running_ids=(3,),
        better=4,
        deferred=True,
    )
    assert found.codes == tuple(
        code for code in ReasonCode if code not in ("ended", "running", "retrying", "next")
    )
    assert found.text.count("\n") == len(found.reasons) - 1
    assert str(found).startswith("job 7 is queued\nIts kind send_email is retired")


def test_a_running_job_says_who_has_it() -> None:
    """And nothing of what would keep a queued one."""
    found = why(job_=job(**RUNNING), queue_pause=PAUSE, better=4)
    assert found.codes == (ReasonCode.RUNNING,)
    assert found.text == "It is running: attempt 2 of 5, by host:1:w, under a lease until 2024-10-04 00:01:00Z."
    assert found.reasons[0].data["lease_expired"] is False


def test_a_running_job_says_that_its_lease_ended_and_that_it_was_asked_to_stop() -> None:
    """Both are why somebody asks."""
    found = why(job_=job(**{**RUNNING, "lease_until": NOW}, cancel_requested_at=NOW))
    assert "its lease ended at 2024-10-04 00:00:00Z: the next claim by any worker takes it back" in found.text
    assert found.text.endswith("; it was asked to stop at 2024-10-04 00:00:00Z.")
    data = found.reasons[0].data
    assert (data["lease_expired"], data["cancel_requested_at"]) == (True, NOW)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("succeeded", "It has succeeded at 2024-10-04 00:00:00Z."),
        ("failed", "It has failed at 2024-10-04 00:00:00Z: OSError: reset; `jobq job requeue 7` runs it again."),
        ("cancelled", "It has been cancelled at 2024-10-04 00:00:00Z; `jobq job requeue 7` runs it again."),
    ],
)
def test_a_job_that_ended_says_how(state: str, text: str) -> None:
    """With what lets it run again, where something does."""
    error = "OSError: reset" if state == "failed" else None
    ended = job(state=JobState(state), finished_at=NOW, last_error=error, failure_class=FailureClass.TRANSIENT)
    found = why(job_=ended)
    assert (found.codes, found.text) == ((ReasonCode.ENDED,), text)
    assert found.reasons[0].data["state"] == state


def test_names_in_commands_can_be_pasted_into_a_shell() -> None:
    """A kind may hold spaces and quotes."""
    found = why(job_=job(kind="it's mail"), kind_pause=PAUSE)
    assert """`jobq kind resume 'it'"'"'s mail'`""" in found.text
