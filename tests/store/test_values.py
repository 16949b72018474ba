"""What goes in comes out: jobs, large texts, listings, counts, states, registrations, runners."""

import json
from datetime import timedelta
from typing import Any

import pytest

from jobq.errors import QueueNotFound, RetiredKind
from jobq.model.instant import EPOCH, MAX, MIN
from jobq.model.job import Actor, JobState
from jobq.model.outcome import Failed, Succeeded
from jobq.model.runner import RunnerRow
from jobq.store.base import Filter, KindRow, QueueRow
from tests.store.bench import Workbench, draft

FULL: dict[str, Any] = {
    "queue": "mail",
    "payload": '{"to": ["ada", null, 1.5, true, "\\u0000", "é"]}',
    "priority": -1000,
    "max_attempts": 7,
    "max_deferrals": 0,
    "dedupe_key": "k" * 512,
    "actor": Actor.AGENT.value,
    "tenant_id": "t\0x",
    "subject": "s' OR 1=1 --",
    "meta": '{"trace": "é"}',
}


def test_a_job_is_read_back_as_it_was_enqueued(bench: Workbench) -> None:
    """Every column, and the value that the enqueue answered with is the one that is stored."""
    parent = bench.enqueue()
    placed = bench.place("kind with spaces", **FULL, parent_id=parent, run_at=bench.after(3600))
    job = bench.get(placed.id)
    assert placed.load() == job
    assert (job.kind, job.payload, job.meta) == (
        "kind with spaces",
        {"to": ["ada", None, 1.5, True, "\0", "é"]},
        {"trace": "é"},
    )
    expected = {name: value for name, value in FULL.items() if name not in ("payload", "meta")}
    assert {name: getattr(job, name) for name in expected} == expected
    assert (job.parent_id, job.run_at, job.created_at) == (parent, bench.after(3600), bench.now)
    assert (job.result, job.progress, job.schedule, job.slot) == (None, None, None, None)


def test_a_claim_carries_what_a_run_needs(bench: Workbench) -> None:
    """As stored, payload and meta still as text, and how long the job was due."""
    parent = bench.enqueue(delay=999)
    job_id = bench.enqueue("k", **FULL, parent_id=parent)
    bench.clock.advance(1.5)
    (claim,) = bench.claim()
    assert (claim.id, claim.kind, claim.queue, claim.priority) == (job_id, "k", "mail", -1000)
    assert (claim.payload, claim.meta) == (FULL["payload"], FULL["meta"])
    assert (claim.tenant_id, claim.subject, claim.actor) == (FULL["tenant_id"], FULL["subject"], "agent")
    assert (claim.parent_id, claim.attempts, claim.max_attempts, claim.deferrals) == (parent, 1, 7, 0)
    assert (claim.waited_ms, claim.schedule, claim.slot, claim.last_error) == (1500, None, None, None)


@pytest.mark.parametrize("when", [MIN, EPOCH, EPOCH - timedelta(milliseconds=1), MAX.replace(microsecond=999000)])
def test_any_instant_can_be_a_due_time(bench: Workbench, when: Any) -> None:
    """From the year 1 to the year 9999."""
    assert bench.get(bench.enqueue(run_at=when)).run_at == when


@pytest.mark.parametrize("delay", [0, -5, -(10**9)])
def test_a_negative_delay_means_now(bench: Workbench, delay: float) -> None:
    """A past run_at is kept, a negative delay is not."""
    assert bench.get(bench.enqueue(delay=delay)).run_at == bench.now
    assert bench.get(bench.enqueue(run_at=bench.after(-9))).run_at == bench.after(-9)


@pytest.mark.parametrize("size", [1, 1998, 1999, 2000, 2001, 200_000])
@pytest.mark.parametrize("letter", ["x", "字"])
def test_texts_of_any_size_come_back_whole(bench: Workbench, size: int, letter: str) -> None:
    """Payload and result, wherever they are kept, through a retry, to the claim and to the lookup."""
    text = json.dumps(letter * size, ensure_ascii=False)
    job_id = bench.enqueue(payload=text)
    bench.settle(bench.claim()[0], Failed(error="x"))
    bench.clock.advance(10)
    (claim,) = bench.claim()
    assert claim.payload == text
    bench.settle(claim, Succeeded(text))
    job = bench.get(job_id)
    assert (job.payload, job.result) == (letter * size, letter * size)


