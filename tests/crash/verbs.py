"""Every verb of a job queue and of its runner, ready to be carried out on a file that has something for each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import attrs

import jobq
from jobq.model.events import Event
from jobq.testing import FakeClock, MemoryDatabase

#: Columns whose values differ from run to run.
_RANDOM = {"token", "worker", "monotonic", "boot_id", "jobq_runner.id", "jobq_published.uid", "jobq_leader.holder"}
#: Jobs of the prepared file, by what they are.
QUEUED, FAILED, LEASED, CANCELLED, PARENT, OTHER = range(1, 7)


class World:
    """A job queue on a copy of the prepared file, with handlers, a runner that is not started, and what it told."""

    def __init__(self, jobs: jobq.JobQueue, lease: jobq.Lease) -> None:
        self.jobs = jobs
        #: What an outside worker holds.
        self.lease = lease
        self.path = Path(jobs.path)
        self.events: list[Event] = []
        jobs.bus.subscribe(Event, self.events.append)
        self.runner = jobq.Runner(jobs)
        self.leader = jobq.LeaseLeader(jobs)
        #: A database of the program's own, which never fails, and the outbox in it.
        self.host = MemoryDatabase()
        self.outbox = jobq.Outbox(jobs, connect=self.host.connect)

    def warm(self) -> None:
        """Have the handles open and the registrations written."""
        self.jobs.register()
        self.jobs.counts()
        with self.jobs.transaction() as tx:
            tx.execute("SELECT 1")


def handlers() -> jobq.Handlers:
    """Return handlers that succeed, fail, take in, and end themselves."""
    made = jobq.Handlers()

    @made.job(max_attempts=3)
    def works(payload: dict, job: jobq.RunningJob) -> dict:
        job.follow_up("lies", {}, delay="1h")
        return {"done": True}

    @made.job
    def fails(payload: dict) -> None:
        raise ValueError("no")

    made.job(name="takes-in", intake=True)(lambda payload: None)

    @made.job
    def carries(payload: dict, job: jobq.RunningJob) -> None:
        with job.transaction() as tx:
            tx.execute("INSERT INTO host VALUES (?)", (job.id,))

    return made


def prepare(path: Path) -> jobq.Lease:
    """Make the file: jobs in the states that the verbs need, a schedule that is due; return the lease of one."""
    with jobq.open(path, clock=FakeClock(), handlers=handlers()) as jobs:
        with jobs.transaction() as tx:
            tx.execute("CREATE TABLE host (id INTEGER)")
        jobs.enqueue("lies", {}, dedupe_key="held", delay="1h")
        jobs.enqueue("outside", {}, max_attempts=1)
        jobs.fail(jobs.lease("outside", worker="agent")[0], "no")
        jobs.enqueue("outside", {"pad": "x" * 5_000})
        (lease,) = jobs.lease("outside", worker="agent", length="1h")
        jobs.enqueue("lies", {})
        jobs.cancel(CANCELLED)
        jobs.enqueue("lies", {}, delay="1h")
        jobs.enqueue("lies", {}, delay="1h", parent_id=PARENT)
        jobs.schedules.add("due", every="1m", kind="lies", payload={})
        jobs.schedules.add("paused", every="1h", kind="lies", payload={})
        jobs.schedules.pause("paused")
        jobs.enqueue("lies", {}, queue="spare", delay="1h")
        jobs.pause("spare")
        jobs.pause(kind="outside")
        jobs.enqueue("takes-in", {}, subject="book", delay="1h")
        jobs.labels.set("book", "language", "fr")
        return lease


@contextmanager
def open_world(path: Path, lease: jobq.Lease) -> Iterator[World]:
    """Open a copy of it, two minutes later."""
    clock = FakeClock()
    clock.advance("2m")
    config = jobq.Config(lease=60, busy_timeout=0.05)
    with jobq.open(path, clock=clock, handlers=handlers(), config=config) as jobs:
        yield World(jobs, lease)


def dump(path: Path, vfs: str | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables as another process sees them, but for values that are random."""
    connection = apsw.Connection(str(path), vfs=vfs)
    try:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
            ).fetchall()
        ]
        with connection:
            return {name: _table(connection, name) for name in names}
    finally:
        connection.close()


