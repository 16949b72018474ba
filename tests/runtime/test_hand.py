"""A hand: who may start, settle and give back which of its jobs."""

from typing import Any

import pytest

from jobq.cancellation import CancelReason, CancelToken
from jobq.model.lease import Claim
from jobq.model.outcome import Released, Succeeded, Voided
from jobq.runtime.context import RunningJob
from jobq.runtime.hand import Ended, Hand, next_size
from jobq.testing import FakeClock


def claim(number: int) -> Claim:
    """Return a claim of a job that nobody else has."""
    return Claim(
        number, "kind", "default", 50, "null", 1, 5, 0, None, "system", None, None, None, None, None, None,
        f"token-{number}", "worker", 0,
    )  # fmt: skip


def begin(one: Claim) -> RunningJob:
    """Make a run without a job queue."""
    jobs: Any = None
    return RunningJob(one, jobs=jobs, cancel_token=CancelToken(FakeClock()))


def run_one(hand: Hand) -> int | None:
    """Start and finish the next job; return its id."""
    job = hand.start_next(begin)
    if job is None:
        return None
    hand.finish(job, Ended(job.claim, Succeeded(), 0.0))
    return job.id


@pytest.fixture
def hand() -> Hand:
    """A hand of three jobs."""
    return Hand([claim(1), claim(2), claim(3)], claimed_at=0.0)


def outcomes(ended: list[Ended]) -> list[tuple[int, type]]:
    """Return ids and kinds of outcome."""
    return [(one.claim.id, type(one.outcome)) for one in ended]


def test_jobs_are_started_in_order_and_taken_once(hand: Hand) -> None:
    """Each job is started once; what is over is taken once."""
    assert [run_one(hand) for _ in range(4)] == [1, 2, 3, None]
    assert outcomes(hand.steal()) == [(1, Succeeded), (2, Succeeded), (3, Succeeded)]
    assert hand.steal() == []


def test_stealing_leaves_only_the_current_run(hand: Hand) -> None:
    """Another thread gets what is over and the unstarted rest as released; the current run stays."""
    run_one(hand)
    current = hand.start_next(begin)
    assert current is not None

    assert outcomes(hand.steal()) == [(1, Succeeded), (3, Released)]
    assert not hand.divisible
    assert hand.start_next(begin) is None
    hand.finish(current, Ended(current.claim, Succeeded(), 0.0))
    assert outcomes(hand.steal()) == [(2, Succeeded)]


def test_a_recalled_hand_starts_nothing(hand: Hand) -> None:
    """After a request the unstarted jobs wait to be given back."""
    calls = []
    asked = Hand(hand.claims, claimed_at=0.0, on_recall=lambda: calls.append(1))
    asked.request(CancelReason.USER)

    assert calls == [1]
    assert asked.start_next(begin) is None
    assert outcomes(asked.steal()) == [(1, Released), (2, Released), (3, Released)]


def test_an_abandoned_run_settles_nothing_later(hand: Hand) -> None:
    """Once voided, the end of the run is dropped."""
    current = hand.start_next(begin)
    assert current is not None
    assert hand.is_running(current)
    assert outcomes(hand.abandon(Voided())) == [(1, Voided)]
    hand.finish(current, Ended(current.claim, Succeeded(), 0.0))

    assert outcomes(hand.steal()) == [(2, Released), (3, Released)]


@pytest.mark.parametrize(
    ("size", "ran", "expected"),
    [
        pytest.param(1, [0.0001], 2, id="grows"),
        pytest.param(16, [0.0001] * 16, 32, id="doubles"),
        pytest.param(32, [0.0001] * 32, 32, id="up-to-the-most"),
        pytest.param(16, [0.0004] * 16, 12, id="within-the-time"),
        pytest.param(4, [0.003] * 4, 1, id="not-for-long-handlers"),
        pytest.param(8, [0.0001] * 7 + [0.006], 1, id="one-long-handler-ends-it"),
        pytest.param(8, [], 8, id="nothing-ran"),
        pytest.param(8, [0.0], 16, id="no-time-at-all"),
    ],
)
def test_the_size_follows_the_handlers(size: int, ran: list[float], expected: int) -> None:
    """Short handlers let a hand grow as far as its time allows, one long handler ends it."""
    assert next_size(size, 32, ran) == expected
