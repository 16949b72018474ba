"""The part of the SQLite store that keeps the file small and sound; its contract is :mod:`jobq.store.upkeep`."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from jobq.model.finding import Finding
from jobq.model.job import JobState
from jobq.model.pruning import Place, Prunable
from jobq.store.sqlite import examine, prune
from jobq.store.sqlite.transactions import Transactions


class SqliteUpkeep(Transactions):
    """Pruning, sizes and health."""

    def prunable(self, state: JobState, *, ended_before: datetime, after: Place | None) -> Prunable:
        """Return the next page."""
        return self._read(lambda conn: prune.prunable(conn, state, ended_before=ended_before, after=after))

    def count_prunable(self, state: JobState, *, ended_before: datetime) -> tuple[int, int]:
        """Count what would go and what would stay."""
        return self._read(lambda conn: prune.count(conn, state, ended_before=ended_before))

    def prune(self, ids: Sequence[int], *, state: JobState, ended_before: datetime) -> int:
        """Remove ended jobs; undone by a power cut, they are found again."""
        return self._write(
            lambda conn, _: prune.prune(conn, ids, state=state, ended_before=ended_before), durable=False
        )

    def prune_changes(self, *, before: datetime) -> int:
        """Remove old lines of the change log."""
        return self._write(lambda conn, _: prune.prune_changes(conn, before=before), durable=False)

    def shrink(self) -> bool:
        """Give free pages back; a reader answers where nothing is to be done."""
        if not self._read(prune.is_bloated):
            return False
        self._write(lambda conn, _: prune.shrink(conn), durable=False)
        return True

    def checkpoint(self) -> None:
        """Keep the files small."""
        self.engine.checkpoint()

    def backup(self, path: str, *, progress: Callable[[int, int], object]) -> None:
        """Copy the file as of now."""
        self.engine.backup(path, progress=progress, busy_timeout=self._busy_timeout)

    def examine(self, *, deep: bool) -> Iterable[Finding]:
        """Look for trouble."""
        return examine.examine(self.engine, deep=deep)
