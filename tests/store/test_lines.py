"""Log lines in the database."""

from datetime import datetime
from typing import Any

import attrs
import pytest

from jobq.model.events import LogLine
from jobq.model.outcome import Succeeded
from tests.store.bench import Workbench


def line(bench: Workbench, job_id: int, event: str = "event", at: datetime | None = None, **fields: Any) -> LogLine:
    """Return a line of now."""
    return LogLine(job_id=job_id, attempt=1, at=at or bench.now, level="info", event=event, fields=fields)


def test_lines_are_read_back_as_they_were(bench: Workbench, elsewhere: Workbench) -> None:
    """In their order, by job."""
    first, second = bench.enqueue(), bench.enqueue()
    fields = {"n": [1, {"a": None}], "text": "\x7f\u2028"}
    written = [line(bench, job_id, "ä\0'\"", **fields) for job_id in (first, second, first)]
    written[2] = attrs.evolve(written[2], event="last", level="error", attempt=3)

    bench.store.keep_lines(written)

    assert elsewhere.store.lines(first, limit=None) == [written[0], written[2]]
    assert elsewhere.store.lines(first, limit=1) == [written[2]]
    assert elsewhere.store.lines(second, limit=9) == [written[1]]
    assert elsewhere.store.lines(99, limit=None) == elsewhere.store.lines(first, limit=0) == []


def test_lines_of_jobs_that_are_gone_are_left_out(bench: Workbench) -> None:
    """The others of the batch are kept, and no lines is nothing to do."""
    job_id = bench.enqueue()
    bench.store.keep_lines([line(bench, 99), line(bench, job_id), line(bench, 98)])
    bench.store.keep_lines([])
    assert len(bench.store.lines(job_id, limit=None)) == 1
    assert bench.store.lines(99, limit=None) == []


def test_keeping_lines_changes_no_job(bench: Workbench) -> None:
    """Nothing is announced, and the job may have ended."""
    claim = bench.start()
    bench.settle(claim, Succeeded())
    before, told = bench.get(claim.id), len(bench.feed)
    bench.store.keep_lines([line(bench, claim.id)])
    assert (bench.get(claim.id), len(bench.feed)) == (before, told)


@pytest.mark.parametrize(("limit", "left"), [(1, ["1", "2", "3"]), (2, ["2", "3"]), (10, ["3"])])
def test_old_lines_are_removed_the_oldest_first(bench: Workbench, limit: int, left: list[str]) -> None:
    """At most so many; the instant itself is not older."""
    job_id = bench.enqueue()
    bench.store.keep_lines([line(bench, job_id, str(n), at=bench.after(n)) for n in range(4)])

    removed = bench.store.prune_lines(before=bench.after(3), limit=limit)

    assert removed == 4 - len(left)
    assert [kept.event for kept in bench.store.lines(job_id, limit=None)] == left