def _table(connection: apsw.Connection, name: str) -> list[tuple[Any, ...]]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})").fetchall()]
    random = [column in _RANDOM or f"{name}.{column}" in _RANDOM for column in columns]
    rows = connection.execute(f"SELECT * FROM {name}").fetchall()
    return [tuple(None if hide else value for hide, value in zip(random, row, strict=True)) for row in rows]


def _rows(jobs: jobq.JobQueue, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with jobs.read() as snapshot:
        return snapshot.execute(sql, values)  # type: ignore[arg-type]


def _run(world: World, kind: str) -> None:
    world.jobs.enqueue(kind, {}, priority=1000)
    world.runner.run_once()


def _transaction(world: World) -> None:
    with world.jobs.transaction() as tx:
        tx.execute("INSERT INTO host VALUES (1)")
        world.jobs.enqueue("lies", {}, delay="1h")
        world.jobs.cancel(OTHER)


def _stage(world: World) -> None:
    connection = world.host.connect()
    with world.outbox.joined(connection):
        world.jobs.enqueue("lies", {}, delay="1h")
    connection.commit()
    connection.close()


def _relay(world: World, *, ticks: int) -> None:
    """Publish a row so often: from the second time on, as after a relay that died before it marked the row."""
    _stage(world)
    staged = {number: attrs.evolve(row) for number, row in world.host.rows.items()}
    for _ in range(ticks):
        world.outbox.relay.tick()
        world.host.rows.update({number: attrs.evolve(row) for number, row in staged.items()})


def nothing_carried(found: dict[str, list[tuple[Any, ...]]]) -> bool:
    """Whether nothing of a handler's own transaction was committed: its failure is a failed attempt like any other."""
    return not found["host"]


#: Name of each verb, and how it is carried out.
VERBS: dict[str, Callable[[World], object]] = {
    "enqueue": lambda w: w.jobs.enqueue("lies", {"pad": "x" * 5_000}, delay="1h"),
    "enqueue-held": lambda w: w.jobs.enqueue("lies", {}, dedupe_key="held"),
    "enqueue_many": lambda w: w.jobs.enqueue_many([jobq.NewJob("lies", {}, delay="1h") for _ in range(20)]),
    "enqueue_many-chunks": lambda w: w.jobs.enqueue_many(
        [jobq.NewJob("lies", {}, delay="1h") for _ in range(6)], chunk=2
    ),
    "get": lambda w: w.jobs.get(QUEUED),
    "find": lambda w: w.jobs.find(limit=None),
    "counts": lambda w: w.jobs.counts(),
    "history": lambda w: w.jobs.history(FAILED),
    "changes": lambda w: w.jobs.changes(),
    "queues": lambda w: w.jobs.queues(),
    "kinds": lambda w: w.jobs.kinds(),
    "read": lambda w: _rows(w.jobs, "SELECT * FROM host"),
    "doctor": lambda w: w.jobs.doctor(),
    "cancel-queued": lambda w: w.jobs.cancel(QUEUED),
    "cancel-running": lambda w: w.jobs.cancel(LEASED),
    "cancel-many": lambda w: w.jobs.cancel([QUEUED, LEASED, OTHER]),
    "requeue": lambda w: w.jobs.requeue(FAILED),
    "requeue-many": lambda w: w.jobs.requeue([FAILED, CANCELLED, LEASED]),
    "reschedule": lambda w: w.jobs.reschedule(QUEUED, delay="2h"),
    "pause": lambda w: w.jobs.pause("default", who="me", why="because"),
    "resume": lambda w: w.jobs.resume("spare"),
    "lease": lambda w: w.jobs.lease("lies", worker="agent"),
    "extend": lambda w: w.jobs.extend(w.lease),
    "complete": lambda w: w.jobs.complete(w.lease, {"pad": "x" * 5_000}),
    "fail": lambda w: w.jobs.fail(w.lease, "no"),
    "defer": lambda w: w.jobs.defer(w.lease, delay="1h", reason="later"),
    "release": lambda w: w.jobs.release(w.lease),
    "transaction": _transaction,
    "schedules.add": lambda w: w.jobs.schedules.add("new", cron="0 7 * * *", kind="lies", payload={}),
    "schedules.get": lambda w: w.jobs.schedules.get("due"),
    "schedules.list": lambda w: w.jobs.schedules.list(),
    "schedules.next_runs": lambda w: w.jobs.schedules.next_runs("due"),
    "schedules.remove": lambda w: w.jobs.schedules.remove("due"),
    "schedules.pause": lambda w: w.jobs.schedules.pause("due"),
    "schedules.resume": lambda w: w.jobs.schedules.resume("paused"),
    "schedules.run_now": lambda w: w.jobs.schedules.run_now("due"),
    "schedules.tick": lambda w: w.jobs.schedules.tick(),
    "runner.run_once": lambda w: _run(w, "works"),
    "runner.run_once-fails": lambda w: _run(w, "fails"),
    "runner.run_once-transaction": lambda w: _run(w, "carries"),
    "runner.drain": lambda w: w.runner.drain(),
    "runner.bootstrap": lambda w: w.runner.bootstrap(),
    "runner.heartbeat.tick": lambda w: w.runner.heartbeat.tick(),
    "runner.maintenance.tick": lambda w: w.runner.maintenance.tick(),
    "checkpoint": lambda w: w.jobs.store.checkpoint(),
    "prune": lambda w: w.jobs.prune(older_than=0),
    "pause-kind": lambda w: w.jobs.pause(kind="lies"),
    "resume-kind": lambda w: w.jobs.resume(kind="outside"),
    "labels.set": lambda w: w.jobs.labels.set("book", "queue", "spare"),
    "labels.get": lambda w: w.jobs.labels.get("book"),
    "labels.clear": lambda w: w.jobs.labels.clear("book"),
    "retriage": lambda w: w.jobs.retriage("book"),
    "self_heal": lambda w: w.jobs.self_heal(),
    "explain": lambda w: w.jobs.explain(QUEUED),
    "count_failed": lambda w: w.jobs.count_failed(unrecoverable=True),
    "cancel-where": lambda w: w.jobs.cancel(where={"kind": "lies"}),
    "children": lambda w: w.jobs.children(PARENT),
    "family_progress": lambda w: w.jobs.family_progress(PARENT),
    "cancel-children": lambda w: w.jobs.cancel(PARENT, children=True),
    "schedules.look": lambda w: w.jobs.schedules.look(),
    "runner.scheduler.tick": lambda w: w.runner.scheduler.tick(),
    "runner.scheduler.next_due": lambda w: w.runner.scheduler.next_due(),
    "leader.leads": lambda w: w.leader.leads(),
    "leader.resign": lambda w: (w.leader.leads(), w.leader.resign()),
    "outbox.joined": _stage,
    "outbox.relay.tick": lambda w: _relay(w, ticks=1),
    "outbox.relay.tick-again": lambda w: _relay(w, ticks=2),
    "outbox.relay.catch_up": lambda w: (_stage(w), w.outbox.relay.catch_up()),
    "backup": lambda w: w.jobs.backup(w.path.with_suffix(".copy"), force=True),
    "wait": lambda w: w.jobs.wait(CANCELLED, timeout=0),
    "log_lines": lambda w: w.jobs.log_lines(FAILED),
    "stats": lambda w: w.jobs.stats(),
}
