"""What jobq needs of a database: the verbs of its domain.

The docstrings are the contract; ``tests/store`` holds every implementation to it. Common to all verbs:

- A verb is one transaction, or part of one that it shares with other threads' verbs; each succeeds or fails alone.
- Times are aware UTC datetimes. A verb that writes reads its clock after it holds the write lock.
- Changes of state are appended, in the order of the commits, to the feed that the store was opened with.
- ``durable`` says that the caller acknowledges the write to somebody: with durability "balanced" such a transaction is
  synced. What may be lost to a power cut without breaking "at least once" is not durable.
- Trouble with the database raises one of the four classes of :class:`jobq.errors.StoreError`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from jobq.model.draft import Draft as Draft
from jobq.model.effects import Verdict
from jobq.model.filter import Filter as Filter
from jobq.model.job import JSON, Job, JobInfo, JobState, KindInfo, QueueInfo, Run
from jobq.model.lease import Beat, Claim, ClaimRequest, Settled, Settlement
from jobq.model.runner import Outlook as Outlook
from jobq.model.runner import RunnerRow as RunnerRow
from jobq.store.counting import CountingStore
from jobq.store.hosting import HostStore
from jobq.store.lines import LineStore
from jobq.store.operating import OperatingStore
from jobq.store.publishing import PublishStore
from jobq.store.scheduling import ScheduleStore
from jobq.store.upkeep import UpkeepStore


class Durability(StrEnum):
    """Which commits are synced to the disk; none of the levels loses anything to a killed process.

    A power cut may undo what was not synced: with ``balanced`` only what "at least once" covers, with ``relaxed`` the
    last moments of acknowledged work too.
    """

    FULL = "full"
    BALANCED = "balanced"
    RELAXED = "relaxed"


class Placed(NamedTuple):
    """The answer for one draft: the new job, or the one that held its dedupe key."""

    id: int
    created: bool
    #: The queue that the draft was for, its subject's label considered.
    queue: str
    #: What makes the value of the job from its id and what the store knows of it. Not bound together: a batch has
    #: thousands of answers, few are looked at, and the garbage collector walks over every object.
    build: Callable[[int, Any], Job]
    known: Any

    def load(self) -> Job:
        """Return the job as it was when it was placed, or found to hold the key."""
        return self.build(self.id, self.known)


class KindRow(NamedTuple):
    """What a registration says of a kind, kept for producers and outside workers that have no handler."""

    name: str
    queue: str
    priority: int
    max_attempts: int
    max_deferrals: int | None
    cap: int | None
    retry: Mapping[str, JSON]
    #: Whether a retriage runs its jobs again.
    intake: bool = False


class QueueRow(NamedTuple):
    """What a registration says of a queue; one that is not ``configured`` is only made, and stays as it is."""

    name: str
    configured: bool = False
    hidden: bool = False
    #: The kinds that it accepts; None accepts all.
    kinds: tuple[str, ...] | None = None


class Store(
    OperatingStore, ScheduleStore, HostStore, UpkeepStore, CountingStore, PublishStore, LineStore, Protocol
):
    """The verbs. Every implementation passes ``tests/store``."""

    def register(self, kinds: Sequence[KindRow], queues: Sequence[QueueRow], retired: Sequence[str]) -> None:
        """Write the rows of kinds and queues; the last registration of a kind or of a configured queue wins.

        A registered kind is no longer retired; a kind in ``retired`` is. Pauses stay.
        """

    def enqueue(self, drafts: Sequence[Draft]) -> list[Placed]:
        """Insert all drafts in one transaction, or none of them.

        A draft whose dedupe key is held by a queued or running job of the same kind answers with that job, also when
        the holder stands earlier in the same call. Answers come in the order of the drafts. Queues are made as named.
        A draft whose enqueue named no queue goes where the label ``queue`` of its subject says.

        Raises:
            DedupeConflict: the key is held by a job of another kind.
            RetiredKind: a kind is retired.
            KindNotAccepted: the queue is configured for other kinds.
            JobNotFound: a ``parent_id`` names no job.
        """

    def claim(self, request: ClaimRequest, *, durable: bool) -> list[Claim]:
        """Take back expired leases, then take the best claimable jobs, each under a new token.

        Order among claimable jobs is exactly priority descending, run_at ascending, id ascending. Passed over without
        cost: paused queues and kinds, retired kinds, kinds at their cap, gated kinds without a permit, future jobs, and
        kinds that the request does not name. A job without attempts left becomes failed and harms nothing else. The
        work grows with the number of lanes (queue, kind, priority), never with the number of rows in them.
        """

    def settle(self, settlements: Sequence[Settlement], *, durable: bool) -> list[Settled]:
        """Write the end of each run whose token is still its job's; leave every other row alone.

        The follow-ups of a run that succeeded are inserted right after its job has ended, in order, as `enqueue` does.
        One that is refused (another kind holds its key, its kind is retired) is left out and named in the answer; it
        undoes nothing. A run that is superseded, or did not succeed, has no follow-ups.
        """

    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, durable: bool
    ) -> tuple[list[Settled], list[Claim]]:
        """Do both in one transaction: the price of a queue is the transaction."""

    def report(self, job_id: int, token: str, progress: str) -> bool:
        """Keep how far a run is, as JSON, on its job's row; not durable. False, and nothing written, for an old token.

        The next claim of the job clears it, as does a requeue.
        """

    def extend(self, leases: Sequence[tuple[int, str]], *, length: float | None = None, durable: bool) -> list[Beat]:
        """Renew each lease (job id, token) for ``length`` seconds from now, or for its own length.

        A lease that lapsed is renewed as long as the token stands; a superseded one is left out of the answer.
        """

    def reclaim(self, *, hold_expired: bool) -> int:
        """Take back every expired lease and return how many; with ``hold_expired`` grant each one lease length first.

        A lease is granted at most one such extension. Leases that end later than their own length from now (the clock
        was set back) are shortened to it.
        """

    def move_due_times(self, *, since: datetime, stepped_back: float) -> int:
        """Move the due times that had passed back by as many seconds as the wall clock was set back.

        ``since`` is the last time that was seen before the step; jobs made after it keep their times.
        """

    def cancel(
        self,
        ids: Sequence[int],
        *,
        wanted: Filter | None = None,
        children: bool = False,
        dry_run: bool = False,
    ) -> dict[int, Verdict | None]:
        """Cancel queued jobs, record the request for running ones; a dry run answers the same, on a reader.

        The answer maps each id to CANCELLED, REQUESTED, or None for a terminal job; an unknown id is left out, and so
        is one that does not fit ``wanted``. With ``children`` every queued and running job below them follows, below
        terminal ones too, in the same transaction.
        """

    def reschedule(self, job_id: int, *, run_at: datetime | None, delay: float | None, priority: int | None) -> bool:
        """Change when a queued job runs, or its priority; return False for a job in another state.

        Raises:
            JobNotFound: no job has this id.
        """

    def retire(self, kinds: Sequence[str]) -> int:
        """Cancel at most 50 queued jobs of each of these kinds (reason ``retired_kind``) and return how many it was."""

    def get(self, ids: Sequence[int]) -> dict[int, Job]:
        """Return the jobs with these ids; unknown ones are left out."""

    def states(self, ids: Sequence[int]) -> dict[int, JobState]:
        """Return the states of these jobs: what a wait looks at."""

    def find(self, wanted: Filter, *, limit: int | None) -> list[JobInfo]:
        """Return matching jobs, newest first, without loading payloads or results."""

    def matching(self, wanted: Filter, *, limit: int | None) -> list[int]:
        """Return the ids of the newest matching jobs, oldest first."""

    def count(self, wanted: Filter) -> dict[JobState, int]:
        """Count matching jobs by state; every state is a key."""

    def family_progress(self, job_id: int) -> dict[JobState, int]:
        """Count the jobs below one, its parts and theirs, by state; every state is a key."""

    def history(self, job_id: int) -> list[Run]:
        """Return the counted runs of a job that did not succeed, oldest first."""

    def queues(self) -> list[QueueInfo]:
        """Return every queue by name."""

    def kinds(self, names: Sequence[str] | None = None) -> list[KindInfo]:
        """Return every kind by name, or those named that exist."""

    def declared(self, kind: str) -> KindRow | None:
        """Return what the last registration said of a kind, None where there was none; unlike `kinds` it is cheap."""

    def cancel_requests(self) -> list[tuple[int, str]]:
        """Return (job id, token) of every running job that was asked to cancel."""

    def look(self, request: ClaimRequest) -> Outlook:
        """Say, without the write lock, whether a claim would find anything, and when to look again."""

    def data_version(self) -> int:
        """Return a number that differs after any process committed; equal numbers mean that nothing changed."""

    def beat_runner(self, row: RunnerRow) -> None:
        """Write or refresh a runner's row."""

    def remove_runner(self, runner_id: str) -> None:
        """Remove a runner's row when it stops."""

    def runners(self) -> list[RunnerRow]:
        """Return the rows of all runners, those of dead ones included."""

    def close(self) -> None:
        """Give up this store's share of the database; the last one closes the handles."""
