"""What maintenance does besides taking back leases and watching clocks, which have tests of their own."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import jobq
from jobq.testing import FakeClock
from tests.runtime.conftest import PATIENCE


def prolonged(caplog: pytest.LogCaptureFixture) -> int:
    """Return how many open transactions were reported."""
    return sum("jobq.transaction.prolonged" in record.getMessage() for record in caplog.records)


def test_a_transaction_left_open_is_reported_while_nobody_waits(
    jobs: jobq.JobQueue, runner: jobq.Runner, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, when it has been open for over a second, with the thread that it belongs to; and one that ended is not."""
    caplog.set_level(logging.WARNING, logger="jobq")
    runner.maintenance.tick()  # what it writes now and then is not due again below
    with ThreadPoolExecutor(1) as other, jobs.transaction():

        def tick() -> int:
            other.submit(runner.maintenance.tick).result(PATIENCE)
            return prolonged(caplog)

        clock.advance(0.9)
        assert tick() == 0
        clock.advance(0.2)
        assert tick() == 1
        clock.advance(5)
        assert tick() == 1
    assert f"thread={threading.get_ident()}" in caplog.text

    clock.advance(5)
    runner.maintenance.tick()
    assert prolonged(caplog) == 1


def test_a_running_runner_reports_the_transaction_of_another_thread(
    jobs: jobq.JobQueue, runner: jobq.Runner, clock: FakeClock
) -> None:
    """By itself, though no job runs."""
    told = threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: told.set() if "prolonged" in record.getMessage() else None  # type: ignore[method-assign]
    logging.getLogger("jobq").addHandler(handler)
    try:
        with runner, jobs.transaction():
            clock.advance(1.1)
            assert told.wait(PATIENCE)
    finally:
        logging.getLogger("jobq").removeHandler(handler)
