"""Fixtures for tests of programs on jobq. Nothing happens in a test that names none of them.

pytest loads this module in every run of an environment that has jobq. It therefore opens nothing, starts nothing and
hooks into nothing, and leaves the imports to the fixtures.
"""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def jobq_clock() -> Any:
    """A :class:`jobq.testing.FakeClock`, which stands still until it is told to move."""
    from jobq.testing import FakeClock  # start-up cost

    return FakeClock()


@pytest.fixture
def jobq_queue(jobq_clock: Any) -> Iterator[Any]:
    """A temporary :class:`jobq.JobQueue` on the fake clock, closed and removed after the test."""
    from jobq.opening import open  # start-up cost

    with open(clock=jobq_clock) as jobs:
        yield jobs


@pytest.fixture
def jobq_runner(jobq_queue: Any) -> Iterator[Any]:
    """A :class:`jobq.Runner` of that job queue, not started: ``drain()`` and ``run_once()`` are what tests call.

    It is stopped after the test, in case the test started it.
    """
    from jobq.runtime.runner import Runner  # start-up cost

    runner = Runner(jobq_queue)
    yield runner
    runner.stop()
