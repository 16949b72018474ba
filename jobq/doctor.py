"""Looking for what goes wrong in practice: work that nobody does, and a file that is mistreated."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from jobq.core import Core
from jobq.model.finding import Finding
from jobq.model.runner import RunnerRow

#: Runners beat each third of a lease; one that missed more than two leases is dead or hangs.
_LEASES_OF_SILENCE = 2


class Doctor(Core):
    """The verb that looks for trouble."""

    def doctor(self) -> list[Finding]:
        """Return one finding for each check, with what to do where something is wrong; nothing is changed.

        It looks at the SQLite library and the file, for a handle of another SQLite library in this process, for queues
        and kinds with jobs that no live runner serves, and for paused queues. It counts jobs, so it takes time on a
        large database.
        """
        self.register()
        silence = timedelta(seconds=_LEASES_OF_SILENCE * self.config.lease)
        alive = _alive(self.store.runners(), self.clock.now() - silence)
        return [*self.store.examine(), *self._work(alive)]

    def _work(self, alive: Sequence[RunnerRow]) -> Iterator[Finding]:
        served = {queue for runner in alive for queue in runner.queues}
        handled = {kind for runner in alive for kind in runner.kinds}
        queues = self.store.queues()
        waiting = {queue.name for queue in queues if queue.queued and not queue.paused}
        kinds = {kind.name for kind in self.store.kinds() if kind.queued and not kind.retired}
        paused = [queue.name for queue in queues if queue.paused and queue.queued]
        yield _finding(
            "runners",
            not alive and bool(waiting),
            f"{len(alive)} alive" if alive else "none alive",
            "Start one: jobq work, or a Runner in your program.",
        )
        yield _unserved("queues", waiting - served, "Start a runner that names them in workers=.")
        yield _unserved("kinds", kinds - handled, "Start a runner in a process that registers their handlers.")
        yield _finding(
            "pauses",
            bool(paused),
            f"paused with jobs waiting: {', '.join(paused)}" if paused else "no paused queue has jobs",
            "Resume them when their cause has passed.",
        )


def _alive(runners: Sequence[RunnerRow], since: datetime) -> list[RunnerRow]:
    return [runner for runner in runners if runner.beat_at >= since]


def _unserved(check: str, names: set[str], fix: str) -> Finding:
    detail = f"no live runner serves {', '.join(sorted(names))}" if names else "all that wait are served"
    return _finding(check, bool(names), detail, fix)


def _finding(check: str, wrong: bool, detail: str, fix: str) -> Finding:
    return Finding(check=check, ok=not wrong, detail=detail, fix=fix if wrong else None)
