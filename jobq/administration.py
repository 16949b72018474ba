"""What people and programs do to jobs and queues from outside."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Literal, overload

from jobq.arguments import (
    check_delay,
    check_id,
    check_ids,
    check_one_time,
    check_priority,
    check_queue,
    check_run_at,
    check_word,
)
from jobq.batches import batches
from jobq.cancellation import CancelReason
from jobq.core import Core
from jobq.database import Stoppable
from jobq.errors import ArgumentError, DedupeConflict, InvalidTransition, JobNotFound, JobqError, KindNotAccepted
from jobq.filtering import Where, narrowing_filter_of
from jobq.log import get_logger
from jobq.model.duration import Duration
from jobq.model.effects import Verdict
from jobq.model.filter import Filter
from jobq.model.job import NOT_FOUND, Actor, JobState, Requeued

logger = get_logger(__name__)

#: The states that a filter without a state is about.
_CANCELLABLE = (JobState.QUEUED, JobState.RUNNING)
_REQUEUABLE = (JobState.QUEUED, JobState.FAILED, JobState.CANCELLED)


class Administration(Core):
    """The verbs that change jobs and queues."""

    @overload
    def cancel(self, ids: int, *, children: Literal[False] = False, dry_run: bool = False) -> bool: ...

    @overload
    def cancel(self, ids: int, *, children: Literal[True], dry_run: bool = False) -> tuple[int, ...]: ...

    @overload
    def cancel(
        self,
        ids: Iterable[int] | None = None,
        *,
        where: Where | None = None,
        children: bool = False,
        dry_run: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> tuple[int, ...]: ...

    def cancel(
        self,
        ids: int | Iterable[int] | None = None,
        *,
        where: Where | None = None,
        children: bool = False,
        dry_run: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> bool | tuple[int, ...]:
        """Cancel queued jobs at once, and ask running ones to stop.

        A bare id answers True, or False for a job that has ended; several answer with those that were reached, and
        unknown ones are left out. ``where`` takes the keywords of ``find`` instead of ids. The handler of a running job
        is asked at once in this process, in another within a second; it decides when to stop, and a job that then
        returns normally has succeeded. ``dry_run`` answers the same and changes nothing. Many jobs are dealt with in
        many short transactions with pauses, each job looked at anew; what is done by an error stays done.
        ``progress`` is called after each of them with the number of jobs that were looked at so far.

        With ``children`` everything below these jobs is cancelled too, in the same transaction, also where they have
        ended, and the answer is the ids that were reached, a bare id's too. What a running one enqueues later is not.
        The work grows with the family.

        Raises:
            ArgumentError: ids and ``where`` are both named, or neither, or ``where`` would reach every job.
            JobNotFound: a bare id names no job.
        """
        if ids is not None and where is None and not isinstance(ids, Iterable):
            job_id = check_id(ids, argument="ids")
            reached = self._cancel((job_id,), None, children=children, dry_run=dry_run)
            if not reached and not self.store.states((job_id,)):
                raise JobNotFound(job_id)
            return reached if children else bool(reached)
        wanted, found = self._chosen(ids, where, tuple(JobState) if children else _CANCELLABLE)
        # A family is cancelled as a whole, and a rehearsal takes no lock.
        parts = (found,) if children or dry_run else batches(self, found, progress)
        answers = [self._cancel(some, wanted, children=children, dry_run=dry_run) for some in parts]
        return tuple(dict.fromkeys(chain.from_iterable(answers)))

    def requeue(
        self,
        ids: int | Iterable[int] | None = None,
        *,
        where: Where | None = None,
        queue: str | None = None,
        dry_run: bool = False,
        actor: Actor | str = Actor.SYSTEM,
        progress: Callable[[int], object] | None = None,
    ) -> Requeued:
        """Let failed, cancelled or queued jobs run again now, from the start, perhaps in another queue.

        Attempts and deferrals start at 0; result and error are cleared; each writes a line of the change log in the
        name of ``actor``. ``where`` takes the keywords of ``find`` instead of ids; without a state it is about failed,
        cancelled and queued jobs. Of several, those that are running, succeeded, unknown, or whose dedupe key a newer
        job holds are refused with the reason and the others go on. ``dry_run`` answers the same and writes nothing.
        Many jobs are dealt with in many short transactions with pauses, each job looked at anew; what is done by an
        error stays done. ``progress`` is called after each of them with the number of jobs that were looked at so far.

        Raises:
            ArgumentError: ids and ``where`` are both named, or neither, or ``where`` would reach every job.
            InvalidTransition: a bare id is running or succeeded.
            DedupeConflict: another job holds the bare id's key.
            JobNotFound: a bare id names no job.
            QueueNotFound: there is no such queue.
            KindNotAccepted: the queue does not accept the bare id's kind.
        """
        if queue is not None:
            check_queue(queue)
        by = check_word(actor, Actor, argument="actor")
        bare = ids is not None and where is None and not isinstance(ids, Iterable)
        wanted, found = self._chosen((check_id(ids, argument="ids"),) if bare else ids, where, _REQUEUABLE)
        # A rehearsal takes no lock, and knows of each key that it would take: all of it is one look.
        parts = (found,) if dry_run else batches(self, found, progress)
        answers = [self._requeue(some, wanted, queue=queue, actor=by, dry_run=dry_run) for some in parts]
        answer = Requeued(
            tuple(chain.from_iterable(one.ids for one in answers)),
            tuple(chain.from_iterable(one.refused for one in answers)),
        )
        if bare and answer.refused:
            raise self._refusal(*answer.refused[0], queue=queue)
        return answer

    def reschedule(
        self,
        job_id: int,
        *,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        priority: int | str | None = None,
    ) -> bool:
        """Change when a queued job runs, or its priority; return False for a job in another state.

        ``delay`` counts from now, and a negative one means now.

        Raises:
            JobNotFound: no job has this id.
        """
        self.register()
        check_one_time(delay, run_at)
        if run_at is None and delay is None and priority is None:
            raise ArgumentError("run_at", "name run_at, delay or priority")
        done = self.store.reschedule(
            check_id(job_id),
            run_at=None if run_at is None else check_run_at(run_at),
            delay=None if delay is None else check_delay(delay, self.clock.now()),
            priority=None if priority is None else check_priority(priority),
        )
        self.blocks.after_commit(partial(self.doorbell.want, here=True))
        self.deliver()
        return done

    def _chosen(
        self, ids: int | Iterable[int] | None, where: Where | None, states: tuple[JobState, ...]
    ) -> tuple[Filter | None, Sequence[int]]:
        """Return the ids that are meant, and what has to hold of them still when their turn comes."""
        if (ids is None) == (where is None):
            fix = "Name jobs, or with where= what they have in common."
            raise ArgumentError("ids", "ids or where is needed, and not both", fix=fix)
        if where is None:
            return None, check_ids(ids)
        wanted, limit = narrowing_filter_of(where, now=self.clock.now())
        if wanted.state is not None:
            return wanted, self.store.matching(wanted, limit=limit)
        found = heapq.merge(*(self.store.matching(wanted._replace(state=state), limit=limit) for state in states))
        return wanted, list(found)[-limit if limit else None :]

    def _cancel(
        self, ids: Sequence[int], wanted: Filter | None, *, children: bool, dry_run: bool
    ) -> tuple[int, ...]:
        self.register()
        # Looked up before the request: a run that starts after it is another one and must not be stopped.
        runs = self.live.now()
        verdicts = self.store.cancel(ids, wanted=wanted, children=children, dry_run=dry_run)
        if not dry_run:
            self.blocks.after_commit(lambda: self._tell_cancelled(runs, verdicts))
        return tuple(job_id for job_id, verdict in verdicts.items() if verdict is not None)

    def _tell_cancelled(
        self, runs: list[tuple[int, Stoppable]], verdicts: Mapping[int, Verdict | None]
    ) -> None:
        for job_id, token in runs:
            if verdicts.get(job_id) is Verdict.REQUESTED:
                token.request(CancelReason.USER)
        self.deliver()
        for job_id, verdict in verdicts.items():
            if verdict is Verdict.CANCELLED:
                logger.info("jobq.job.cancelled", job_id=job_id)

    def _requeue(
        self, ids: Sequence[int], wanted: Filter | None, *, queue: str | None, actor: Actor, dry_run: bool
    ) -> Requeued:
        self.register()
        answer = self.store.requeue(ids, wanted=wanted, queue=queue, actor=actor, dry_run=dry_run)
        self.deliver()
        if answer.ids and not dry_run:
            counts = {"count": len(answer.ids), "refused": len(answer.refused)}
            self.blocks.after_commit(lambda: logger.info("jobq.job.requeued", **counts))
        return answer

    def _refusal(self, job_id: int, why: str, *, queue: str | None) -> JobqError:
        """Return the error for the one job that was refused; the store's reasons are a state, or end in a name."""
        if why in set(JobState):
            return InvalidTransition(job_id, why, "requeued")
        holder = why.rpartition(" ")[2]
        if holder.isdecimal() and why.startswith("dedupe key"):
            return DedupeConflict(int(holder), why=f"job {job_id} cannot take it back")
        accepted = next((info.kinds for info in self.store.queues() if info.name == queue), None)
        if queue is not None and accepted is not None and why != NOT_FOUND:
            return KindNotAccepted(self.store.get((job_id,))[job_id].kind, queue, accepted=accepted)
        return JobNotFound(job_id)
