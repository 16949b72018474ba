"""Waiting for a job to end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from jobq.arguments import check_id
from jobq.commitwait import wait_for_commit
from jobq.errors import JobNotFound, WaitTimeout
from jobq.lookups import Lookups
from jobq.model.duration import Duration, to_seconds
from jobq.model.events import Change
from jobq.model.job import Job, JobState
from jobq.threads import Bell


class Waiting(Lookups):
    """The verb that waits."""

    def wait(self, job_id: int, timeout: Duration | None = None) -> Job:
        """Block in real time until the job ends, and return it; None waits for as long as it takes.

        An end in this process wakes it at once; for those of others it watches the file's change counter. Call it
        neither from a handler, which may wait for itself, nor from a listener, which holds up all others.

        Raises:
            WaitTimeout: the job has not ended within ``timeout``; it goes on.
            InsideTransaction: this thread has a transaction open, which the job may wait for.
            JobNotFound: no job has this id, or it was removed meanwhile.
        """
        check_id(job_id)
        self.blocks.refuse("wait")
        seconds = None if timeout is None else max(0.0, to_seconds(timeout, argument="timeout"))
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._ending(job_id) as ended:
            while True:
                # Both before the state is read: what is committed after the look is seen by the pause.
                ended.clear()
                seen = self.store.data_version()
                state = self._state(job_id)
                if state.terminal:
                    return self.get(job_id)
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimeout(job_id, state, seconds or 0.0)
                wait_for_commit(self, ended, seen, deadline)

    def _state(self, job_id: int) -> JobState:
        state = self.store.states((job_id,)).get(job_id)
        if state is None:
            raise JobNotFound(job_id)
        return state

    @contextmanager
    def _ending(self, job_id: int) -> Iterator[Bell]:
        ended = Bell()

        def notice(change: Change) -> None:
            if change.job_id == job_id and change.state.terminal:
                ended.ring()

        unsubscribe = self.bus.watch(notice)
        try:
            yield ended
        finally:
            unsubscribe()
