"""Publishing what outboxes staged: each row becomes a job once."""

from datetime import UTC, datetime, timedelta

import pytest

from jobq.errors import ArgumentError, DedupeConflict, JobNotFound, RetiredKind
from jobq.model.job import JobState
from jobq.store.base import Draft, Filter, Store
from jobq.store.publishing import StagedDraft
from tests.store.bench import Workbench

AT = datetime(2024, 1, 1, tzinfo=UTC)


def staged(uid: str, **fields: object) -> StagedDraft:
    """Return a row of an outbox."""
    draft = Draft("a", "default", "1", 50, 5, run_at=AT)
    return StagedDraft(uid, 1, draft._replace(**fields))  # type: ignore[arg-type]


def count(store: Store) -> int:
    """Return how many jobs there are."""
    return sum(store.count(Filter()).values())


def test_a_row_is_published_once(bench: Workbench) -> None:
    """In one call and in several; the answer names the job each time."""
    first, again = bench.store.publish([staged("u"), staged("u")])
    (later,) = bench.store.publish([staged("u", kind="other")])

    assert (first.new, again.new, later.new) == (True, False, False)
    assert first.job_id == again.job_id == later.job_id
    assert count(bench.store) == 1


def test_a_held_key_answers_with_its_holder(bench: Workbench) -> None:
    """And for ever: the record stays when the holder has ended."""
    first, second = bench.store.publish([staged("u", dedupe_key="k"), staged("v", dedupe_key="k")])
    bench.store.cancel([first.job_id or 0])
    (again,) = bench.store.publish([staged("v", dedupe_key="k")])

    assert (first.job_id, second.job_id, again.job_id) == (1, 1, 1)
    assert (first.new, second.new, again.new) == (True, False, False)
    assert count(bench.store) == 1


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        pytest.param({"dedupe_key": "k", "kind": "b"}, DedupeConflict, id="key of another kind"),
        pytest.param({"kind": "gone"}, RetiredKind, id="retired"),
        pytest.param({"parent_id": 99, "queue": "new"}, JobNotFound, id="no parent"),
        pytest.param({"priority": 5000}, ArgumentError, id="a CHECK"),
    ],
)
def test_what_is_refused_harms_no_other_row(
    bench: Workbench, fields: dict[str, object], kind: type[Exception]
) -> None:
    """It leaves nothing behind, is told in its place, and may be published later."""
    bench.store.register([], [], ["gone"])
    bench.store.enqueue([staged("", dedupe_key="k").draft])
    bench.feed.clear()
    before, refused, after = bench.store.publish([staged("u"), staged("v", **fields), staged("w")])

    assert (before.new, type(refused.error), refused.job_id, after.new) == (True, kind, None, True)
    assert [change.job_id for change in bench.feed] == [before.job_id, after.job_id]
    assert ([queue.name for queue in bench.store.queues()], count(bench.store)) == (["default"], 3)
    assert bench.store.publish([staged("v")])[0].new


def test_a_record_is_kept_until_thirty_days_after_its_mark(bench: Workbench) -> None:
    """One without a mark is kept; the first note of a mark counts."""
    bench.store.publish([staged("u"), staged("v")])
    bench.store.note_marked([("u", bench.now), ("unknown", bench.now)])
    bench.clock.advance(timedelta(days=29))
    bench.store.note_marked([("u", bench.now)])
    assert bench.store.forget_published() == 0
    bench.clock.advance(timedelta(days=1))
    assert (bench.store.forget_published(), bench.store.forget_published()) == (1, 0)

    assert [one.new for one in bench.store.publish([staged("u"), staged("v")])] == [True, False]


def test_publishing_feeds_what_an_enqueue_feeds(bench: Workbench) -> None:
    """A queued job."""
    bench.store.publish([staged("u", kind="mail", queue="post")])

    assert [(change.kind, change.queue, change.state) for change in bench.feed] == [("mail", "post", JobState.QUEUED)]


def test_stores_of_one_file_see_each_others_records(bench: Workbench, elsewhere: Workbench) -> None:
    """Whichever relay comes second finds the first."""
    bench.store.publish([staged("u")])
    assert not elsewhere.store.publish([staged("u")])[0].new
