"""What pruning finds and what it answers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from jobq.model.job import JobState

#: Where a walk over ended jobs stands; only the store reads it.
Place = tuple[int, bytes, bytes, int]


class Prunable(NamedTuple):
    """A page of ended jobs that are old enough."""

    #: Ids, in portions that are each fit for one short transaction.
    portions: Sequence[Sequence[int]]
    #: How many of the page stay because of their children.
    kept: int
    #: Where the next page begins; None after the last one.
    after: Place | None


@attrs.frozen(kw_only=True)
class Pruned:
    """The answer to pruning: how many jobs went, or would go, by the state that they had ended in."""

    counts: Mapping[JobState, int]
    #: Jobs that are old enough and stay, because a child has not ended or because more than 500 children are there.
    kept: int = 0

    @property
    def total(self) -> int:
        """How many jobs it is in all."""
        return sum(self.counts.values())
