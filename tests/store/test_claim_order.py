"""The order of claims, held to a sorted list: priority descending, run_at ascending, id ascending, and nothing else."""

import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.lease import Claim, ClaimRequest, Settlement
from jobq.model.outcome import Failed, Outcome, Postponed, Released, Succeeded
from jobq.model.retry import RetryPolicy
from jobq.store.base import Filter
from tests.store.bench import LEASE, Workbench, draft, ids

AT_ONCE = RetryPolicy(base=0)


@attrs.define
class Row:
    """What the sorted list knows of a job."""

    id: int
    kind: str
    queue: str
    priority: int
    run_at: datetime
    max_attempts: int
    attempts: int = 0
    state: str = "queued"


class SortedList:
    """The claim as one would write it without a database."""

    def __init__(self, caps: Mapping[str, int]) -> None:
        self.rows: dict[int, Row] = {}
        self.caps = caps
        self.paused: set[str] = set()

    def claim(self, request: ClaimRequest, now: datetime) -> list[int]:
        """Return what a claim has to take, and take it."""
        running = Counter(row.kind for row in self.rows.values() if row.state == "running")
        room = {kind: cap - running[kind] for kind, cap in {**self.caps, **request.kind_limits}.items()}
        permits, taken = dict(request.permits), list[int]()
        for row in sorted(self.rows.values(), key=lambda row: (-row.priority, row.run_at, row.id)):
            gate = request.gates.get(row.kind)
            blocked = room.get(row.kind, 1) <= 0 or (gate is not None and permits.get(gate, 0) <= 0)
            if blocked or not self._asked(row, request, now):
                continue
            if row.attempts >= row.max_attempts:
                row.state = "failed"
                continue
            limited = row.kind in room or gate is not None
            if len(taken) >= len(request.workers) and (row.attempts or row.max_attempts < 2 or limited):
                break
            row.state, row.attempts = "running", row.attempts + 1
            if row.kind in room:
                room[row.kind] -= 1
            if gate is not None:
                permits[gate] -= 1
            taken.append(row.id)
            if len(taken) == len(request.workers) * request.hand:
                break
        return taken

    def _asked(self, row: Row, request: ClaimRequest, now: datetime) -> bool:
        kinds, queues = request.kinds or (row.kind,), request.queues or (row.queue,)
        due = row.state == "queued" and row.run_at <= now
        return due and row.kind in kinds and row.queue in queues and row.queue not in self.paused


