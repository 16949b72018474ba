"""The part of the SQLite store for those who operate it; its contract is :mod:`jobq.store.operating`."""

from collections.abc import Mapping, Sequence

from jobq.model.circumstances import Circumstances
from jobq.model.filter import Filter
from jobq.model.job import Actor, LoggedChange, Requeued
from jobq.model.label import Label, LabelLayer
from jobq.store.sqlite import changelog, circumstances, heal, labels, pauses, requeue, retriage
from jobq.store.sqlite.transactions import Transactions


class SqliteOperating(Transactions):
    """Pauses, requeues, labels, healing and the change log."""

    def pause(self, queue: str, *, who: str | None, why: str | None) -> bool:
        """Stop claims from a queue."""
        return self._write(lambda conn, _: pauses.pause_queue(conn, queue, who=who, why=why, now=self._now()))

    def resume(self, queue: str) -> bool:
        """Let claims from a queue go on."""
        return self._write(lambda conn, _: pauses.resume_queue(conn, queue))

    def pause_kind(self, kind: str, *, who: str | None, why: str | None) -> bool:
        """Stop claims of a kind."""
        return self._write(lambda conn, _: pauses.pause_kind(conn, kind, who=who, why=why, now=self._now()))

    def resume_kind(self, kind: str) -> bool:
        """Let claims of a kind go on."""
        return self._write(lambda conn, _: pauses.resume_kind(conn, kind))

    def requeue(
        self,
        ids: Sequence[int],
        *,
        wanted: Filter | None = None,
        queue: str | None,
        actor: Actor,
        dry_run: bool,
    ) -> Requeued:
        """Let jobs run again from the start."""
        if dry_run:
            return self._read(
                lambda conn: requeue.rehearse(conn, ids, wanted=wanted, queue=queue, now=self._now())
            )
        return self._write(
            lambda conn, changes: requeue.requeue(
                conn, changes, ids, wanted=wanted, queue=queue, actor=actor, now=self._now()
            )
        )

    def put_label(self, subject: str, name: str, value: str, *, layer: LabelLayer, actor: Actor) -> bool:
        """Set a label."""
        return self._write(
            lambda conn, _: labels.put(conn, subject, name, value, layer=layer, actor=actor, now=self._now())
        )

    def labels(self, subject: str) -> list[Label]:
        """Return a subject's labels."""
        return self._read(lambda conn: labels.labels(conn, subject))

    def route(self, subject: str, kind: str) -> str | None:
        """Return where a label sends jobs."""
        return self._read(lambda conn: labels.route(conn, subject, kind))

    def clear_labels(
        self, subject: str, name: str | None, *, layers: Sequence[LabelLayer], actor: Actor
    ) -> int:
        """Remove labels."""
        return self._write(
            lambda conn, _: labels.clear(conn, subject, name, layers=layers, actor=actor, now=self._now())
        )

    def retriage(self, subject: str, *, actor: Actor) -> tuple[Requeued, int]:
        """Forget machine labels and requeue intake jobs."""
        return self._write(
            lambda conn, changes: retriage.retriage(conn, changes, subject, actor=actor, now=self._now())
        )

    def healable(self) -> list[int]:
        """Return some of the jobs that may heal."""
        return self._read(lambda conn: heal.healable(conn, now=self._now()))

    def heal(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Requeue what still may heal."""
        return self._write(lambda conn, changes: heal.heal(conn, changes, ids, now=self._now()))

    def count_failed(self, *, unrecoverable: bool | None) -> int:
        """Count failed jobs."""
        return self._read(lambda conn: heal.count_failed(conn, unrecoverable=unrecoverable))

    def circumstances(
        self, job_id: int, *, served: Mapping[str, tuple[str, ...]], limits: Mapping[str, int]
    ) -> Circumstances | None:
        """Return what stands around a job."""
        return self._read(
            lambda conn: circumstances.circumstances(conn, job_id, served=served, limits=limits, now=self._now())
        )

    def changes(self, *, job_id: int | None, subject: str | None = None, limit: int) -> list[LoggedChange]:
        """Return lines of the change log."""
        return self._read(lambda conn: changelog.changes(conn, job_id=job_id, subject=subject, limit=limit))
