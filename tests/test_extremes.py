"""What a caller's texts and the counter of ids may hold at their ends: it comes back as it was, through every verb."""

import json

import pytest

import jobq
from jobq.cli import main
from jobq.testing import FakeClock

#: SQLite's length() ends at a NUL, and its tools show no more; the text is whole all the same.
NULS = ["\0", "\0x", "a\0b"]
#: No float holds it: what goes through one on its way comes back as another.
BEYOND = 2**53 + 1


@pytest.mark.parametrize("text", NULS, ids=ascii)
def test_b53_a_nul_in_any_text_of_a_caller_is_kept_or_refused(jobs: jobq.JobQueue, clock: FakeClock, text: str) -> None:
    """Kinds and keys refuse it; subjects, labels, names of schedules and all others tell one text from another."""
    for refused in (lambda: jobs.enqueue(text), lambda: jobs.enqueue("a", dedupe_key=text)):
        with pytest.raises(jobq.ArgumentError):
            refused()
    made = jobs.enqueue("a", {text: text}, subject=text, tenant_id=text, meta={text: text})
    jobs.labels.set(text, text, text)
    jobs.pause("default", who=text, why=text)
    jobs.resume("default")
    jobs.schedules.add(text, every=5, kind="b")
    jobs.schedules.add(f"{text}.", every=5, kind="b")
    clock.advance(5)
    (lease,) = jobs.lease("a", worker=text)

    assert {one.schedule for one in jobs.schedules.tick() if one.created} == {text, f"{text}."}
    jobs.fail(lease, text, permanent=True)
    job = jobs.get(made.id)
    assert (job.payload, job.subject, job.tenant_id, job.meta) == ({text: text}, text, text, {text: text})
    assert [one.id for one in jobs.find(subject=text)] == [one.id for one in jobs.find(tenant_id=text)] == [made.id]
    assert jobs.find(subject=f"{text}.") == []
    assert jobs.labels.get(text) == {text: text}
    assert jobs.history(made.id)[0].worker == text
    assert jobs.schedules.remove(text) is True
    assert [one.name for one in jobs.schedules.list()] == [f"{text}."]


def test_ids_that_no_float_holds_are_exact(
    jobs: jobq.JobQueue, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through lists, filters, families, runs, requeues, pruning and the command line."""
    jobs.store.engine.write(  # type: ignore[attr-defined]
        lambda conn, _: conn.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('jobq_job', ?)", (BEYOND - 1,)
        ).fetchall(),
        sync=False,
        busy_timeout=1,
    )
    jobs.job(name="a")(lambda payload: None)
    first, second, third = (jobs.enqueue("a", {}, delay=delay).id for delay in (0, 60, 60))
    part = jobs.enqueue("a", {}, parent_id=second, delay=60).id
    assert [first, second, third, part] == [BEYOND, BEYOND + 1, BEYOND + 2, BEYOND + 3]

    assert jobq.Runner(jobs).drain().succeeded == 1
    assert [one.id for one in jobs.find(before=third)] == [second, first]
    assert [one.id for one in jobs.children(second)] == [part]
    assert jobs.cancel([third, first]) == (third,)
    assert jobs.requeue([third, second]).ids == (third, second)
    assert jobs.prune(older_than=0).total == 1
    assert main(["job", "show", str(second), "--json", "--db", jobs.path]) == 0
    assert json.loads(capsys.readouterr().out)["job"]["id"] == second
    assert [one.id for one in jobs.find()] == [part, third, second]
