"""The SQLite store: each method is one transaction around one function of the files beside this one."""

import os
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import apsw

from jobq.model.effects import Verdict
from jobq.model.events import Change
from jobq.model.job import Job, JobInfo, JobState, KindInfo, QueueInfo, Run
from jobq.model.lease import Beat, Claim, ClaimRequest, Settled, Settlement
from jobq.store.base import Draft, Filter, KindRow, Outlook, Placed, QueueRow, RunnerRow
from jobq.store.sqlite import (
    cancel,
    claim,
    enqueue,
    family,
    lanes,
    lease,
    lookup,
    progress,
    queues,
    reschedule,
    runners,
    settle,
)
from jobq.store.sqlite.countingstore import SqliteCounting
from jobq.store.sqlite.lease import Expiry
from jobq.store.sqlite.linestore import SqliteLines
from jobq.store.sqlite.operatingstore import SqliteOperating
from jobq.store.sqlite.publishstore import SqlitePublishing
from jobq.store.sqlite.schedulestore import SqliteSchedules
from jobq.store.sqlite.upkeepstore import SqliteUpkeep

_TOKEN_BYTES = 8


class SqliteStore(
    SqliteOperating, SqliteSchedules, SqliteUpkeep, SqliteCounting, SqlitePublishing, SqliteLines
):
    """One job queue's view of a database file: its clock, durability and patience over a shared engine.

    Implements :class:`jobq.store.base.Store`, whose docstrings are the contract of the methods here.
    """

    def register(self, kinds: Sequence[KindRow], queues_: Sequence[QueueRow], retired: Sequence[str]) -> None:
        """Write the rows of kinds and queues."""
        self._write(lambda conn, _: queues.register(conn, kinds, queues_, retired))

    def enqueue(self, drafts: Sequence[Draft]) -> list[Placed]:
        """Insert all drafts or none."""
        return self._write(lambda conn, changes: enqueue.enqueue(conn, changes, drafts, now=self._now()))

    def claim(self, request: ClaimRequest, *, durable: bool) -> list[Claim]:
        """Start the best claimable jobs."""
        claims, expiries = self._write(partial(self._claim, request), durable=durable)
        lease.tell(expiries)
        return claims

    def settle(self, settlements: Sequence[Settlement], *, durable: bool) -> list[Settled]:
        """Write the ends of runs."""
        return self._write(partial(self._settle, settlements), durable=durable)

    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, durable: bool
    ) -> tuple[list[Settled], list[Claim]]:
        """Do both in one transaction."""

        def both(conn: apsw.Connection, changes: list[Change]) -> tuple[list[Settled], list[Claim], list[Expiry]]:
            return self._settle(settlements, conn, changes), *self._claim(request, conn, changes)

        settled, claims, expiries = self._write(both, durable=durable)
        if expiries:
            lease.tell(expiries)
        return settled, claims

    def report(self, job_id: int, token: str, progress_: str) -> bool:
        """Keep how far a run is."""
        return self._write(lambda conn, _: progress.report(conn, job_id, token, progress_), durable=False)

    def extend(self, leases: Sequence[tuple[int, str]], *, length: float | None = None, durable: bool) -> list[Beat]:
        """Renew leases."""
        return self._write(
            lambda conn, _: lease.extend(conn, leases, now=self._now(), length=length), durable=durable
        )

    def reclaim(self, *, hold_expired: bool) -> int:
        """Take back expired leases, in bounded transactions; shorten those that end too late."""

        def run(conn: apsw.Connection, changes: list[Change]) -> list[Expiry]:
            now = self._now()
            lease.clamp(conn, now=now)
            return lease.reclaim(conn, changes, now=now, hold_expired=hold_expired)

        total = 0
        while expiries := self._write(run, durable=False):
            lease.tell(expiries)
            total += len(expiries)
        return total

    def move_due_times(self, *, since: datetime, stepped_back: float) -> int:
        """Move due times back with the clock."""
        return self._write(
            lambda conn, _: reschedule.move_due_times(conn, since=since, stepped_back=stepped_back, now=self._now()),
            durable=False,
        )

    def cancel(
        self,
        ids: Sequence[int],
        *,
        wanted: Filter | None = None,
        children: bool = False,
        dry_run: bool = False,
    ) -> dict[int, Verdict | None]:
        """Cancel jobs or record the requests."""
        if dry_run:
            return self._read(
                lambda conn: cancel.rehearse(conn, ids, wanted=wanted, children=children, now=self._now())
            )
        return self._write(
            lambda conn, changes: cancel.cancel(
                conn, changes, lookup.still(conn, wanted, ids), children=children, now=self._now()
            )
        )

    def reschedule(self, job_id: int, *, run_at: datetime | None, delay: float | None, priority: int | None) -> bool:
        """Change a queued job's due time or priority."""
        return self._write(
            lambda conn, _: reschedule.reschedule(
                conn, job_id, run_at=run_at, delay=delay, priority=priority, now=self._now()
            )
        )

    def retire(self, kinds: Sequence[str]) -> int:
        """Cancel some of the queued jobs of retired kinds."""
        return self._write(lambda conn, changes: cancel.retire(conn, changes, kinds, now=self._now()))

    def get(self, ids: Sequence[int]) -> dict[int, Job]:
        """Return jobs by id."""
        return self._read(lambda conn: lookup.get(conn, ids))

    def states(self, ids: Sequence[int]) -> dict[int, JobState]:
        """Return states by id."""
        return self._read(lambda conn: lookup.states(conn, ids))

    def find(self, wanted: Filter, *, limit: int | None) -> list[JobInfo]:
        """Return matching jobs, newest first."""
        return self._read(lambda conn: lookup.find(conn, wanted, limit=limit))

    def matching(self, wanted: Filter, *, limit: int | None) -> list[int]:
        """Return ids of matching jobs, oldest first."""
        return self._read(lambda conn: lookup.matching(conn, wanted, limit=limit))

    def count(self, wanted: Filter) -> dict[JobState, int]:
        """Count matching jobs by state."""
        return self._read(lambda conn: lookup.count(conn, wanted))

    def family_progress(self, job_id: int) -> dict[JobState, int]:
        """Count the jobs below one by state."""
        return self._read(lambda conn: family.progress(conn, job_id))

    def history(self, job_id: int) -> list[Run]:
        """Return a job's run history."""
        return self._read(lambda conn: lookup.history(conn, job_id))

    def queues(self) -> list[QueueInfo]:
        """Return every queue."""
        return self._read(queues.queues)

    def kinds(self, names: Sequence[str] | None = None) -> list[KindInfo]:
        """Return kinds."""
        return self._read(lambda conn: queues.kinds(conn, names))

    def declared(self, kind: str) -> KindRow | None:
        """Return a kind's registration."""
        return self._read(lambda conn: queues.declared(conn, kind))

    def cancel_requests(self) -> list[tuple[int, str]]:
        """Return the running jobs that were asked to cancel."""
        return self._read(cancel.requests)

    def look(self, request: ClaimRequest) -> Outlook:
        """Say what a claim would find."""
        return self._read(lambda conn: lanes.look(conn, request, now=self._now()))

    def data_version(self) -> int:
        """Return the change counter."""
        return self.engine.data_version()

    def beat_runner(self, row: RunnerRow) -> None:
        """Write a runner's row."""
        self._write(lambda conn, _: runners.beat(conn, row), durable=False)

    def remove_runner(self, runner_id: str) -> None:
        """Remove a runner's row."""
        self._write(lambda conn, _: runners.remove(conn, runner_id), durable=False)

    def runners(self) -> list[RunnerRow]:
        """Return the runners' rows."""
        return self._read(runners.runners)

    def _claim(
        self, request: ClaimRequest, conn: apsw.Connection, changes: list[Change]
    ) -> tuple[list[Claim], list[Expiry]]:
        # The time is read here, under the write lock: a lease computed while waiting for it might be born expired.
        now = self._now()
        tokens = _mint(len(request.workers) * request.hand)
        return claim.claim(conn, changes, request, now=now, tokens=tokens)

    def _settle(
        self, settlements: Sequence[Settlement], conn: apsw.Connection, changes: list[Change]
    ) -> list[Settled]:
        return settle.settle(conn, changes, settlements, now=self._now(), roll=self._roll)


def _mint(count: int) -> list[str]:
    """Return so many tokens: random, because a token that can be guessed is no fence."""
    text = os.urandom(_TOKEN_BYTES * count).hex()
    return [text[i : i + 2 * _TOKEN_BYTES] for i in range(0, len(text), 2 * _TOKEN_BYTES)]
