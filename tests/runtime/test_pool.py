"""A pool: who is woken, who claims for whom, and that no wake-up is lost."""

import threading
import time

import pytest

from jobq.runtime.hand import Hand
from jobq.runtime.pool import Pool, Seat
from jobq.trouble import FIRST_PAUSE
from tests.interrupts import strikes

PATIENCE = 10.0


class Resting:
    """A thread that rests in a pool once, for which a claim was made in vain or, where it is ``due``, none was made."""

    def __init__(self, pool: Pool, *, due: bool = False) -> None:
        self.seat = pool.seat("w")
        self.seat.due = due
        self.got: list[Hand | None] = []
        self._pool = pool
        self._thread = threading.Thread(target=self._rest, daemon=True)
        self._thread.start()

    def _rest(self) -> None:
        self.got.append(self._pool.rest(self.seat))

    def ended(self, within: float = PATIENCE) -> bool:
        """Whether it came back."""
        self._thread.join(within)
        return not self._thread.is_alive()


@pytest.fixture
def pool() -> Pool:
    """A pool whose last claim found nothing."""
    found = Pool("default", on_idle=lambda: None)
    look(found, found.seat("first"))
    return found


def look(pool: Pool, seat: Seat) -> None:
    """Let a thread claim in vain, for itself and for whoever is idle."""
    seats = pool.reserve(seat)
    pool.share(seats, [None] * len(seats))


def idle(pool: Pool, count: int) -> list[Resting]:
    """Return so many resting threads, once all of them are idle."""
    resting = [Resting(pool) for _ in range(count)]
    while len(pool._idle) < count:
        pass
    return resting


def hand() -> Hand:
    """Return a hand that nobody looks into."""
    return Hand((), claimed_at=0.0)


def test_one_wake_wakes_one_thread(pool: Pool) -> None:
    """The others go on resting: the one that woke claims for them."""
    resting = idle(pool, 3)
    pool.wake()

    assert sum(one.ended(0.1) for one in resting) == 1
    pool.close()
    assert all(one.ended() for one in resting)
    assert [one.got for one in resting] == [[None]] * 3


def test_a_wake_that_nobody_heard_is_not_lost(pool: Pool) -> None:
    """What is said while a thread claims keeps it from resting."""
    seat = pool.seat("busy")
    seats = pool.reserve(seat)
    pool.wake()
    pool.share(seats, [None])

    assert pool.rest(seat) is None
    assert not pool.idle


def test_a_claim_is_made_for_all_that_are_idle(pool: Pool) -> None:
    """Idle threads are named in the claim, get what it brought, and the others go on resting."""
    resting = idle(pool, 2)
    own = pool.seat("own")
    seats = pool.reserve(own)
    assert seats[0] is own
    assert {*seats[1:]} == {one.seat for one in resting}
    brought = hand()
    pool.share(seats, [None, brought, None])
    lucky = next(one for one in resting if one.seat is seats[1])

    assert lucky.ended()
    assert lucky.got == [brought]
    assert len(pool._idle) == 1
    pool.close()


def test_one_thread_at_a_time_claims(pool: Pool) -> None:
    """A thread that is being claimed for is not there for a wake, nor is it the turn of another before the end."""
    resting = idle(pool, 1)
    first, other = pool.reserve(pool.seat("a")), pool.seat("b")
    assert pool.reserve(other) == ()
    pool.wake()

    assert len(first) == 2
    assert not resting[0].ended(0.1)
    pool.share(first, [None, None])
    assert resting[0].ended()
    assert pool.reserve(other) == (other,)


def test_who_comes_while_another_claims_is_called_after_it(pool: Pool) -> None:
    """What it ran has to be settled, whether or not there may be more work."""
    claim = pool.reserve(pool.seat("a"))
    came = Resting(pool, due=True)
    assert not came.ended(0.1)
    pool.share(claim, [None])

    assert came.ended()
    assert came.got == [None]
    assert pool.reserve(came.seat) == (came.seat,)


def test_who_got_jobs_with_others_waits_a_moment_for_them(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one that comes back claims for all of them."""
    monkeypatch.setattr("jobq.runtime.pool.TOGETHER", PATIENCE)
    (other,) = idle(pool, 1)
    own = pool.seat("own")
    pool.share(pool.reserve(own), [hand(), hand()])
    assert other.ended()
    assert pool.reserve(other.seat) == ()
    thread = threading.Thread(target=pool.rest, args=(other.seat,), daemon=True)
    thread.start()
    while not pool.idle:
        pass

    assert pool.reserve(own) == (own, other.seat)
    pool.close()
    pool.share((own, other.seat), [None, None])
    thread.join(PATIENCE)


def test_nobody_waits_long_for_others(pool: Pool) -> None:
    """A thread whose jobs take longer holds up nobody."""
    (other,) = idle(pool, 1)
    own = pool.seat("own")
    pool.share(pool.reserve(own), [hand(), hand()])
    pool.reserve(own)

    assert pool.rest(own) is None
    assert pool.reserve(own) == (own,)
    assert other.ended()


def test_a_claim_that_fails_is_made_again(pool: Pool) -> None:
    """What it was to look for is still there, although nobody says so once more."""
    seat = pool.seat("own")
    look(pool, seat)
    assert pool.reserve(seat) == ()
    pool.wake()
    pool.fail(pool.reserve(seat))

    assert pool.reserve(seat) == (seat,)


def test_a_claim_that_fails_frees_those_that_it_was_made_for(pool: Pool) -> None:
    """Another one may be made for them, and they end with the pool."""
    resting, own = idle(pool, 1), pool.seat("own")
    pool.fail(pool.reserve(own))
    assert pool.reserve(own) == (own, resting[0].seat)
    pool.close()
    pool.fail((own, resting[0].seat))

    assert resting[0].ended()


def test_closing_waits_for_the_claim_that_is_made_for_a_thread(pool: Pool) -> None:
    """A thread that is being claimed for takes what it is given before it ends."""
    resting = idle(pool, 1)
    seats = pool.reserve(pool.seat("own"))
    pool.close()
    assert not resting[0].ended(0.1)
    brought = hand()
    pool.share(seats, [None, brought])

    assert resting[0].ended()
    assert resting[0].got == [brought]


def test_a_wake_that_is_interrupted_leaves_the_pool_usable(pool: Pool) -> None:
    """Wherever Ctrl-C strikes who wakes, the next wake wakes."""
    for _ in strikes(pool.wake):
        resting = Resting(pool)
        pool.wake()
        assert resting.ended()
        look(pool, resting.seat)


def test_closing_ends_naps(pool: Pool) -> None:
    """A thread that waits for better times does not hold up a stop."""
    thread = threading.Thread(target=pool.nap, args=(pool.seat("w"), PATIENCE * 10), daemon=True)
    thread.start()
    while thread.is_alive():
        pool.close()
        thread.join(0.01)


def test_a_nap_in_a_closed_pool_is_a_short_pause(pool: Pool) -> None:
    """A thread that cannot settle while a stop waits must neither spin nor hold the stop up."""
    pool.close()
    seat = pool.seat("w")
    begun = time.monotonic()
    pool.nap(seat, PATIENCE * 10)

    assert FIRST_PAUSE / 2 < time.monotonic() - begun < PATIENCE
