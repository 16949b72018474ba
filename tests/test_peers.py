"""The peer comparison: who is measured, and the stopwatch."""

import threading

from benchmarks.peers import missing
from benchmarks.rivals.known import JOBQ, Known
from benchmarks.rivals.rival import Stopwatch

ABSENT = Known(name="absent", distribution="jobq-no-such-peer", setting="", promise="")


def test_a_peer_that_is_not_installed_is_named_and_left_out() -> None:
    """A distribution that is not there has no version and is named; one that is there is not."""
    assert (ABSENT.version, JOBQ.version is None) == (None, False)
    assert list(missing([ABSENT, JOBQ])) == ["not installed, left out: jobq-no-such-peer"]
    assert list(missing([JOBQ])) == []


def test_the_stopwatch_is_over_with_the_last_job_whichever_thread_starts_it() -> None:
    """It goes on until as many jobs have started as it was told, then stands."""
    stopwatch = Stopwatch(jobs=5, seconds=3_600)
    for _ in range(4):
        stopwatch.lap()
    assert not stopwatch.over.is_set()
    last = threading.Thread(target=stopwatch.lap)
    last.start()
    last.join(30)
    rate = stopwatch.rate
    stopwatch.lap()
    assert (stopwatch.over.is_set(), stopwatch.rate) == (True, rate)
