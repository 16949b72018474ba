"""What a claim passes over: caps, gates, pauses, retired and unknown kinds, and jobs of the future."""

import pytest

from jobq.errors import UnknownKind
from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.outcome import Failed, Postponed, Released, Succeeded
from tests.store.bench import LEASE, Workbench, draft, ids, request


def test_a_cap_counts_running_rows_over_all_stores(bench: Workbench, elsewhere: Workbench) -> None:
    """Two processes together run no more than the cap allows."""
    bench.register("a", cap=2)
    for _ in range(5):
        bench.enqueue()
    one = bench.claim("w", "w", "w")
    assert len(one) == 2
    assert elsewhere.claim() == []
    elsewhere.settle(one[0], Succeeded())
    assert len(elsewhere.claim("w", "w")) == 1
    assert bench.claim() == []
    assert bench.running("a") == 2


@pytest.mark.parametrize("queue", ["default", "mail"])
def test_a_cap_spans_queues_and_priorities(bench: Workbench, queue: str) -> None:
    """It is the kind's, not a lane's."""
    bench.register("a", cap=1)
    bench.enqueue(queue="default", priority=50)
    bench.enqueue(queue=queue, priority=60)
    assert len(bench.claim("w", "w", "w")) == 1
    assert bench.claim() == []


def test_kind_limits_win_over_the_stored_cap_in_both_directions(bench: Workbench) -> None:
    """The configuration of the claiming process decides."""
    bench.register("a", cap=2)
    for _ in range(6):
        bench.enqueue()
    assert len(bench.claim("w", "w", kind_limits={"a": 1})) == 1
    assert bench.claim(kind_limits={"a": 1}) == []
    assert len(bench.claim("w", "w", "w", kind_limits={"a": 3})) == 2
    assert bench.claim() == []


@pytest.mark.parametrize("kind", ["é\"\\'", "a b", "%", "0", "ключ"])
def test_kind_limits_hold_for_any_name(bench: Workbench, kind: str) -> None:
    """Names are compared exactly, whatever they hold."""
    bench.enqueue(kind)
    bench.enqueue(kind)
    assert len(bench.claim("w", "w", kinds=(kind,), kind_limits={kind: 1})) == 1
    assert bench.claim(kinds=(kind,), kind_limits={kind: 1}) == []


def test_lowering_a_cap_stops_nothing_that_runs(bench: Workbench) -> None:
    """New ones wait until enough have ended."""
    bench.register("a", cap=3)
    for _ in range(5):
        bench.enqueue()
    running = bench.claim("w", "w", "w")
    bench.register("a", cap=1)
    assert bench.running("a") == 3
    for claim in running[:2]:
        assert bench.claim() == []
        assert bench.settle(claim, Succeeded()) is Verdict.SUCCEEDED
    assert bench.claim() == []
    bench.settle(running[2], Succeeded())
    assert len(bench.claim("w", "w")) == 1


@pytest.mark.parametrize(
    "outcome", [Succeeded(), Failed(error="x"), Released(), Failed(error="x", retryable=False)], ids=lambda o: repr(o)
)
def test_every_way_out_of_running_frees_the_place(bench: Workbench, outcome: object) -> None:
    """The count is of rows, so nothing can leak."""
    bench.register("a", cap=1)
    (claim,) = (bench.enqueue(), bench.enqueue()) and bench.claim()
    bench.settle(claim, outcome)  # type: ignore[arg-type]
    assert len(bench.claim()) == 1


def test_a_kind_at_its_cap_is_not_in_the_way(bench: Workbench) -> None:
    """Better jobs that may not run block none that may."""
    bench.register("full", cap=1)
    bench.start("full")
    for _ in range(3):
        bench.enqueue("full", priority=1000)
    other = bench.enqueue("a", priority=-1000)
    assert ids(bench.claim("w", "w")) == [other]


