"""The fence: the token alone decides who may write about a run, whoever holds which connection or name."""

import pytest

from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.lease import Settlement
from jobq.model.outcome import Cancelled, Failed, Outcome, Postponed, Released, Succeeded, Voided
from tests.store.bench import LEASE, POLICY, Workbench, request

OUTCOMES: list[Outcome] = [Succeeded('"late"'), Failed(error="late"), Released(), Voided(), Cancelled()]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_an_old_token_settles_nothing_after_a_second_claim(
    bench: Workbench, elsewhere: Workbench, outcome: Outcome
) -> None:
    """Of two claims of a job only the later one can write, and the row is untouched by the other."""
    old = bench.start()
    bench.clock.advance(LEASE)
    (new,) = elsewhere.claim("other")
    assert new.id == old.id
    before = elsewhere.get(new.id)
    assert bench.settle(old, outcome) is Verdict.SUPERSEDED
    assert bench.store.history(old.id) == elsewhere.store.history(old.id)
    assert elsewhere.get(new.id) == before
    assert elsewhere.settle(new, Succeeded('"new"')) is Verdict.SUCCEEDED
    assert bench.get(old.id).result == "new"


def test_a_late_deferral_with_an_old_token_is_superseded(bench: Workbench, elsewhere: Workbench) -> None:
    """Its due time does not reach the row."""
    old = bench.start()
    bench.clock.advance(LEASE)
    elsewhere.claim()
    before = bench.get(old.id)
    assert bench.settle(old, Postponed(until=bench.after(9))) is Verdict.SUPERSEDED
    assert bench.get(old.id) == before


def test_an_old_token_extends_nothing(bench: Workbench, elsewhere: Workbench) -> None:
    """It is left out of the answer, while the good lease in the same call is renewed."""
    old = bench.start()
    bench.clock.advance(LEASE)
    (new,) = elsewhere.claim()
    before = bench.get(old.id)
    bench.clock.advance(5)
    assert bench.store.extend([(old.id, old.token)], durable=False) == []
    assert bench.get(old.id) == before
    answers = bench.store.extend([(old.id, old.token), (new.id, new.token)], durable=False)
    assert [(beat.job_id, beat.token, beat.until) for beat in answers] == [(new.id, new.token, bench.after(LEASE))]


def test_b09_the_same_worker_name_is_no_fence(bench: Workbench, elsewhere: Workbench) -> None:
    """A new process of the same name gets the job, and the dead one's token is superseded."""
    bench.enqueue()
    (old,) = bench.claim("A")
    bench.clock.advance(LEASE)
    (new,) = elsewhere.claim("A")
    assert (new.id, new.worker, new.attempts) == (old.id, "A", 2)
    assert bench.settle(old, Succeeded('"old"')) is Verdict.SUPERSEDED
    assert bench.state(new.id) is JobState.RUNNING
    assert elsewhere.settle(new, Succeeded('"new"')) is Verdict.SUCCEEDED


def test_a_token_of_another_job_is_no_key(bench: Workbench) -> None:
    """A token fits one job."""
    one, two = bench.start(), bench.start()
    before = bench.get(one.id)
    crossed = one._replace(token=two.token)
    assert bench.settle(crossed, Succeeded()) is Verdict.SUPERSEDED
    assert bench.store.extend([(one.id, two.token)], durable=False) == []
    assert bench.get(one.id) == before


def test_a_run_settles_once(bench: Workbench) -> None:
    """The same settlement twice, in two calls or in one, writes once."""
    one, two = bench.start(), bench.start()
    assert bench.settle(one, Succeeded("1")) is Verdict.SUCCEEDED
    assert bench.settle(one, Succeeded("2")) is Verdict.SUPERSEDED
    both = [Settlement(two.id, two.token, Succeeded(text), POLICY) for text in ("1", "2")]
    verdicts = [settled.verdict for settled in bench.store.settle(both, durable=False)]
    assert verdicts == [Verdict.SUCCEEDED, Verdict.SUPERSEDED]
    assert (bench.get(one.id).result, bench.get(two.id).result) == (1, 1)


def test_an_unknown_job_is_superseded(bench: Workbench) -> None:
    """A row that was pruned has no owner."""
    (settled,) = bench.store.settle([Settlement(99, "token", Succeeded())], durable=False)
    assert settled.verdict == Verdict.SUPERSEDED


def test_a_superseded_settlement_does_not_stop_its_neighbours(bench: Workbench) -> None:
    """Each settlement of a call stands alone."""
    one, two = bench.start(), bench.start()
    bench.settle(one, Released())
    pair = [Settlement(claim.id, claim.token, Succeeded()) for claim in (one, two)]
    settled, claims = bench.store.settle_and_claim(pair, request(), durable=False)
    assert [answer.verdict for answer in settled] == [Verdict.SUPERSEDED, Verdict.SUCCEEDED]
    assert [claim.id for claim in claims] == [one.id]


def test_a_lapsed_lease_is_good_as_long_as_the_token_stands(bench: Workbench) -> None:
    """The token is the fence, not the clock: a late beat renews, a late settle stands."""
    one, two = bench.start(), bench.start()
    bench.clock.advance(5 * LEASE)
    (beat,) = bench.store.extend([(one.id, one.token)], durable=False)
    assert beat.until == bench.after(LEASE)
    assert bench.settle(two, Succeeded()) is Verdict.SUCCEEDED
    assert bench.store.reclaim(hold_expired=False) == 0


def test_an_extension_says_whether_a_cancel_was_asked(bench: Workbench) -> None:
    """So that a beat brings the request to the owner."""
    claim = bench.start()
    assert [beat.cancel_requested for beat in bench.store.extend([(claim.id, claim.token)], durable=False)] == [False]
    bench.cancel(claim.id)
    assert [beat.cancel_requested for beat in bench.store.extend([(claim.id, claim.token)], durable=False)] == [True]


def test_an_extension_may_name_a_new_length_that_is_kept(bench: Workbench) -> None:
    """Later beats renew by it."""
    claim = bench.start()
    bench.store.extend([(claim.id, claim.token)], length=600, durable=False)
    assert bench.get(claim.id).lease_until == bench.after(600)
    bench.clock.advance(100)
    (beat,) = bench.store.extend([(claim.id, claim.token)], durable=False)
    assert beat.until == bench.after(600)
    assert bench.get(claim.id).lease_length == 600