def test_a_large_result_replaces_nothing_and_leaves_with_nothing(bench: Workbench) -> None:
    """Results of different jobs stay apart; one without a result has none."""
    one, two = bench.start(), bench.start()
    bench.settle(one, Succeeded(json.dumps("x" * 5000)))
    bench.settle(two, Succeeded())
    assert bench.get(one.id).result == "x" * 5000
    assert bench.get(two.id).result is None


def _made(bench: Workbench) -> dict[str, int]:
    jobs = {"plain": bench.enqueue()}
    jobs["child"] = bench.enqueue("b", parent_id=jobs["plain"], tenant_id="t", subject="s", queue="mail")
    jobs["keyed"] = bench.enqueue("b", dedupe_key="k")
    jobs["running"] = bench.start("c").id
    return jobs


def test_find_narrows_by_each_field_and_by_all_together(bench: Workbench) -> None:
    """Newest first; a field that is None does not narrow."""
    jobs = _made(bench)
    newest_first = sorted(jobs.values(), reverse=True)

    def found(limit: int | None = None, **wanted: Any) -> list[int]:
        return [job.id for job in bench.store.find(Filter(**wanted), limit=limit)]

    assert found() == newest_first
    assert found(limit=2) == newest_first[:2]
    assert found(limit=0) == []
    assert found(before=jobs["keyed"]) == [jobs["child"], jobs["plain"]]
    assert found(before=jobs["keyed"], limit=1) == [jobs["child"]]
    assert found(state=JobState.RUNNING) == [jobs["running"]]
    assert found(kind="b") == [jobs["keyed"], jobs["child"]]
    assert found(queue="mail") == found(parent_id=jobs["plain"]) == [jobs["child"]]
    assert found(tenant_id="t") == found(subject="s") == [jobs["child"]]
    assert found(dedupe_key="k") == [jobs["keyed"]]
    assert found(kind="b", queue="default", state=JobState.QUEUED) == [jobs["keyed"]]
    assert found(kind="b", queue="default", state=JobState.FAILED) == []


@pytest.mark.parametrize("text", ["%", "_", "' OR ''='", "a\\"])
def test_find_takes_texts_literally(bench: Workbench, text: str) -> None:
    """Nothing in them is a pattern or a statement."""
    bench.enqueue(subject="subject", tenant_id="tenant")
    job_id = bench.enqueue(text, subject=text, tenant_id=text, dedupe_key=text)
    for wanted in (Filter(kind=text), Filter(subject=text), Filter(tenant_id=text), Filter(dedupe_key=text)):
        assert [job.id for job in bench.store.find(wanted, limit=None)] == [job_id]


def test_find_by_failure_reason_and_every_state(bench: Workbench) -> None:
    """Ended jobs are found by how they ended."""
    claim = bench.start()
    bench.settle(claim, Failed(error="x", reason="bounced", retryable=False))
    assert [job.id for job in bench.store.find(Filter(failure_reason="bounced"), limit=9)] == [claim.id]
    for state in JobState:
        found = bench.store.find(Filter(state=state), limit=9)
        assert [job.id for job in found] == ([claim.id] if state is JobState.FAILED else [])


def test_b54_find_carries_no_payload_and_no_result(bench: Workbench) -> None:
    """A listing of large jobs stays small."""
    bench.enqueue(payload=json.dumps("x" * 100_000))
    (info,) = bench.store.find(Filter(), limit=None)
    assert not hasattr(info, "payload")
    assert not hasattr(info, "result")


def test_counts_name_every_state(bench: Workbench) -> None:
    """Zeros included, narrowed like a listing."""
    bench.enqueue()
    bench.enqueue("b", queue="mail")
    bench.settle(bench.start("c"), Succeeded())
    bench.settle(bench.start("c"), Failed(error="x", reason="why", retryable=False))
    bench.cancel(bench.enqueue("c", delay=9))
    bench.start("d")
    everything = {"queued": 2, "running": 1, "succeeded": 1, "failed": 1, "cancelled": 1}
    none: dict[str, int] = dict.fromkeys(JobState, 0)
    assert bench.store.count(Filter()) == everything
    assert bench.store.count(Filter(kind="c")) == {**none, "succeeded": 1, "failed": 1, "cancelled": 1}
    assert bench.store.count(Filter(queue="mail")) == {**none, "queued": 1}
    assert bench.store.count(Filter(state=JobState.FAILED)) == {**none, "failed": 1}
    assert bench.store.count(Filter(failure_reason="why", kind="b")) == none


