"""The real queue beside a dictionary: whatever is done, in whatever order, both say the same."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

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
SECONDS = st.sampled_from([0, 1, RETRY, LEASE // 2, LEASE, 3 * LEASE])


class Beside(RuleBasedStateMachine):
    """Does everything to both, and compares."""

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
            self.model.start(claim.id, claim.token, now)
            self.leases.append((claim.id, claim.token))

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(["succeed", "fail", "fail-for-good", "cancel", "postpone", "release", "void"]),
    )
    def settle(self, data: st.DataObject, outcome: str) -> None:
        """End a run under any token that was ever given out."""
        id, token = data.draw(st.sampled_from(self.leases))
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
        else:
            assert answer.verdict != Verdict.SUPERSEDED
            self.model.settle(id, ends[outcome], self.clock.now())

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        """Renew any lease that was ever given out."""
        id, token = data.draw(st.sampled_from(self.leases))
        beats = self.jobs.store.extend([(id, token)], durable=False)
        job = self.model.jobs.get(id)
        assert bool(beats) is (job is not None and job.token == token)
        if beats and job is not None:
            assert beats[0].cancel_requested is job.cancel_asked
            job.lease_until = self.clock.now() + timedelta(seconds=LEASE)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancel any job."""
        id = data.draw(st.sampled_from(sorted(self.model.jobs)))
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
        self.jobs.prune(older_than=age)
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
