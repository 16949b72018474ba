"""Pausing: what is not claimed any more, until somebody lets it go on."""

from functools import partial

from jobq.arguments import check_kind, check_queue
from jobq.core import Core
from jobq.errors import ArgumentError
from jobq.log import get_logger
from jobq.model.events import KindStateChanged, QueueStateChanged

logger = get_logger(__name__)


class Pausing(Core):
    """The verbs that stop claims and let them go on."""

    def pause(
        self, queue: str | None = None, *, kind: str | None = None, who: str | None = None, why: str | None = None
    ) -> bool:
        """Stop claims from a queue, or of a kind, in every process, until it is resumed.

        False when it was paused already: the first pause stands, with its who and why, which are redacted. Running jobs
        finish, jobs may still be enqueued, and the pause survives restarts and registrations.

        Raises:
            ArgumentError: neither a queue nor a kind is named, or both.
            QueueNotFound: there is no such queue.
            UnknownKind: no row knows the kind.
        """
        self._check(queue, kind)
        by = None if who is None else self.clean(who, argument="who")
        reason = None if why is None else self.clean(why, argument="why")
        changed = (
            self.store.pause(queue, who=by, why=reason)
            if queue is not None
            else self.store.pause_kind(kind or "", who=by, why=reason)
        )
        if changed:
            self._announce(queue, kind, paused=True)
        return changed

    def resume(self, queue: str | None = None, *, kind: str | None = None) -> bool:
        """Let claims from a queue, or of a kind, go on; False when it was not paused.

        Raises:
            ArgumentError: neither a queue nor a kind is named, or both.
            QueueNotFound: there is no such queue.
            UnknownKind: no row knows the kind.
        """
        self._check(queue, kind)
        changed = self.store.resume(queue) if queue is not None else self.store.resume_kind(kind or "")
        if changed:
            self.blocks.after_commit(self.doorbell.want)
            self._announce(queue, kind, paused=False)
        return changed

    def _check(self, queue: str | None, kind: str | None) -> None:
        if (queue is None) == (kind is None):
            fix = "Give its name, or kind= with that of a kind."
            raise ArgumentError("queue", "a queue or a kind is needed, and not both", fix=fix)
        if queue is not None:
            check_queue(queue)
        else:
            check_kind(kind)
        # A kind or a queue that a handler here names is known.
        self.register()

    def _announce(self, queue: str | None, kind: str | None, *, paused: bool) -> None:
        at = self.clock.now()
        if queue is not None:
            self.blocks.after_commit(partial(_tell_queue, queue, paused=paused))
            self.bus.publish(QueueStateChanged(queue=queue, paused=paused, at=at))
        elif kind is not None:
            self.blocks.after_commit(partial(_tell_kind, kind, paused=paused))
            self.bus.publish(KindStateChanged(kind=kind, paused=paused, at=at))


def _tell_queue(queue: str, *, paused: bool) -> None:
    if paused:
        logger.info("jobq.queue.paused", queue=queue)
    else:
        logger.info("jobq.queue.resumed", queue=queue)


def _tell_kind(kind: str, *, paused: bool) -> None:
    if paused:
        logger.info("jobq.kind.paused", kind=kind)
    else:
        logger.info("jobq.kind.resumed", kind=kind)
