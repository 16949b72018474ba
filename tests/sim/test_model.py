"""The real queue beside a dictionary: whatever is done, in whatever order, both say the same."""

from collections import Counter
from datetime import timedelta
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import jobq
from jobq.errors import DedupeConflict, InvalidTransition
from jobq.model.effects import Verdict
from jobq.model.job import FailureClass
from jobq.model.lease import ClaimRequest, Settlement
from jobq.model.outcome import Cancelled, Failed, Outcome, Postponed, Released, Succeeded, Voided
from jobq.testing import FakeClock
from tests.sim.model import CAP, LEASE, RETRY, Model, ModelJob

KINDS = ("plain", "capped")
POLICY = jobq.RetryPolicy(base=RETRY, maximum=RETRY, jitter=0)
OUTCOMES = st.sampled_from(["succeed", "fail", "fail-for-good", "cancel", "postpone", "release", "void"])
#: Where all examples together must come, and how often for each hundred of them: else the fence is hardly looked at.
PLACES = {
    "a settle was written": 60,
    "an old token settled nothing": 60,
    "an old token settled nothing while another run held the job": 15,
    "an old token renewed nothing": 15,
    "a job was claimed again": 40,
    "a held key made no job": 10,
    "a running job was asked to cancel": 5,
    "a requeue was refused": 10,
    "a job was pruned": 10,
}
SECONDS = st.sampled_from([0, 1, RETRY, LEASE // 2, LEASE, 3 * LEASE])


class Beside(RuleBasedStateMachine):
    """Does everything to both, and compares."""

    #: How often the interesting places were reached, by all examples.
    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.jobs = jobq.open(clock=self.clock, config=jobq.Config(durability="relaxed", lease=LEASE))
        for kind in KINDS:
            self.jobs.job(name=kind, concurrency=CAP.get(kind), retry=POLICY)(lambda payload: None)
        self.jobs.register()
        self.model = Model()
        #: Leases that were ever given out: id and token.
        self.leases: list[tuple[int, str]] = []

    @initialize()
    def begin(self) -> None:
        """Have something to claim, in each example."""
        for kind, tries in (("plain", 3), ("plain", 2), ("capped", 3)):
            self.enqueue(kind=kind, priority=50, delay=0, key=None, tries=tries)
        self.claim()

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.jobs.close()

    @rule(
        kind=st.sampled_from(KINDS),
        priority=st.sampled_from([10, 50, 100]),
        delay=st.sampled_from([0, 0, 5]),
        key=st.sampled_from([None, None, "a", "b"]),
        tries=st.integers(1, 3),
    )
    def enqueue(self, kind: str, priority: int, delay: int, key: str | None, tries: int) -> None:
        """Enqueue, perhaps under a key that is held."""
        full_key = None if key is None else f"{kind}-{key}"
        holder = self.model.holder(full_key)
        made = self.jobs.enqueue(kind, {}, priority=priority, delay=delay, dedupe_key=full_key, max_attempts=tries)
        assert made.created is (holder is None)
        self.reached["a held key made no job"] += holder is not None
        if holder is None:
            run_at = self.clock.now() + timedelta(seconds=delay)
            self.model.jobs[made.id] = ModelJob(kind, priority, run_at, full_key, tries)
        else:
            assert made.id == holder

    @rule()
    def claim(self) -> None:
        """Claim what is best."""
        request = ClaimRequest(workers=("w",), lease_length=LEASE, kinds=KINDS)
        claims = self.jobs.store.claim(request, durable=False)
        now = self.clock.now()
        self.model.reclaim(now)
        best = self.model.best(now)
        assert [claim.id for claim in claims] == ([] if best is None else [best])
        for claim in claims:
            self.reached["a job was claimed again"] += any(claim.id == id for id, _ in self.leases)
            self.model.start(claim.id, claim.token, now)
            self.leases.append((claim.id, claim.token))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), outcome=OUTCOMES)
    def settle(self, data: st.DataObject, outcome: str) -> None:
        """End a run under any token that was ever given out."""
        self._settle(*data.draw(st.sampled_from(self.leases)), outcome)

    @precondition(lambda self: self.overtaken())
    @rule(data=st.data(), outcome=OUTCOMES)
    def settle_late(self, data: st.DataObject, outcome: str) -> None:
        """End a run whose job has been claimed again since."""
        self._settle(*data.draw(st.sampled_from(self.overtaken())), outcome)

    @rule(data=st.data(), first=OUTCOMES, second=OUTCOMES)
    def run(self, data: st.DataObject, first: str, second: str) -> None:
        """Claim, and end two runs, of those that are under way if there are any."""
        self.claim()
        for outcome in (first, second):
            if running := [(id, job.token) for id, job in self.model.jobs.items() if job.token is not None]:
                self._settle(*data.draw(st.sampled_from(running)), outcome)

    @rule(data=st.data(), outcome=OUTCOMES)
    def overtake(self, data: st.DataObject, outcome: str) -> None:
        """Claim, let every lease lapse, claim what comes free, and end a run that was overtaken."""
        self.claim()
        self.clock.advance(LEASE)
        self.claim()
        if overtaken := self.overtaken():
            self._settle(*data.draw(st.sampled_from(overtaken)), outcome)

    def overtaken(self) -> list[tuple[int, str]]:
        """Return the old leases of jobs that run under newer ones."""
        running = {id: job.token for id, job in self.model.jobs.items() if job.token is not None}
        return [(id, token) for id, token in self.leases if running.get(id, token) != token]

    def _settle(self, id: int, token: str, outcome: str) -> None:
        job = self.model.jobs.get(id)
        ends: dict[str, Outcome] = {
            "succeed": Succeeded(),
            "fail": Failed(error="no"),
            "fail-for-good": Failed(error="no", failure_class=FailureClass.UNRECOVERABLE, retryable=False),
            "cancel": Cancelled(),
            "postpone": Postponed(until=self.clock.now() + timedelta(seconds=7)),
            "release": Released(),
            "void": Voided(),
        }
        (answer,) = self.jobs.store.settle((Settlement(id, token, ends[outcome], POLICY),), durable=False)
        if job is None or job.token != token:
            assert answer.verdict == Verdict.SUPERSEDED
            self.reached["an old token settled nothing"] += 1
            held = job is not None and job.token is not None
            self.reached["an old token settled nothing while another run held the job"] += held
        else:
            assert answer.verdict != Verdict.SUPERSEDED
            self.model.settle(id, ends[outcome], self.clock.now())
            self.reached["a settle was written"] += 1

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        """Renew any lease that was ever given out."""
        id, token = data.draw(st.sampled_from(self.leases))
        beats = self.jobs.store.extend([(id, token)], durable=False)
        job = self.model.jobs.get(id)
        assert bool(beats) is (job is not None and job.token == token)
        self.reached["an old token renewed nothing"] += not beats
        if beats and job is not None:
            assert beats[0].cancel_requested is job.cancel_asked
            job.lease_until = self.clock.now() + timedelta(seconds=LEASE)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancel any job, or, as often, one that runs."""
        running = [id for id, job in self.model.jobs.items() if job.state == "running"]
        chosen = running if running and data.draw(st.booleans()) else sorted(self.model.jobs)
        id = data.draw(st.sampled_from(chosen))
        self.reached["a running job was asked to cancel"] += self.model.jobs[id].state == "running"
        assert self.jobs.cancel(id) is self.model.cancel(id, self.clock.now())

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        """Requeue any job."""
        id = data.draw(st.sampled_from(sorted(self.model.jobs)))
        if self.model.may_requeue(id):
            self.jobs.requeue(id)
            self.model.requeue(id, self.clock.now())
        else:
            with pytest.raises((InvalidTransition, DedupeConflict)):
                self.jobs.requeue(id)
            self.reached["a requeue was refused"] += 1

    @rule()
    def expire(self) -> None:
        """Take back what has expired."""
        self.jobs.store.reclaim(hold_expired=False)
        self.model.reclaim(self.clock.now())

    @rule(seconds=SECONDS)
    def advance(self, seconds: int) -> None:
        """Let time pass."""
        self.clock.advance(seconds)

    @rule()
    def pause_or_resume(self) -> None:
        """Pause the queue, or resume it."""
        self.model.paused = not self.model.paused
        if self.model.paused:
            self.jobs.pause("default")
        else:
            self.jobs.resume("default")

    @rule(age=st.sampled_from([0, LEASE]))
    def prune(self, age: int) -> None:
        """Remove what has ended."""
        self.reached["a job was pruned"] += self.jobs.prune(older_than=age).total
        self.model.prune(self.clock.now() - timedelta(seconds=age))

    @invariant()
    def both_say_the_same(self) -> None:
        """Compare every job."""
        said = {
            job.id: (str(job.state), job.attempts, job.deferrals, job.priority, job.run_at, job.token is not None)
            for job in self.jobs.find(limit=None)
        }
        assert said == {id: job.facts() for id, job in self.model.jobs.items()}


@pytest.mark.parametrize(
    ("examples", "steps"),
    [pytest.param(60, 40, id="short"), pytest.param(3_000, 80, id="long", marks=pytest.mark.storm)],
)
def test_the_queue_and_a_dictionary_say_the_same(examples: int, steps: int) -> None:
    """Enqueue, claim, beat, settle in every way, cancel, requeue, prune, pause, expire and advance, in any order."""
    Beside.reached.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Beside,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=examples < 100,
            suppress_health_check=list(HealthCheck),
        ),
    )
    short = {place: times for place, times in PLACES.items() if Beside.reached[place] * 100 < times * examples}
    assert not short, f"reached too rarely: {short} of {Beside.reached}"
