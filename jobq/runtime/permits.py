"""The permits of gated kinds around a claim: taken before it, unused ones put back after it."""

from collections.abc import Callable, Mapping, Sequence

from jobq.gate import Gate, Gates, Permit
from jobq.model.lease import Claim

#: The permits with which one claim looked for work, by gate; some of them may not have been free.
Taken = dict[Gate, list[Permit]]


class Permits:
    """Takes and gives back the permits of the gates that kinds name; every step may be repeated after an interrupt."""

    def __init__(self, gates: Gates, gate_names: Callable[[], Mapping[str, str]]) -> None:
        self._gates = gates
        self._gate_names = gate_names
        # What the jobs of this runner hold, by id and token.
        self._lent: dict[tuple[int, str], tuple[Gate, Permit]] = {}
        # The gates at which a claim or a look found nothing: who puts a permit back may tell nobody. Only single
        # operations on it, so there is no lock.
        self._starved: set[Gate] = set()

    @property
    def gate_names(self) -> Mapping[str, str]:
        """The gate of each gated kind."""
        return self._gate_names()

    def gates(self) -> list[Gate]:
        """Return the gates of all gated kinds."""
        return [self._gates.get(name) for name in sorted(set(self.gate_names.values()))]

    def free(self) -> dict[str, int]:
        """Return how many permits of each gate nobody holds, without taking any."""
        return self._note({gate: gate.free for gate in self.gates()})

    def take(self, taken: Taken, most: int) -> dict[str, int]:
        """Take up to ``most`` permits of each gate into ``taken``, and return how many of each it got."""
        counts = {}
        for gate in self.gates():
            permits = taken[gate] = [Permit() for _ in range(most)]
            counts[gate] = sum(map(gate.take, permits))
        return self._note(counts)

    def came_free(self) -> bool:
        """Return whether a permit that a claim or a look did not get is free by now; such a gate is told once."""
        free = [gate for gate in list(self._starved) if gate.free]
        self._starved.difference_update(free)
        return bool(free)

    def settle(
        self, taken: Taken, claims: Sequence[Claim], *, on_free: Callable[[], object] | None = None
    ) -> None:
        """Lend each claimed job its permit and put the others back.

        Where a gate had fewer permits than could have been used, ``on_free`` is called back once when it has one.
        """
        names = self.gate_names
        for gate, permits in taken.items():
            used = [claim for claim in claims if names.get(claim.kind) == gate.name]
            # Not the first ones: a permit may have come free between two that were asked for.
            lent = [permit for permit in permits if gate.holds(permit)][: len(used)]
            for claim, permit in zip(used, lent, strict=True):
                self._lent[claim.id, claim.token] = (gate, permit)
            spare = [gate.put_back(permit) for permit in permits if permit not in lent]
            if on_free is not None and spare and not any(spare):
                gate.call_when_free(on_free)

    def release(self, claim: Claim) -> None:
        """Give back the permit of a run that is over, if it has one."""
        if not self._lent:
            return
        lent = self._lent.get((claim.id, claim.token))
        if lent is not None:
            gate, permit = lent
            gate.end(permit)
            self._lent.pop((claim.id, claim.token), None)

    def after_fork(self) -> None:
        """Forget what only the parent's jobs hold."""
        self._lent.clear()
        self._starved.clear()

    def _note(self, counts: Mapping[Gate, int]) -> dict[str, int]:
        self._starved.update(gate for gate, count in counts.items() if not count)
        return {gate.name: count for gate, count in counts.items()}
