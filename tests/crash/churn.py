"""A process that does everything to a job queue at once, until it is killed.

``python -m tests.crash.churn PATH SETTINGS``, the settings as JSON.

What it was told is done it writes into a file, a line each, as soon as it knows.
"""

import json
import os
import random
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import timedelta
from itertools import count
from typing import Any

import jobq
from jobq.errors import DedupeConflict, InvalidTransition, JobNotFound, LeaseLost, QueueNotFound, StoreBusy

CAP = 2
RUNNING = "SELECT count(*) FROM jobq_job WHERE kind = 'capped' AND state = 'running'"
KEYS = ("red", "green", "blue")
#: Jobs that the handler ends itself, with a row of the host's; and jobs that are made together with one.
TABLES = (
    "CREATE TABLE IF NOT EXISTS ended (job INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS shipped (name TEXT PRIMARY KEY)",
)
#: A failed job may heal after so many seconds, which would take a quarter of an hour otherwise.
REST = 0.05


def handlers() -> jobq.Handlers:
    """Return handlers that succeed, fail, come back later, go on with another job, and end themselves."""
    found, pause = jobq.Handlers(), threading.Event()

    @found.job(retry=jobq.RetryPolicy(base=0.01))
    def plain(payload: Any, job: jobq.RunningJob) -> str:
        if payload < 0.1 and not job.deferrals:
            raise jobq.Deferred(delay=0.01)
        return "x" * (4_000 if payload > 0.9 else 1)

    @found.job(concurrency=CAP)
    def capped(payload: Any, job: jobq.RunningJob) -> None:
        pause.wait(0.005)
        job.cancel_token.raise_if_requested()

    @found.job(max_attempts=2, retry=jobq.RetryPolicy(base=0))
    def fails(payload: Any) -> None:
        raise ValueError("no")

    @found.job
    def follows(payload: Any, job: jobq.RunningJob) -> None:
        job.enqueue("plain", payload)
        job.follow_up("own", payload)

    @found.job
    def own(payload: Any, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO ended VALUES (?)", (job.id,))

    @found.job
    def order(payload: Any) -> None:
        pass

    @found.job
    def ship(payload: Any, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO shipped VALUES (?)", (job.subject,))

    @found.job(max_attempts=1)
    def ails(payload: Any) -> None:
        if payload < 0.7:
            raise jobq.TransientJobError("not today")

    @found.job(intake=True)
    def sort(payload: Any) -> None:
        pass

    return found


def host_of(path: str) -> str:
    """Return the file of the host's own database."""
    return f"{path}.shop"


def outbox_of(jobs: jobq.JobQueue) -> jobq.Outbox:
    """Return the outbox in it; what was published stays there for a moment only."""
    return jobq.Outbox(jobs, connect=lambda: sqlite3.connect(host_of(jobs.path), timeout=20), keep=0.2)


class Churn:
    """Verbs, chosen by dice."""

    def __init__(self, jobs: jobq.JobQueue, outbox: jobq.Outbox, dice: random.Random, log: str) -> None:
        self._jobs = jobs
        self._outbox = outbox
        self._numbers = count()
        self._dice = dice
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._ids = [0]
        self._verbs: list[Callable[[], object]] = [
            self._enqueue, self._enqueue_many, self._keyed, self._order, self._cancel, self._requeue, self._lease,
            self._reschedule, self._pause, self._schedule, self._prune, self._ship, self._route, self._heal,
            self._pause_kind, self._pause_schedule, self._retriage, self._look,
        ]  # fmt: skip

    def step(self) -> None:
        """Look at a cap, and do one thing; that a job is in another state by now is nobody's fault."""
        with self._jobs.read() as snapshot:
            ((running,),) = snapshot.execute(RUNNING)
        if running > CAP:
            self._tell("over", running)
        with suppress(DedupeConflict, InvalidTransition, JobNotFound, LeaseLost, QueueNotFound, StoreBusy):
            self._dice.choice(self._verbs)()

    def _tell(self, *words: object) -> None:
        os.write(self._log, (json.dumps(words) + "\n").encode())

    def _some_id(self) -> int:
        return self._dice.choice(self._ids[-200:])

    def _new(self, kind: str) -> jobq.NewJob:
        return jobq.NewJob(kind, self._dice.random(), queue=self._dice.choice(["default", "side"]))

    def _made(self, *made: jobq.Enqueued) -> None:
        for one in made:
            assert one.id is not None
            self._ids.append(one.id)
            self._tell("made", one.id)

    def _enqueue(self) -> None:
        self._made(self._jobs.enqueue("plain", self._dice.random(), delay=self._dice.choice([0, 0.02])))

    def _enqueue_many(self) -> None:
        kind = self._dice.choice(["plain", "capped", "fails", "follows", "own", "outside"])
        chunk = self._dice.choice([None, 2])
        self._made(*self._jobs.enqueue_many([self._new(kind) for _ in range(5)], chunk=chunk))

    def _keyed(self) -> None:
        self._made(self._jobs.enqueue("plain", self._dice.random(), dedupe_key=self._dice.choice(KEYS)))

    def _order(self) -> None:
        name = f"{self._dice.random()}"
        with self._jobs.transaction() as tx:
            tx.execute("INSERT INTO orders VALUES (?)", (name,))
            made = self._jobs.enqueue("order", 1, subject=name)
        self._made(made)
        self._tell("ordered", name)

    def _cancel(self) -> None:
        job_id = self._some_id()
        self._tell("cancelling", job_id)
        self._jobs.cancel(job_id)

    def _requeue(self) -> None:
        self._jobs.requeue([self._some_id() for _ in range(3)])

    def _lease(self) -> None:
        for lease in self._jobs.lease("outside", worker="agent", limit=2):
            held = self._jobs.extend(lease)
            ends: list[Callable[[jobq.Lease], object]] = [
                self._jobs.complete,
                self._jobs.release,
                lambda lease: self._jobs.fail(lease, "no", permanent=True),
                lambda lease: self._jobs.defer(lease, delay=0.01),
            ]
            self._dice.choice(ends)(held)

    def _reschedule(self) -> None:
        self._jobs.reschedule(self._some_id(), delay=0.01)

    def _pause(self) -> None:
        self._jobs.pause("side")
        self._jobs.resume("side")

    def _schedule(self) -> None:
        self._jobs.schedules.add(self._dice.choice(KEYS), every=self._dice.choice([1, 2]), kind="plain", payload=1)
        with suppress(jobq.ScheduleNotFound):
            self._jobs.schedules.run_now("red")

    def _prune(self) -> None:
        self._jobs.prune(state="cancelled", older_than=0)

    def _name(self) -> str:
        return f"{os.getpid()}-{next(self._numbers)}"

    def _ship(self) -> None:
        name = self._name()
        with closing(sqlite3.connect(host_of(self._jobs.path), timeout=20)) as host:
            with self._outbox.joined(host):
                host.execute("INSERT INTO orders VALUES (?)", (name,))
                self._jobs.enqueue("ship", 1, subject=name)
            if self._dice.random() < 0.2:
                host.rollback()
                return
            host.commit()
        self._tell("staged", name)

    def _route(self) -> None:
        subject, queue = self._name(), self._dice.choice(["default", "side"])
        self._jobs.labels.set(subject, "queue", queue, layer=self._dice.choice(["machine", "human"]))
        made = self._jobs.enqueue("sort", 1, subject=subject)
        self._made(made)
        self._tell("routed", [made.id, queue])

    def _retriage(self) -> None:
        name = self._name()
        self._jobs.labels.set(name, "language", "fr", layer="machine")
        self._made(self._jobs.enqueue("sort", 1, subject=name))
        self._jobs.retriage(name)

    def _heal(self) -> None:
        self._made(self._jobs.enqueue("ails", self._dice.random()))
        self._jobs.self_heal()

    def _pause_kind(self) -> None:
        self._jobs.pause(kind="ails")
        self._jobs.resume(kind="ails")

    def _pause_schedule(self) -> None:
        with suppress(jobq.ScheduleNotFound):
            self._dice.choice([self._jobs.schedules.pause, self._jobs.schedules.resume])(self._dice.choice(KEYS))
            self._jobs.schedules.remove("blue")

    def _look(self) -> None:
        self._jobs.stats()
        self._jobs.queues()
        with suppress(JobNotFound):
            self._jobs.explain(self._some_id())


def main(path: str, *, seed: int, log: str, lease: float) -> None:
    """Work and churn until killed."""
    with jobq.open(path, handlers=handlers(), config=jobq.Config(lease=lease, busy_timeout=20)) as jobs:
        with jobs.transaction() as tx:
            for table in TABLES:
                tx.execute(table)
        jobq.store.sqlite.heal.REST = timedelta(seconds=REST)
        with closing(sqlite3.connect(host_of(path), timeout=20)) as host:
            host.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT PRIMARY KEY)")
            host.commit()
        outbox = outbox_of(jobs)
        outbox.create_table()
        churn, pause = Churn(jobs, outbox, random.Random(seed), log), threading.Event()
        with jobq.Runner(jobs, workers={"default": 2, "side": 1}, outboxes=[outbox]):
            os.write(1, b"working\n")
            while not pause.wait(0.004):
                churn.step()


if __name__ == "__main__":
    main(sys.argv[1], **json.loads(sys.argv[2]))
