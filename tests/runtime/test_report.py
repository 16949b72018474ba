"""The log line of each attempt, and of each lease that nobody renewed."""

from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """Return the fields of each logged line of an event."""
    return [record.jobq for record in caplog.records if record.getMessage().split(" ")[0] == event]  # type: ignore[attr-defined]


def test_failed_attempt_names_the_failing_line(jobs: jobq.JobQueue, caplog: pytest.LogCaptureFixture) -> None:
    """The innermost frames, as places in files, and no text of the payload."""

    @jobs.job(max_attempts=1)
    def breaks(payload: dict) -> str:  # type: ignore[type-arg]
        return inner(payload)

    def inner(payload: dict) -> str:  # type: ignore[type-arg]
        return str(payload["missing"])

    jobs.enqueue("breaks", {"hush": "hush"})
    jobq.Runner(jobs).drain()

    (line,) = lines(caplog, "jobq.job.failed")
    assert line["where"].startswith("test_report.py:")
    assert " in inner < test_report.py:" in line["where"]
    assert "hush" not in caplog.text


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        pytest.param(jobq.Deferred("full", delay=1), "deferrals_exhausted", id="deferrals"),
        pytest.param(jobq.JobCancelled(), None, id="nothing asked"),
    ],
)
def test_failure_that_the_machine_decides_is_explained(
    jobs: jobq.JobQueue, caplog: pytest.LogCaptureFixture, raised: BaseException, reason: str | None
) -> None:
    """Error and reason are those of the row, whatever the handler raised."""

    @jobs.job(max_attempts=1, max_deferrals=0)
    def raises(payload: None) -> None:
        raise raised

    made = raises.enqueue()
    jobq.Runner(jobs).drain()

    (line,) = lines(caplog, "jobq.job.failed")
    assert (line["error"], line["reason"]) == (jobs.get(made.id).last_error, reason)
    assert line["error"]


@pytest.mark.parametrize("attempts", [pytest.param(1, id="for good"), pytest.param(2, id="again")])
def test_expired_lease_is_logged_by_whoever_takes_it_back(
    jobs: jobq.JobQueue, clock: FakeClock, caplog: pytest.LogCaptureFixture, attempts: int
) -> None:
    """With the worker that held it and what became of the job."""
    made = jobs.enqueue("lost", max_attempts=attempts)
    jobs.lease("lost", worker="gone", length=10)
    clock.advance(10)
    jobq.Runner(jobs).drain()

    (line,) = lines(caplog, "jobq.lease.expired")
    assert (line["job_id"], line["worker"], line["attempt"]) == (made.id, "gone", 1)
    assert line["verdict"] == ("failed" if attempts == 1 else "retried")
    assert f"verdict='{line['verdict']!s}'" in caplog.text
