"""How far a run is stands on the row of its job, fenced by its token."""

from jobq.model.outcome import Failed, Succeeded
from tests.store.bench import LEASE, Workbench


def test_the_word_of_a_good_token_is_kept(bench: Workbench, elsewhere: Workbench) -> None:
    """It changes nothing else of the row, and stays when the job ends."""
    claim = bench.start()
    before = bench.get(claim.id)

    assert bench.store.report(claim.id, claim.token, '{"done": 1}')

    after = elsewhere.get(claim.id)
    assert (before.progress, after.progress) == (None, {"done": 1})
    assert (after.state, after.lease_until, after.attempts) == (before.state, before.lease_until, before.attempts)
    bench.settle(claim, Succeeded())
    assert elsewhere.get(claim.id).progress == {"done": 1}


def test_the_word_of_an_old_token_is_not(bench: Workbench, elsewhere: Workbench) -> None:
    """After a second claim, after the end, and for a job that is not there."""
    old = bench.start()
    bench.clock.advance(LEASE)
    (new,) = elsewhere.claim("other")

    assert not bench.store.report(old.id, old.token, '{"done": 1}')
    assert elsewhere.store.report(new.id, new.token, '{"done": 2}')
    assert bench.settle(new, Failed(error="x", retryable=False))
    assert not elsewhere.store.report(new.id, new.token, '{"done": 3}')
    assert not bench.store.report(999, new.token, "{}")
    assert bench.get(new.id).progress == {"done": 2}


def test_a_claim_and_a_requeue_clear_it(bench: Workbench) -> None:
    """A run starts without the words of the one before."""
    claim = bench.start()
    bench.store.report(claim.id, claim.token, '{"done": 1}')
    bench.settle(claim, Failed(error="x"))
    bench.clock.advance(60)
    assert bench.get(claim.id).progress == {"done": 1}
    (again,) = bench.claim()
    assert bench.get(claim.id).progress is None
    bench.store.report(again.id, again.token, '{"done": 2}')
    bench.settle(again, Failed(error="x", retryable=False))
    bench.requeue(claim.id)
    assert bench.get(claim.id).progress is None
