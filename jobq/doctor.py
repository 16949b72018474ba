"""Looking for what goes wrong in practice: work that nobody does, and a file that is mistreated."""

import os
import socket
from collections.abc import Iterator, Sequence
from datetime import timedelta

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
        runners = self.store.runners()
        dead = [runner for runner in runners if runner.beat_at < self.clock.now() - silence or _gone(runner)]
        return [*self.store.examine(), *self._work([one for one in runners if one not in dead], dead)]

    def _work(self, alive: Sequence[RunnerRow], dead: Sequence[RunnerRow]) -> Iterator[Finding]:
        served = {queue for runner in alive for queue in runner.queues}
        handled = {kind for runner in alive for kind in runner.kinds}
        queues = self.store.queues()
        waiting = {queue.name for queue in queues if queue.queued and not queue.paused}
        kinds = {kind.name for kind in self.store.kinds() if kind.queued and not kind.retired}
        paused = [queue.name for queue in queues if queue.paused and queue.queued]
        yield _finding(
            "runners",
            not alive and bool(waiting),
            (f"{len(alive)} alive" if alive else "none alive") + _named(dead),
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


def _gone(runner: RunnerRow) -> bool:
    """Whether its process was one of this machine and has ended: it need not be waited for until it is silent."""
    # On Windows the signal 0 is no question.
    if os.name != "posix" or runner.host != socket.gethostname():
        return False
    try:
        os.kill(runner.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _named(dead: Sequence[RunnerRow]) -> str:
    return f"; dead: {', '.join(f'process {one.pid} on {one.host}' for one in dead)}" if dead else ""


def _unserved(check: str, names: set[str], fix: str) -> Finding:
    detail = f"no live runner serves {', '.join(sorted(names))}" if names else "all that wait are served"
    return _finding(check, bool(names), detail, fix)


def _finding(check: str, wrong: bool, detail: str, fix: str) -> Finding:
    return Finding(check=check, ok=not wrong, detail=detail, fix=fix if wrong else None)
