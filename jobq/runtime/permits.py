"""The permits of gated kinds around a claim: taken before it, unused ones put back after it."""

from collections.abc import Callable, Iterable, Mapping

from jobq.gate import Gate, Gates
from jobq.model.lease import Claim


class Permits:
    """Takes and gives back the permits of the gates that kinds name."""

    def __init__(self, gates: Gates, gate_names: Callable[[], Mapping[str, str]]) -> None:
        self._gates = gates
        self._gate_names = gate_names
        # The gates at which the last claim got nothing: who put a permit back that it did not use tells nobody.
        self._starved: tuple[Gate, ...] = ()

    @property
    def gate_names(self) -> Mapping[str, str]:
        """The gate of each gated kind."""
        return self._gate_names()

    def gates(self) -> list[Gate]:
        """Return the gates of all gated kinds."""
        return [self._gates.get(name) for name in sorted(set(self.gate_names.values()))]

    def free(self) -> dict[str, int]:
        """Return how many permits of each gate nobody holds, without taking any."""
        return {gate.name: gate.free for gate in self.gates()}

    def take(self, most: int) -> dict[str, int]:
        """Take up to ``most`` permits of each gate."""
        gates = self.gates()
        taken = {gate.name: _take(gate, most) for gate in gates}
        self._starved = tuple(gate for gate in gates if not taken[gate.name])
        return taken

    def came_free(self) -> bool:
        """Return, once, whether a permit that the last claim did not get is free by now."""
        if any(gate.free for gate in self._starved):
            self._starved = ()
            return True
        return False

    def put_back(self, taken: Mapping[str, int], claims: Iterable[Claim] = ()) -> None:
        """Put back what was taken and what ``claims`` do not use; they keep one permit each."""
        if not taken:
            return
        left = dict(taken)
        for claim in claims:
            gate = self.gate_names.get(claim.kind)
            if gate in left:
                left[gate] -= 1
        for name, count in left.items():
            for _ in range(count):
                self._gates.get(name).put_back()

    def release(self, claim: Claim) -> None:
        """Give back the permit of a run that is over, if its kind has a gate."""
        gate = self.gate_names.get(claim.kind)
        if gate is not None:
            self._gates.get(gate).release()


def _take(gate: Gate, most: int) -> int:
    count = 0
    while count < most and gate.try_acquire():
        count += 1
    return count
