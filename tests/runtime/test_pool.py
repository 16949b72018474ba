"""A pool: who is woken, who claims for whom, and that no wake-up is lost."""

import threading

import pytest

from jobq.runtime.hand import Hand
from jobq.runtime.pool import Pool, Seat
from tests.interrupts import strikes

PATIENCE = 10.0


class Resting:
    """A thread that rests in a pool once."""

    def __init__(self, pool: Pool) -> None:
        self.seat = pool.seat("w")
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
    found.reserve(found.seat("first"))
    return found


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
    pool.reserve(seat)
    pool.wake()

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
    pool.share([(seats[1], brought), (seats[2], None)])
    lucky = next(one for one in resting if one.seat is seats[1])

    assert lucky.ended()
    assert lucky.got == [brought]
    assert len(pool._idle) == 1
    pool.close()


def test_two_claims_never_reserve_one_thread(pool: Pool) -> None:
    """A thread that is being claimed for is not there for another claim, nor for a wake."""
    resting = idle(pool, 1)
    first: tuple[Seat, ...] = pool.reserve(pool.seat("a"))
    second = pool.reserve(pool.seat("b"))
    pool.wake()

    assert (len(first), len(second)) == (2, 1)
    assert not resting[0].ended(0.1)
    pool.share([(first[1], None)])
    assert resting[0].ended()


def test_closing_waits_for_the_claim_that_is_made_for_a_thread(pool: Pool) -> None:
    """A thread that is being claimed for takes what it is given before it ends."""
    resting = idle(pool, 1)
    seats = pool.reserve(pool.seat("own"))
    pool.close()
    assert not resting[0].ended(0.1)
    brought = hand()
    pool.share([(seats[1], brought)])

    assert resting[0].ended()
    assert resting[0].got == [brought]


def test_a_wake_that_is_interrupted_leaves_the_pool_usable(pool: Pool) -> None:
    """Wherever Ctrl-C strikes who wakes, the next wake wakes."""
    for _ in strikes(pool.wake):
        resting = Resting(pool)
        pool.wake()
        assert resting.ended()
        pool.reserve(resting.seat)


def test_closing_ends_naps(pool: Pool) -> None:
    """A thread that waits for better times does not hold up a stop."""
    thread = threading.Thread(target=pool.nap, args=(pool.seat("w"), PATIENCE * 10), daemon=True)
    thread.start()
    while thread.is_alive():
        pool.close()
        thread.join(0.01)
