"""What people and programs do to jobs and queues from outside."""

from collections.abc import Iterable, Mapping
from datetime import datetime
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
from jobq.cancellation import CancelReason
from jobq.core import Core
from jobq.database import Stoppable
from jobq.errors import ArgumentError, DedupeConflict, InvalidTransition, JobNotFound, JobqError
from jobq.log import get_logger
from jobq.model.duration import Duration
from jobq.model.effects import Verdict
from jobq.model.events import QueueStateChanged
from jobq.model.job import Actor, JobState, Requeued

logger = get_logger(__name__)


class Administration(Core):
    """The verbs that change jobs and queues."""

    @overload
    def cancel(self, ids: int, *, children: Literal[False] = False, dry_run: bool = False) -> bool: ...

    @overload
    def cancel(self, ids: int, *, children: Literal[True], dry_run: bool = False) -> tuple[int, ...]: ...

    @overload
    def cancel(self, ids: Iterable[int], *, children: bool = False, dry_run: bool = False) -> tuple[int, ...]: ...

    def cancel(
        self, ids: int | Iterable[int], *, children: bool = False, dry_run: bool = False
    ) -> bool | tuple[int, ...]:
        """Cancel queued jobs at once, and ask running ones to stop.

        A bare id answers True, or False for a job that has ended; several answer with those that were reached, and
        unknown ones are left out. The handler of a running job is asked at once in this process, in another within a
        second; it decides when to stop, and a job that then returns normally has succeeded. ``dry_run`` answers the
        same and changes nothing.

        With ``children`` everything below these jobs is cancelled too, in the same transaction, also where they have
        ended, and the answer is the ids that were reached, a bare id's too. What a running one enqueues later is not.
        The work grows with the family.

        Raises:
            JobNotFound: a bare id names no job.
        """
        if isinstance(ids, Iterable):
            wanted = check_ids(ids)
            return self._cancel(wanted, children=children, dry_run=dry_run) if wanted else ()
        job_id = check_id(ids, argument="ids")
        reached = self._cancel((job_id,), children=children, dry_run=dry_run)
        if not reached and not self.store.states((job_id,)):
            raise JobNotFound(job_id)
        return reached if children else bool(reached)

    def requeue(
        self,
        ids: int | Iterable[int],
        *,
        queue: str | None = None,
        dry_run: bool = False,
        actor: Actor | str = Actor.SYSTEM,
    ) -> Requeued:
        """Let failed, cancelled or queued jobs run again now, from the start, perhaps in another queue.

        Attempts and deferrals start at 0; result and error are cleared; each writes a line of the change log in the
        name of ``actor``. Of several, those that are running, succeeded, unknown, or whose dedupe key a newer job holds
        are refused with the reason and the others go on. ``dry_run`` answers the same and writes nothing.

        Raises:
            InvalidTransition: a bare id is running or succeeded.
            DedupeConflict: another job holds the bare id's key.
            JobNotFound: a bare id names no job.
            QueueNotFound: there is no such queue.
        """
        bare = not isinstance(ids, Iterable)
        wanted = (check_id(ids, argument="ids"),) if bare else check_ids(ids)
        answer = self._requeue(wanted, queue=queue, actor=actor, dry_run=dry_run)
        if bare and answer.refused:
            raise _refusal(*answer.refused[0])
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
        self.blocks.after_commit(self.doorbell.want)
        self.deliver()
        return done

    def pause(self, queue: str, *, who: str | None = None, why: str | None = None) -> bool:
        """Stop claims from a queue in every process, until it is resumed; False when it was paused already.

        Running jobs finish. The pause is stored with who and why, which are redacted.

        Raises:
            QueueNotFound: there is no such queue.
        """
        self.register()
        changed = self.store.pause(
            check_queue(queue),
            who=None if who is None else self.clean(who, argument="who"),
            why=None if why is None else self.clean(why, argument="why"),
        )
        if changed:
            self.blocks.after_commit(lambda: logger.info("jobq.queue.paused", queue=queue))
            self.bus.publish(QueueStateChanged(queue=queue, paused=True, at=self.clock.now()))
        return changed

    def resume(self, queue: str) -> bool:
        """Let claims from a queue go on; False when it was not paused.

        Raises:
            QueueNotFound: there is no such queue.
        """
        self.register()
        changed = self.store.resume(check_queue(queue))
        if changed:
            self.blocks.after_commit(lambda: logger.info("jobq.queue.resumed", queue=queue))
            self.blocks.after_commit(self.doorbell.want)
            self.bus.publish(QueueStateChanged(queue=queue, paused=False, at=self.clock.now()))
        return changed

    def _cancel(self, ids: tuple[int, ...], *, children: bool, dry_run: bool) -> tuple[int, ...]:
        self.register()
        # Looked up before the request: a run that starts after it is another one and must not be stopped.
        runs = self.live.now()
        verdicts = self.store.cancel(ids, children=children, dry_run=dry_run)
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

    def _requeue(self, ids: tuple[int, ...], *, queue: str | None, actor: Actor | str, dry_run: bool) -> Requeued:
        if queue is not None:
            check_queue(queue)
        self.register()
        answer = self.store.requeue(
            ids, queue=queue, actor=check_word(actor, Actor, argument="actor"), dry_run=dry_run
        )
        self.deliver()
        if answer.ids and not dry_run:
            counts = {"count": len(answer.ids), "refused": len(answer.refused)}
            self.blocks.after_commit(lambda: logger.info("jobq.job.requeued", **counts))
        return answer


def _refusal(job_id: int, why: str) -> JobqError:
    """Return the error for the one job that was refused; the store's reasons are a state, or end in the holder's id."""
    if why in set(JobState):
        return InvalidTransition(job_id, why, "requeued")
    holder = why.rpartition(" ")[2]
    if holder.isdecimal():
        return DedupeConflict(int(holder), why=f"job {job_id} cannot take it back")
    return JobNotFound(job_id)