class Walk:
    """Random enqueues, claims, ends and pauses, on a store and on the sorted list."""

    def __init__(self, bench: Workbench, seed: int) -> None:
        self.bench = bench
        self.dice = random.Random(seed)
        self.kinds = [f"k{n}" for n in range(self.dice.randint(1, 5))]
        self.queues = [f"q{n}" for n in range(self.dice.randint(1, 3))]
        caps = {kind: self.dice.randint(1, 4) for kind in self.kinds if self.dice.random() < 0.3}
        for kind in self.kinds:
            bench.register(kind, cap=caps.get(kind), queue=self.queues[0])
        self.expected = SortedList(caps)
        self.held: list[Claim] = []

    def fill(self, count: int) -> None:
        """Enqueue jobs that differ in everything that matters."""
        drafts = [
            draft(
                self.dice.choice(self.kinds),
                queue=self.dice.choice(self.queues),
                priority=self.dice.choice([-1000, 10, 50, 50, 51, 1000]),
                run_at=self.bench.after(self.dice.choice([-60, -1, -1, 0, 0, 30])),
                max_attempts=self.dice.choice([0, 1, 2, 3, 3, 3]),
            )
            for _ in range(count)
        ]
        for made, placed in zip(drafts, self.bench.store.enqueue(drafts), strict=True):
            assert made.run_at is not None
            row = Row(placed.id, made.kind, made.queue, made.priority, made.run_at, made.max_attempts)
            self.expected.rows[placed.id] = row

    def claim(self) -> None:
        """Claim with random demands; both must take the same jobs in the same order."""
        request = self._request()
        expected = self.expected.claim(request, self.bench.now)
        claims = self.bench.store.claim(request, durable=False)
        assert ids(claims) == expected
        assert [claim.worker for claim in claims] == [
            request.workers[n % len(request.workers)] for n in range(len(claims))
        ]
        self.held += claims

    def end_some(self) -> None:
        """Settle a random part of what runs."""
        self.dice.shuffle(self.held)
        ends = [self.held.pop() for _ in range(self.dice.randint(0, len(self.held)))]
        settlements = [Settlement(claim.id, claim.token, self._outcome(), AT_ONCE) for claim in ends]
        for settled, settlement in zip(self.bench.store.settle(settlements, durable=False), settlements, strict=True):
            row = self.expected.rows[settled.job_id]
            self._note(row, Verdict(settled.verdict), settlement.outcome)

    def toggle(self) -> None:
        """Pause or resume a queue, or let time pass."""
        queue = self.dice.choice(self.queues)
        if queue in self.expected.paused:
            self.expected.paused.discard(queue)
            self.bench.store.resume(queue)
        elif self.dice.random() < 0.3:
            self.expected.paused.add(queue)
            self.bench.store.pause(queue, who=None, why=None)
        self.bench.clock.advance(self.dice.choice([0, 0, 1]))

    def _request(self) -> ClaimRequest:
        dice = self.dice
        some_kinds = tuple(kind for kind in [*self.kinds, "nobody"] if dice.random() < 0.8)
        gates = {kind: dice.choice(["g", "h"]) for kind in self.kinds if dice.random() < 0.2}
        return ClaimRequest(
            tuple(f"w{n}" for n in range(dice.randint(1, 3))),
            LEASE,
            kinds=dice.choice([None, some_kinds or None]),
            queues=dice.choice([None, tuple(self.queues[:2])]),
            hand=dice.choice([1, 1, 2, 5]),
            kind_limits={kind: dice.randint(1, 3) for kind in self.kinds if dice.random() < 0.2},
            gates=gates,
            permits={gate: dice.randint(0, 2) for gate in gates.values()},
        )

    def _outcome(self) -> Outcome:
        until = self.bench.after(self.dice.choice([0, 2]))
        outcomes: list[Outcome] = [Succeeded(), Failed(error="x"), Released(), Postponed(until=until)]
        return self.dice.choice(outcomes)

    def _note(self, row: Row, verdict: Verdict, outcome: Outcome) -> None:
        ended = verdict in (Verdict.SUCCEEDED, Verdict.FAILED)
        row.state = "ended" if ended else "queued"
        if verdict in (Verdict.DEFERRED, Verdict.RELEASED):
            row.attempts -= 1
        if isinstance(outcome, Postponed):
            row.run_at = outcome.until
        elif verdict is Verdict.RETRIED:
            row.run_at = self.bench.now


@pytest.mark.parametrize("seed", range(25))
def test_claims_take_exactly_the_best_jobs_in_order(bench: Workbench, seed: int) -> None:
    """Kinds, queues, priorities, caps, gates, hands, pauses, several workers: the answer is the sorted list's."""
    walk = Walk(bench, seed)
    for _ in range(12):
        walk.fill(walk.dice.randint(0, 25))
        walk.claim()
        walk.end_some()
        walk.toggle()
    states = {row.id: row.state for row in walk.expected.rows.values()}
    for job in bench.store.find(Filter(), limit=None):
        assert {"ended": job.state.terminal}.get(states[job.id], states[job.id] == job.state)


def test_priority_beats_due_time_beats_id(bench: Workbench) -> None:
    """The three keys in their order, across kinds and queues."""
    bench.register("b", queue="mail")
    late = bench.enqueue("a", run_at=bench.after(-1))
    early = bench.enqueue("b", run_at=bench.after(-2), queue="mail")
    twin = bench.enqueue("a", run_at=bench.after(-2))
    low = bench.enqueue("b", priority=49, run_at=bench.after(-99))
    high = bench.enqueue("a", priority=51, queue="mail")
    order = [ids(bench.claim())[0] for _ in range(5)]
    assert order == [high, early, twin, late, low]