def test_a_paused_queue_gives_nothing_in_any_process(bench: Workbench, elsewhere: Workbench) -> None:
    """At once, and what runs goes on; the pause remembers who and why."""
    running = bench.start(queue="mail")
    waiting, other = bench.enqueue(queue="mail", priority=1000), bench.enqueue(priority=-1000)
    assert bench.store.pause("mail", who="ada", why="printer on fire") is True
    assert bench.store.pause("mail", who="bob", why="me too") is False
    assert elsewhere.claim(queues=("mail",)) == []
    assert ids(elsewhere.claim("w", "w")) == [other]
    assert elsewhere.settle(running, Succeeded()) is Verdict.SUCCEEDED
    (info,) = [queue for queue in elsewhere.store.queues() if queue.name == "mail"]
    assert (info.paused_at, info.paused_by, info.paused_why) == (bench.now, "ada", "printer on fire")
    assert elsewhere.store.resume("mail") is True
    assert elsewhere.store.resume("mail") is False
    assert ids(bench.claim()) == [waiting]


def test_a_retired_kind_is_left_alone(bench: Workbench) -> None:
    """Also when it is asked for by name; registering it again brings it back."""
    job_id = bench.enqueue()
    bench.store.register([], [], ["a"])
    assert bench.claim() == []
    assert bench.claim(kinds=("a",)) == []
    bench.register("a")
    assert ids(bench.claim()) == [job_id]


def test_retiring_cancels_queued_jobs_and_stops_nothing_that_runs(bench: Workbench) -> None:
    """More than one transaction's worth of them, in several queues; the reason is on each row."""
    running = bench.start()
    gone = [made.id for made in bench.store.enqueue([draft(), draft(queue="mail")] * 600)]
    kept = bench.enqueue("b")
    taken = [bench.store.retire(["a"]) for _ in range(24)]
    assert taken == [50] * 24
    assert bench.store.retire(["a"]) == 0
    assert {bench.get(job_id).failure_reason for job_id in gone} == {"retired_kind"}
    assert (bench.state(running.id), bench.state(kept)) == (JobState.RUNNING, JobState.QUEUED)


def test_b41_an_unknown_kind_waits_untouched_and_delays_nobody(bench: Workbench) -> None:
    """A newer deploy may know it."""
    unknown, known = bench.enqueue("b", priority=1000), bench.enqueue("a")
    assert ids(bench.claim("w", "w", kinds=("a",))) == [known]
    job = bench.get(unknown)
    assert (job.state, job.attempts) == (JobState.QUEUED, 0)
    assert ids(bench.claim(kinds=("a", "b"))) == [unknown]


def test_a_future_job_is_not_in_the_way(bench: Workbench) -> None:
    """Whatever its priority, in the same lane or another."""
    for priority in (1000, 50):
        bench.enqueue(delay=60, priority=priority)
    now = bench.enqueue()
    assert ids(bench.claim("w", "w")) == [now]


def test_a_gated_kind_needs_a_permit(bench: Workbench) -> None:
    """One claim takes no more jobs than it brought permits, and the kinds of one gate share them."""
    for kind in ("a", "b", "a", "b"):
        bench.enqueue(kind, priority=60)
    free = bench.enqueue("c")
    gates = {"a": "llm", "b": "llm"}
    assert ids(bench.claim("w", "w", gates=gates)) == [free]
    assert len(bench.claim("w", "w", "w", "w", gates=gates, permits={"llm": 3})) == 3
    assert bench.claim(gates=gates, permits={"llm": 0}) == []
    assert len(bench.claim(gates=gates, permits={"llm": 1})) == 1


def test_a_claim_stays_within_its_queues(bench: Workbench) -> None:
    """Queues that do not exist are no error."""
    bench.enqueue(priority=1000)
    mail = bench.enqueue(queue="mail")
    assert ids(bench.claim("w", "w", queues=("mail", "nowhere"))) == [mail]


