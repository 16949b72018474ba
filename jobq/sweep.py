"""One pass over what has ended long ago."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from jobq.model.job import JobState
from jobq.store.base import Store

#: How many portions write about as much as SQLite lets gather before it makes a checkpoint by itself.
_CHECKPOINT_EVERY = 20


class Sweep:
    """Removes ended jobs in steps of one short transaction each, then gives the space back.

    ``ended_before`` names the states and the time of the youngest end that goes; a job that ends during the sweep is
    younger. ``changes_before`` does the same for the lines of the change log.
    """

    def __init__(
        self, store: Store, *, ended_before: Mapping[JobState, datetime], changes_before: datetime | None
    ) -> None:
        self._store = store
        #: By state, the youngest end that goes.
        self.ended_before = ended_before
        self._changes_before = changes_before
        self._steps = self._run()
        #: How many jobs are gone, by the state that they had ended in.
        self.pruned: dict[JobState, int] = dict.fromkeys(ended_before, 0)
        #: How many are old enough and stay because of their children.
        self.kept = 0

    @property
    def total(self) -> int:
        """How many jobs are gone."""
        return sum(self.pruned.values())

    def step(self) -> bool:
        """Take one step; False when there was nothing left to do, for good."""
        return next(self._steps, False)

    def _run(self) -> Iterator[bool]:
        for state, before in self.ended_before.items():
            yield from self._prune(state, before)
        while self._changes_before is not None and self._store.prune_changes(before=self._changes_before):
            yield True
        while self._store.shrink():
            yield True
        if self.total:
            self._store.checkpoint()

    def _prune(self, state: JobState, before: datetime) -> Iterator[bool]:
        store, after = self._store, None
        while True:
            page = store.prunable(state, ended_before=before, after=after)
            self.kept += page.kept
            for number, ids in enumerate(page.portions):
                self.pruned[state] += store.prune(ids, state=state, ended_before=before)
                # Here, before SQLite does it inside somebody's commit, where all other writers wait for it.
                if number % _CHECKPOINT_EVERY == _CHECKPOINT_EVERY - 1:
                    store.checkpoint()
                yield True
            after = page.after
            if after is None:
                return