def test_a_due_time_is_inclusive(bench: Workbench) -> None:
    """A job runs at its run_at, and not a millisecond before."""
    job_id = bench.enqueue(delay=5)
    bench.clock.advance(4.999)
    assert bench.claim() == []
    bench.clock.advance(0.001)
    assert ids(bench.claim()) == [job_id]


def test_a_retried_job_goes_back_to_its_place_by_its_new_due_time(bench: Workbench) -> None:
    """A release keeps its place, a retry does not."""
    released, retried, fresh = (bench.enqueue(run_at=bench.after(-n)) for n in (3, 2, 1))
    first, second = bench.claim("w", "w")
    assert (first.id, second.id) == (released, retried)
    bench.settle(first, Released())
    bench.settle(second, Failed(error="x"), AT_ONCE)
    assert [ids(bench.claim())[0] for _ in range(3)] == [released, fresh, retried]


def test_rescheduling_changes_the_place(bench: Workbench) -> None:
    """Priority and due time of a queued job can be changed, its id cannot."""
    first, second, third = (bench.enqueue() for _ in range(3))
    assert bench.store.reschedule(third, run_at=None, delay=None, priority=60)
    assert bench.store.reschedule(first, run_at=bench.after(9), delay=None, priority=None)
    assert ids(bench.claim("w", "w", "w")) == [third, second]


def test_each_worker_gets_its_share_in_turn(bench: Workbench) -> None:
    """The best job of all goes to the first worker, the second best to the second."""
    made = [bench.enqueue() for _ in range(5)]
    claims = bench.claim("x", "y", hand=4)
    assert [(claim.worker, claim.id) for claim in claims] == list(zip("xyxyx", made, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"max_attempts": 1}, id="only-one-attempt"),
        pytest.param({"kind": "capped"}, id="capped"),
        pytest.param({"kind": "gated"}, id="gated"),
    ],
)
def test_a_hand_ends_at_the_first_job_that_does_not_qualify(bench: Workbench, options: dict[str, Any]) -> None:
    """It takes nothing worse in its place: the order is strict."""
    bench.register("capped", cap=9)
    good = [bench.enqueue() for _ in range(2)]
    bad, behind = bench.enqueue(**options), bench.enqueue()
    gates: dict[str, Any] = {"gates": {"gated": "g"}, "permits": {"g": 9}}
    assert ids(bench.claim(hand=8, **gates)) == good
    assert ids(bench.claim(hand=8, **gates)) == [bad, behind]


def test_a_hand_holds_no_job_that_was_tried_before(bench: Workbench) -> None:
    """A process that dies with it in its hand would cost it one more of its attempts."""
    claim = bench.start()
    bench.settle(claim, Failed(error="x"), AT_ONCE)
    first, behind = bench.enqueue(priority=60), bench.enqueue(priority=40)
    assert ids(bench.claim(hand=8)) == [first]
    assert ids(bench.claim(hand=8)) == [claim.id, behind]


def test_a_claim_without_workers_takes_nothing(bench: Workbench) -> None:
    """Nobody is idle: what expired is taken back all the same."""
    claim = bench.start()
    bench.clock.advance(LEASE)
    assert bench.store.claim(ClaimRequest((), LEASE), durable=False) == []
    assert bench.state(claim.id) is JobState.QUEUED


def test_a_name_given_twice_counts_once(bench: Workbench) -> None:
    """A job is not handed out twice because a kind or a queue was named twice."""
    made = [bench.enqueue(), bench.enqueue()]
    claims = bench.claim(hand=4, kinds=("a", "a"), queues=("default", "default"))
    assert ids(claims) == made
    assert len({claim.token for claim in claims}) == 2


def test_due_times_far_from_now_do_not_disturb(bench: Workbench) -> None:
    """The first and the last instant there are can be due times."""
    start = bench.now.replace(year=1)
    old, new = bench.enqueue(run_at=start), bench.enqueue(run_at=start.replace(year=9999) + timedelta(days=300))
    assert ids(bench.claim("w", "w")) == [old]
    assert bench.get(new).state is JobState.QUEUED