def test_states_of_many_jobs_at_once(bench: Workbench) -> None:
    """Unknown ids are left out; there may be more of them than a statement has variables."""
    one, two = bench.start().id, bench.enqueue()
    assert bench.store.states([one, two, 99, -1, 0, 2**62, *range(1000, 41_000)]) == {
        one: JobState.RUNNING,
        two: JobState.QUEUED,
    }
    assert bench.store.states([]) == {}
    assert bench.store.get([]) == {}


def test_queues_and_kinds_count_what_waits_and_runs(bench: Workbench) -> None:
    """By name; a kind that was only enqueued has no defaults."""
    bench.store.register([KindRow("b", "mail", 7, 9, 2, 3, {"base": 1.0})], [QueueRow("mail"), QueueRow("idle")], [])
    bench.start("b", queue="mail")
    bench.enqueue("b", queue="mail")
    bench.enqueue("a", queue="default")
    assert [(queue.name, queue.queued, queue.running, queue.paused) for queue in bench.store.queues()] == [
        ("default", 1, 0, False),
        ("idle", 0, 0, False),
        ("mail", 1, 1, False),
    ]
    unknown, known = bench.store.kinds()
    assert (unknown.name, unknown.queue, unknown.priority, unknown.cap, unknown.retry) == ("a", None, None, None, None)
    assert (known.name, known.queue, known.priority, known.max_attempts) == ("b", "mail", 7, 9)
    assert (known.max_deferrals, known.cap, known.retry, known.retired) == (2, 3, {"base": 1.0}, False)
    assert (known.queued, known.running) == (1, 1)
    assert bench.store.kinds(["b", "z"]) == [known]


def test_the_last_registration_of_a_kind_wins_and_pauses_stay(bench: Workbench) -> None:
    """Also when it takes a default away."""
    bench.register("a", cap=3, queue="mail")
    bench.store.pause("mail", who="ada", why=None)
    bench.register("a", queue="mail")
    assert bench.store.kinds(["a"])[0].cap is None
    assert [queue.paused_by for queue in bench.store.queues()] == [None, "ada"]


def test_the_default_queue_exists_from_the_start(bench: Workbench) -> None:
    """Others are made by an enqueue that names them; pausing does not make one."""
    assert [queue.name for queue in bench.store.queues()] == ["default"]
    with pytest.raises(QueueNotFound):
        bench.store.pause("mail", who=None, why=None)
    with pytest.raises(QueueNotFound):
        bench.store.resume("mail")
    bench.enqueue(queue="mail")
    assert bench.store.pause("mail", who=None, why=None) is True


def test_a_retired_kind_takes_no_jobs(bench: Workbench) -> None:
    """The error names it; nothing is written."""
    bench.store.register([], [], ["old"])
    with pytest.raises(RetiredKind):
        bench.store.enqueue([draft("a"), draft("old")])
    assert bench.store.find(Filter(), limit=None) == []


def test_a_runner_is_remembered_until_it_stops(bench: Workbench) -> None:
    """Its last beat counts; one that was silent for a day is forgotten by the others' beats."""
    row = RunnerRow("r1", "host", 7, {"a": 2, "b": 1}, ("é",), "boot", 12.5, bench.now, bench.now)
    bench.store.beat_runner(row)
    bench.clock.advance(60)
    later = row._replace(monotonic=72.5, beat_at=bench.now)
    bench.store.beat_runner(later)
    other = row._replace(id="r2", beat_at=bench.now)
    bench.store.beat_runner(other)
    assert bench.store.runners() == [later, other]
    bench.store.remove_runner("r2")
    bench.store.remove_runner("r2")
    assert bench.store.runners() == [later]
    bench.clock.advance("2d")
    newest = row._replace(id="r3", beat_at=bench.now)
    bench.store.beat_runner(newest)
    assert bench.store.runners() == [newest]


def test_the_change_counter_sees_every_process(bench: Workbench, elsewhere: Workbench) -> None:
    """It moves with each commit, ours or another's, and with nothing else."""
    before = bench.store.data_version()
    bench.store.find(Filter(), limit=1)
    assert bench.store.data_version() == before
    elsewhere.enqueue()
    after = bench.store.data_version()
    assert after != before
    bench.enqueue()
    assert bench.store.data_version() != after
