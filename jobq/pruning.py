"""Removing what has ended."""

from collections.abc import Callable, Mapping
from datetime import datetime

from jobq.arguments import check_word
from jobq.batches import rest
from jobq.core import Core
from jobq.errors import ArgumentError
from jobq.log import get_logger
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import MIN, shift
from jobq.model.job import JobState
from jobq.model.pruning import Pruned
from jobq.sweep import Sweep

logger = get_logger(__name__)

_TERMINAL = tuple(state for state in JobState if state.terminal)


class Pruning(Core):
    """The verb that removes ended jobs, and the sweep that runners do by themselves."""

    def prune(
        self,
        *,
        state: JobState | str | None = None,
        older_than: Duration | None = None,
        dry_run: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> Pruned:
        """Remove jobs that ended long ago, and return how many; payload, result and run history go with them.

        ``state`` is one of the three final ones, all of them unless named. ``older_than`` counts from their end; 0
        is everything that has ended. Without it they are removed by the configured retention, and so are old lines
        of the change log, which outlive their jobs.
        Jobs that are queued or running are never touched. A job stays while one of its children has not ended or
        more than 500 are there; other children stay and forget their parent. A job stays, too, while a table of your
        own refers to it, unless that says ON DELETE SET NULL or CASCADE. Ids are not used again.

        It is done in many short transactions with pauses, so that workers go on; where it is interrupted, what is
        gone is gone. The free space is given back to the file system in the same way. ``progress`` is called with
        the number of jobs that are gone so far. ``dry_run`` counts and removes nothing.

        Raises:
            InsideTransaction: this thread has a transaction open, of which this cannot be a part.
        """
        self.blocks.refuse("prune")
        nothing = dict.fromkeys(_wanted(state), 0)
        sweep = self.sweep(state=state, older_than=older_than)
        if dry_run:
            counts, kept = self._rehearse(sweep.ended_before)
            return Pruned(counts=nothing | counts, kept=kept)
        while sweep.step():
            if progress is not None:
                progress(sweep.total)
            rest(self)
        if sweep.total:
            logger.info("jobq.job.pruned", count=sweep.total, kept=sweep.kept)
        return Pruned(counts=nothing | sweep.pruned, kept=sweep.kept)

    def sweep(self, *, state: JobState | str | None = None, older_than: Duration | None = None) -> Sweep:
        """Return the steps of :meth:`prune`, which the caller takes; runners take them now and then."""
        wanted = _wanted(state)
        age = None if older_than is None else to_seconds(older_than, argument="older_than")
        if age is not None and age < 0:
            raise ArgumentError("older_than", "an age of 0 or more is needed")
        retention = self.config.retention
        ages = {one: retention.of(one) if age is None else age for one in wanted}
        by_retention = state is None and older_than is None
        return Sweep(
            self.store,
            ended_before={one: self._ago(seconds) for one, seconds in ages.items() if seconds is not None},
            changes_before=self._ago(retention.changes) if by_retention and retention.changes is not None else None,
        )

    def _rehearse(self, ended_before: Mapping[JobState, datetime]) -> tuple[dict[JobState, int], int]:
        counted = {one: self.store.count_prunable(one, ended_before=before) for one, before in ended_before.items()}
        return {one: going for one, (going, _) in counted.items()}, sum(kept for _, kept in counted.values())

    def _ago(self, seconds: float) -> datetime:
        try:
            return shift(self.clock.now(), -seconds, argument="older_than")
        except ArgumentError:  # before the year 1: nothing is that old
            return MIN


def _wanted(state: JobState | str | None) -> tuple[JobState, ...]:
    if state is None:
        return _TERMINAL
    wanted = check_word(state, JobState, argument="state")
    if not wanted.terminal:
        raise ArgumentError("state", f"{wanted.value} jobs have not ended", fix="Use succeeded, failed or cancelled.")
    return (wanted,)
