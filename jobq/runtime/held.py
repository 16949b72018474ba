"""The leases that a runner holds: what the heartbeat renews and what a stop has to wait for."""

from jobq.cancellation import CancelReason
from jobq.database import LiveRuns
from jobq.runtime.context import RunningJob
from jobq.runtime.hand import Hand

Key = tuple[int, str]


class Held:
    """Every claimed and unsettled job of a runner, by job id and token.

    Single dict operations are atomic and copies are taken before iterating, so there is no lock.
    """

    def __init__(self, live: LiveRuns) -> None:
        self._hands: dict[Key, Hand] = {}
        self._live = live

    def __len__(self) -> int:
        return len(self._hands)

    def add(self, hand: Hand) -> None:
        """Hold the jobs of a hand; until one of them starts, a cancel of it reaches the hand."""
        for claim in hand.claims:
            key = (claim.id, claim.token)
            self._hands[key] = self._live[key] = hand

    def drop(self, key: Key) -> None:
        """Let go of a job that was settled; does nothing where it is not held."""
        # In this order: who is interrupted in between finds it held, and drops it again.
        self._live.pop(key, None)
        self._hands.pop(key, None)

    def keys(self) -> list[Key]:
        """Return job id and token of everything held."""
        return list(self._hands)

    def hands(self) -> list[Hand]:
        """Return each hand once."""
        return list({id(hand): hand for hand in self._hands.copy().values()}.values())

    def find(self, key: Key) -> Hand | None:
        """Return the hand of a lease, or None where it is not held."""
        return self._hands.get(key)

    def running(self) -> list[RunningJob]:
        """Return the runs under way."""
        return [job for hand in self.hands() if (job := hand.current) is not None]

    def request(self, key: Key, reason: CancelReason) -> bool:
        """Ask the run of this lease to stop, and return whether that was news; an unstarted job is given back."""
        hand = self._hands.get(key)
        if hand is None:
            return False
        job = hand.current
        if job is not None and (job.claim.id, job.claim.token) == key:
            if job.settled is not None:
                return False  # it has settled itself: its lease is not lost but over
            return job.cancel_token.request(reason)
        if hand.unstarted:
            hand.request(reason)
        return False

    def lose(self, key: Key) -> None:
        """Tell whoever still looks at the token of this ended run that its lease had been lost."""
        run = self._live.get(key)
        if run is not None:
            run.request(CancelReason.LEASE_LOST)

    def clear(self) -> None:
        """Forget everything, as a forked child must; what lives there has been forgotten already."""
        self._hands.clear()