def test_a_look_sees_what_a_claim_would_find(bench: Workbench) -> None:
    """Without taking anything: the queues with a claimable head, and the next time to look again."""
    assert bench.store.look(request()) == (frozenset(), False, None)
    bench.enqueue(queue="mail", delay=30)
    assert bench.store.look(request()) == (frozenset(), False, bench.after(30))
    bench.enqueue()
    assert bench.store.look(request()) == (frozenset({"default"}), False, bench.after(30))
    bench.clock.advance(30)
    assert bench.store.look(request()) == (frozenset({"default", "mail"}), False, None)
    assert bench.store.look(request(queues=("mail",))).ready == {"mail"}
    assert bench.store.look(request(kinds=("b",))).ready == frozenset()


def test_a_look_sees_nothing_in_what_a_claim_passes_over(bench: Workbench) -> None:
    """Capped, paused, retired, gated: an idle watcher does not take the lock for them."""
    bench.register("capped", cap=1)
    bench.start("capped")
    bench.enqueue("capped")
    bench.enqueue("a", queue="mail")
    bench.store.pause("mail", who=None, why=None)
    bench.enqueue("old")
    bench.store.register([], [], ["old"])
    bench.enqueue("gated")
    outlook = bench.store.look(request(gates={"gated": "g"}))
    assert outlook == (frozenset(), False, bench.after(LEASE))


def test_a_look_tells_of_expired_leases(bench: Workbench) -> None:
    """And of the next one that will expire."""
    claim = bench.start()
    assert bench.store.look(request()) == (frozenset(), False, bench.after(LEASE))
    bench.clock.advance(LEASE)
    assert bench.store.look(request()) == (frozenset(), True, None)
    bench.settle(claim, Postponed(until=bench.after(5)))
    assert bench.store.look(request()) == (frozenset(), False, bench.after(5))


def test_a_paused_kind_is_claimed_in_no_process_and_no_queue(bench: Workbench, elsewhere: Workbench) -> None:
    """At once, also where it is asked for by name; what runs goes on; the pause remembers who and why."""
    running = bench.start("a")
    waiting = bench.enqueue("a", priority=1000), bench.enqueue("a", queue="mail", priority=999)
    other = bench.enqueue("b", priority=-1000)
    assert bench.store.pause_kind("a", who="ada", why="bad deploy") is True
    assert bench.store.pause_kind("a", who="bob", why="me too") is False
    assert elsewhere.claim("w", "w", kinds=("a",)) == []
    assert elsewhere.store.look(request(kinds=("a",))).ready == frozenset()
    assert ids(elsewhere.claim("w", "w", "w")) == [other]
    assert elsewhere.settle(running, Succeeded()) is Verdict.SUCCEEDED
    (info,) = elsewhere.store.kinds(["a"])
    assert (info.paused, info.paused_at, info.paused_by, info.paused_why) == (True, bench.now, "ada", "bad deploy")
    assert elsewhere.store.resume_kind("a") is True
    assert elsewhere.store.resume_kind("a") is False
    assert ids(bench.claim("w", "w")) == list(waiting)


def test_a_pause_of_a_kind_outlives_registering_it_anew(bench: Workbench) -> None:
    """Each deploy registers the kinds; what somebody paused stays paused."""
    bench.register("a")
    bench.store.pause_kind("a", who=None, why=None)
    bench.register("a", queue="mail", cap=2)
    bench.enqueue("a")
    assert bench.claim() == []
    assert bench.store.kinds(["a"])[0].paused


def test_pausing_an_unknown_kind_is_refused(bench: Workbench) -> None:
    """A mistyped name must not look like a success; one that was only enqueued is known."""
    bench.enqueue("a")
    with pytest.raises(UnknownKind):
        bench.store.pause_kind("b", who=None, why=None)
    with pytest.raises(UnknownKind):
        bench.store.resume_kind("b")
    assert bench.store.pause_kind("a", who=None, why=None) is True
