"""Rows that stay: those that fail, and those that were published, do not keep the others waiting, and go in time."""

from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.testing import FakeClock
from tests.outbox.conftest import staging

Make = Callable[..., jobq.Outbox]


def stage(outbox: jobq.Outbox, host: Any, kind: str, count: int) -> None:
    """Stage so many jobs of a kind."""
    with staging(outbox, host):
        outbox.jobs.enqueue_many([jobq.NewJob(kind) for _ in range(count)])


def spoil_all(host: Any) -> None:
    """Make rows that nobody can read of all there are."""
    for row in host.rows():
        host.spoil(row["id"], "draft", "broken")


def test_many_that_fail_leave_most_of_a_batch_to_the_others(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock
) -> None:
    """They are due all at once and stand in front; alone they have the whole of it."""
    stage(outbox, host, "bad", 150)
    spoil_all(host)
    assert (outbox.relay.catch_up(), outbox.pending().failing) == (0, 150)
    clock.advance("5m")
    stage(outbox, host, "good", 100)

    assert (outbox.relay.tick(), sum(one.attempts == 2 for one in outbox.failing(limit=200))) == (75, 25)
    assert outbox.relay.catch_up() == 25
    assert [one.attempts for one in outbox.failing(limit=200)] == [2] * 150


def test_a_clock_set_back_does_not_prolong_a_pause(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock
) -> None:
    """A row whose next try is further ahead than any pause is long is tried now."""
    stage(outbox, host, "mail", 1)
    (row,) = host.rows()
    host.spoil(1, "draft", "broken")
    outbox.relay.tick()
    host.spoil(1, "draft", row["draft"])
    clock.jump(-365 * 86_400)

    assert (outbox.relay.tick(), outbox.pending().count) == (1, 0)


def test_published_rows_are_deleted_after_their_time(
    host: Any, jobs: jobq.JobQueue, make_outbox: Make, clock: FakeClock
) -> None:
    """First the host's row, and thirty days after its mark jobq's record of it."""
    outbox = make_outbox(host, keep="2h")
    with staging(outbox, host):
        jobs.enqueue("mail")
    for hours, left in ((0, (1, 1)), (1, (1, 1)), (3, (0, 1)), (24 * 29, (0, 1)), (24, (0, 0))):
        clock.advance(hours * 3600)
        outbox.relay.tick()
        assert (len(host.rows()), _records(jobs)) == left, hours


def _records(jobs: jobq.JobQueue) -> int:
    with jobs.read() as snapshot:
        return snapshot.execute("SELECT count(*) FROM jobq_published")[0][0]


def test_a_mark_that_jobq_was_not_told_of_is_told_before_the_row_goes(
    host: Any, outbox: jobq.Outbox, jobs: jobq.JobQueue, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash right after the mark leaves no record behind for ever."""
    with staging(outbox, host):
        jobs.enqueue("mail")
    with monkeypatch.context() as patch:
        patch.setattr(jobs.store, "note_marked", lambda marks: None)
        outbox.relay.tick()
    clock.advance("25h")
    outbox.relay.tick()
    assert (host.rows(), _records(jobs)) == ([], 1)
    clock.advance("29d")
    outbox.relay.tick()

    assert _records(jobs) == 0


def test_published_rows_are_deleted_a_part_in_each_tick(
    shop: Any, jobs: jobq.JobQueue, make_outbox: Make, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is staged meanwhile is published between the parts; the next look comes after the last of them."""
    monkeypatch.setattr("jobq.outbox.relay.TIDIED", 10)
    outbox = make_outbox(shop, keep="1h")
    stage(outbox, shop, "old", 25)
    outbox.relay.tick()
    clock.advance("2h")
    left = []
    for _ in range(3):
        stage(outbox, shop, "new", 1)
        assert outbox.relay.tick() == 1
        left.append(len(shop.rows()))

    assert left == [16, 7, 3]
