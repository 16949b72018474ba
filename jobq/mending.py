"""Mending what went wrong: retriage of a subject, and healing of what failed for a cause that passes."""

from collections.abc import Callable, Iterator
from functools import partial

from jobq.arguments import check_text, check_word
from jobq.batches import batches, rest
from jobq.core import Core
from jobq.labels import Labels
from jobq.log import get_logger
from jobq.model.job import Actor, Requeued

logger = get_logger(__name__)


class Mending(Core):
    """The verbs about labels, retriage and healing."""

    @property
    def labels(self) -> Labels:
        """The labels of subjects, and the verbs about them."""
        return Labels(self)

    def retriage(self, subject: str, *, actor: Actor | str = Actor.SYSTEM) -> Requeued:
        """Forget what machines said of a subject and let its intake jobs run again, in one transaction.

        Intake jobs are those of kinds that are registered with ``intake=True``. Each is requeued as by :meth:`requeue`
        or refused with the reason; one that has succeeded is refused. What people said stays. The change log has a
        line for the subject and one for each job.
        """
        self.register()
        by = check_word(actor, Actor, argument="actor")
        answer, cleared = self.store.retriage(check_text(subject, argument="subject"), actor=by)
        self.deliver()
        if answer.ids or cleared:
            counts = {"labels": cleared, "count": len(answer.ids), "refused": len(answer.refused)}
            self.blocks.after_commit(lambda: logger.info("jobq.subject.retriaged", **counts))
        return answer

    def self_heal(self, *, progress: Callable[[int], object] | None = None) -> tuple[int, ...]:
        """Requeue the failed jobs whose class is transient and that have rested for 15 minutes; return their ids.

        A job heals at most three times, and again as often once somebody requeues it by hand. Unrecoverable failures,
        those without a class, jobs of retired kinds and those whose dedupe key another job holds stay as they are. Each
        is a line of the change log. It is done in many short transactions with pauses; two processes that heal at once
        heal each job once. ``progress`` is called after each with the number of jobs that are healed so far. A runner
        does it each minute where ``Config(self_heal=True)`` says so.
        """
        healed: list[int] = []
        for ids in self.healing():
            healed += ids
            if progress is not None:
                progress(len(healed))
        return tuple(healed)

    def healing(self) -> Iterator[tuple[int, ...]]:
        """Yield the ids of each short transaction of :meth:`self_heal`, with the pauses between them."""
        self.register()
        # Looked for on a reader: nearly always there is nothing, and the write lock is everybody's.
        while found := self.store.healable():
            healed = 0
            for ids in batches(self, found):
                some = self.store.heal(ids)
                self.deliver()
                healed += len(some)
                yield some
            if not healed:
                return
            self.blocks.after_commit(partial(_tell_healed, healed))
            rest(self)

    def count_failed(self, *, unrecoverable: bool | None = None) -> int:
        """Count failed jobs: all, those that are unrecoverable, or (False) the others."""
        return self.store.count_failed(unrecoverable=unrecoverable)


def _tell_healed(count: int) -> None:
    logger.info("jobq.job.healed", count=count)
