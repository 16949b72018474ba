"""What tests with real threads share: a job queue on the system's clock, and waiting with a limit."""

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import jobq
from tests.ready import ready_file

#: No test waits longer for anything, in seconds.
PATIENCE = 20.0


@pytest.fixture
def open_real() -> Iterator[Callable[..., jobq.JobQueue]]:
    """Opens temporary job queues on the system's clock, with a configuration; they are closed after the test."""
    with ExitStack() as stack:

        def opener(**settings: object) -> jobq.JobQueue:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobq-"))
            config = jobq.Config(**settings)  # type: ignore[arg-type]
            return stack.enter_context(jobq.open(ready_file(Path(place, "jobq.db")), config=config))

        yield opener


class Changes:
    """Waits until job queues reach a state, woken by their changes."""

    def __init__(self) -> None:
        self._happened = threading.Condition()

    def on_event(self, event: object) -> None:
        """Take note that something happened."""
        with self._happened:
            self._happened.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds; fail when it does not within the limit."""
        with self._happened:
            # Looked at now and then as well: not everything that a test waits for is an event.
            for _ in range(int(PATIENCE / 0.02)):
                if condition():
                    return
                self._happened.wait(0.02)
        raise AssertionError("it did not happen in time")


@pytest.fixture
def changes() -> Changes:
    """Waits with a limit."""
    return Changes()
