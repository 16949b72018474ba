"""One cell of any table holds what no verb writes: it harms its own row, and no listing, claim or tick beside it."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import jobq
from jobq.errors import JobNotFound, JobqError, StoreError
from jobq.testing import FakeClock, MemoryDatabase
from tests.conftest import ErrorLog
from tests.crash.verbs import CANCELLED, FAILED, LEASED, OTHER, PARENT, QUEUED, World, handlers, open_world, prepare

#: What a hand, another program or a flipped bit may leave in a cell. What the column's type refuses is left out.
ODD = {
    "null": "NULL", "zero": "0", "negative": "-1", "beyond-2^53": "9007199254740993", "real": "1.5", "blob": "x'00ff'",
    "huge": "9223372036854775807", "least": "-9223372036854775808", "empty": "''", "word": "'odd'", "digits": "'7'",
    "half-json": "'{'", "json-null": "'null'", "array": "'[1]'", "object": "'{\"a\": 1}'",
    "nul": "CAST(x'610062' AS TEXT)", "latin": "CAST(x'ff41' AS TEXT)", "surrogate": "CAST(x'eda080' AS TEXT)",
    "long": "printf('%.*c', 100000, 'x')", "deep": "printf('%.*c', 200000, '[')",
}  # fmt: skip
#: What this test found, or would have: always tried.
FOUND = [
    ("jobq_runner", "kinds", "half-json"),  # stats, doctor, explain and every start of a runner raised
    ("jobq_runner", "queues", "digits"),
    ("jobq_runner", "host", "latin"),  # taken for a corrupt file, which ends a runner
    ("jobq_kind", "name", "latin"),
    ("jobq_kind", "queue", "latin"),
    ("jobq_kind", "priority", "huge"),  # an untyped error in a tick, with the schedules beside it
    ("jobq_queue", "kinds", "latin"),
    ("jobq_queue", "paused_why", "latin"),
    ("jobq_leader", "holder", "latin"),
    ("jobq_label", "layer", "word"),
    ("jobq_label", "value", "latin"),
    ("jobq_change", "after", "deep"),
    ("jobq_schedule", "catch_up", "word"),
    ("jobq_schedule", "priority", "huge"),
    ("jobq_job", "actor", "latin"),
    ("jobq_job", "kind", "latin"),
    ("jobq_job", "state", "latin"),
    ("jobq_job", "dedupe_key", "latin"),
    ("jobq_job", "attempts", "negative"),
    ("jobq_job", "deferrals", "least"),
    ("jobq_job", "priority", "huge"),
    ("jobq_job", "token", "word"),
]
#: Obeyed, whatever else the number means: it is a pause, or the kind is retired, or the queue takes no such kind.
OBEYED = {("jobq_kind", "paused_at"), ("jobq_queue", "paused_at"), ("jobq_kind", "retired"), ("jobq_queue", "kinds")}
#: A counter at its end is a full file to SQLite: no id comes after it. A version decides whether the file is opened.
ENDS = {("jobq_job", "id", "huge"), ("jobq_change", "id", "huge"), ("jobq_log", "id", "huge")}


class Cell(NamedTuple):
    """One cell: the row is counted in the order of the table's key."""

    table: str
    column: str
    row: int
    odd: str


class Tables:
    """The prepared file, and what could be in its cells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lease = prepare(path)
        _furnish(path)
        with _connection(path) as connection:
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'jobq%'")
            self.columns: dict[str, list[str]] = {}
            self._keys: dict[str, str] = {}
            self._sizes: dict[str, int] = {}
            for (name,) in sorted(names.fetchall()):
                info = connection.execute(f"PRAGMA table_info({name})").fetchall()
                self.columns[name] = [row[1] for row in info]
                self._keys[name] = ", ".join(row[1] for row in info if row[5])
                self._sizes[name] = connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            #: The row of the job that a claim takes first.
            self.head = connection.execute(
                "SELECT count(*) FROM jobq_job WHERE id < "
                "(SELECT min(id) FROM jobq_job WHERE kind = 'works' AND state = 'queued')"
            ).fetchall()[0][0]

    def all(self) -> Iterator[Cell]:
        """Yield every cell with everything odd."""
        for table, columns in self.columns.items():
            if table != "jobq_schema":
                for column in columns:
                    for odd in ODD:
                        yield from self.rows(table, column, odd)

    def rows(self, table: str, column: str, odd: str) -> list[Cell]:
        """Return the cells of a column."""
        if (table, column, odd) in ENDS:
            return []
        return [Cell(table, column, row, odd) for row in range(self._sizes[table])]

    def spoil(self, path: Path, cell: Cell) -> bool:
        """Copy the file and change the cell, past the CHECKs; False where its type or an index refuses that."""
        for old in path.parent.glob("jobs.db*"):
            old.unlink()
        shutil.copy(self.path, path)
        key = self._keys[cell.table]
        with _connection(path) as connection:
            connection.execute("PRAGMA ignore_check_constraints = 1").fetchall()
            try:
                connection.execute(
                    f"UPDATE {cell.table} SET {cell.column} = {ODD[cell.odd]} WHERE ({key}) IN "
                    f"(SELECT {key} FROM {cell.table} ORDER BY {key} LIMIT 1 OFFSET {cell.row})"
                ).fetchall()
            except (apsw.ConstraintError, apsw.MismatchError):
                return False
            return True


class _connection:  # noqa: N801 - used as a function
    """A connection that is closed."""

    def __init__(self, path: Path) -> None:
        self._made = apsw.Connection(str(path))

    def __enter__(self) -> apsw.Connection:
        return self._made

    def __exit__(self, *error: object) -> None:
        self._made.close()


def _furnish(path: Path) -> None:
    """Put a row into each table that has none, and jobs that a claim or a reclaim meets."""
    clock = FakeClock()
    clock.advance("90s")
    with jobq.open(path, clock=clock, handlers=handlers()) as jobs:
        jobs.schedules.tick()
        jobs.schedules.add("second", every="10s", kind="lies", payload={})
        host = MemoryDatabase()
        outbox = jobq.Outbox(jobs, connect=host.connect)
        staging = host.connect()
        with outbox.joined(staging):
            jobs.enqueue("lies", {}, delay="1h")
        staging.commit()
        outbox.relay.tick()
        jobq.LeaseLeader(jobs).leads()
        jobs.enqueue("outside-large", {})
        jobs.complete(jobs.lease("outside-large", worker="agent")[0], {"pad": "x" * 5_000})
        for _ in range(2):
            jobs.enqueue("works", {})
        jobs.lease("works", worker="dead", limit=1, length="1s")
        jobs.enqueue("takes-in", {}, subject="book")
        jobq.Runner(jobs).heartbeat.tick()
    with _connection(path) as connection:
        line = "INSERT INTO jobq_log (job_id, attempt, at, level, event, fields) VALUES (?, 1, 1, 'info', 'e', '{}')"
        connection.execute(line, (FAILED,)).fetchall()


def listings(world: World) -> dict[str, Callable[[], object]]:
    """Return what must be answered whatever a cell says."""
    jobs = world.jobs
    return {
        "find": lambda: [job.id for job in jobs.find(limit=None)],
        "find failed": lambda: jobs.find(state="failed"),
        "counts": jobs.counts,
        "queues": lambda: jobs.queues(hidden=True),
        "kinds": jobs.kinds,
        "changes": jobs.changes,
        "stats": jobs.stats,
        "doctor": lambda: jobs.doctor(deep=True),
        "schedules": jobs.schedules.list,
        "labels": lambda: jobs.labels.get("book"),
        "count_failed": jobs.count_failed,
        "rehearsed requeue": lambda: jobs.requeue(where={"kind": "outside"}, dry_run=True),
        "rehearsed prune": lambda: jobs.prune(older_than=0, dry_run=True),
        "bootstrap": world.runner.bootstrap,
        "heartbeat": world.runner.heartbeat.tick,
        "maintenance": world.runner.maintenance.tick,
        "leader": lambda: jobq.LeaseLeader(jobs).leads(),
        "self_heal": jobs.self_heal,
    }


def verbs(world: World) -> list[Callable[[], object]]:
    """Return what may refuse the row that was spoiled, by a typed error, and nothing else."""
    jobs = world.jobs
    return [
        *(lambda number=number: jobs.get(number) for number in (QUEUED, FAILED, LEASED)),
        *(lambda number=number: jobs.explain(number) for number in (QUEUED, OTHER)),
        lambda: jobs.history(FAILED), lambda: jobs.log_lines(FAILED), lambda: jobs.children(PARENT),
        lambda: jobs.family_progress(PARENT), lambda: jobs.schedules.next_runs("paused"),
        lambda: jobs.enqueue("lies", {}, subject="book", delay="1h"),
        lambda: jobs.enqueue("lies", {}, dedupe_key="held"),
        lambda: jobs.schedules.add("due", every="1m", kind="lies", payload={}),
        lambda: jobs.schedules.run_now("paused"),
        lambda: jobs.labels.set("book", "language", "de"), lambda: jobs.labels.clear("book"),
        lambda: jobs.pause("nowhere"), lambda: jobs.pause(kind="nothing"), lambda: jobs.schedules.pause("never"),
        lambda: jobs.pause("default"), lambda: jobs.resume("default"),
        lambda: jobs.requeue([FAILED, CANCELLED]), lambda: jobs.cancel([QUEUED, LEASED, OTHER]),
        lambda: jobs.cancel(PARENT, children=True), lambda: jobs.reschedule(OTHER, delay=5),
        lambda: jobs.complete(world.lease, {"pad": "x" * 5_000}), lambda: jobs.retriage("book"),
        world.runner.drain, lambda: jobs.prune(older_than=0), jobs.prune, lambda: jobs.schedules.remove("due"),
    ]  # fmt: skip


def fires(world: World) -> set[str]:
    """Tick, and return which schedules fired."""
    return {one.schedule for one in world.runner.scheduler.tick() if one.created}


def runs(world: World) -> bool:
    """Run a job that was made just now, and what is better."""
    made = world.jobs.enqueue("works", {}, priority=1000)
    world.runner.drain(limit=2)
    return world.jobs.get(made.id).state == "succeeded"


def use(path: Path, lease: jobq.Lease, cell: Cell, ids: set[int]) -> None:
    """Do everything; the row of the cell may be left out, or refused, and no other."""
    with open_world(path, lease) as world:
        for step in listings(world).values():
            step()
        assert len(ids - {job.id for job in world.jobs.find(limit=None)}) <= (cell.table == "jobq_job")
        assert len(world.jobs.schedules.list()) == 3
        assert fires(world) >= {"due", "second"} or cell.table in {"jobq_schedule", "jobq_queue", "jobq_kind"}
        if cell.table == "jobq_schedule":
            assert len(world.jobs.find(kind="lies", limit=None, newer_than=1)) >= 1, "it kept another from firing"
        if (cell.table, cell.column) not in OBEYED:
            assert runs(world), "it kept another job from running"
        for verb in verbs(world):
            try:
                verb()
            except StoreError:
                raise
            except JobqError:
                continue
        for name, step in listings(world).items():
            if name != "bootstrap":
                step()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The prepared file."""
    return Tables(tmp_path_factory.mktemp("cells") / "original.db")


def chosen(tables: Tables, *, everything: bool) -> Iterator[Cell]:
    """Yield all cells, or what was found once and some others."""
    if everything:
        yield from tables.all()
        return
    # No claim got past it, and so none of what stood behind it.
    yield Cell("jobq_job", "finished_at", tables.head, "huge")
    # A request to cancel broke a CHECK, and so those of the jobs beside it were not recorded.
    yield Cell("jobq_job", "worker", LEASED - 1, "null")
    dice = random.Random(8)
    columns = [(table, column) for table, found in tables.columns.items() for column in found if table != "jobq_schema"]
    for table, column, odd in [*FOUND, *((*place, dice.choice(sorted(ODD))) for place in dice.sample(columns, 40))]:
        yield from dice.sample(rows := tables.rows(table, column, odd), min(1, len(rows)))


@pytest.mark.parametrize(
    "everything", [pytest.param(False, id="short"), pytest.param(True, id="long", marks=pytest.mark.storm)]
)
def test_an_odd_cell_harms_its_own_row_alone(
    tables: Tables, tmp_path: Path, errors: ErrorLog, everything: bool
) -> None:
    """Listings answer without it, the next job runs, the other schedules fire; what is refused is refused typed."""
    path, tried = tmp_path / "jobs.db", 0
    with jobq.open(tables.path, clock=FakeClock()) as jobs:
        ids = {job.id for job in jobs.find(limit=None)}
    for cell in chosen(tables, everything=everything):
        if not tables.spoil(path, cell):
            continue
        tried += 1
        try:
            use(path, tables.lease, cell, ids)
        except Exception as error:
            error.add_note(str(cell))
            raise
        errors.take()
    assert tried > 30


def test_a_row_that_cannot_be_read_is_left_out_with_a_line(
    tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of the log for each look, and a job that is asked for by its id is not found."""
    assert tables.spoil(tmp_path / "jobs.db", Cell("jobq_runner", "kinds", 0, "half-json"))
    with open_world(tmp_path / "jobs.db", tables.lease) as world:
        caplog.clear()
        assert world.jobs.store.runners() == []
        assert [record.getMessage().split(" ")[0] for record in caplog.records] == ["jobq.row.skipped"]

    assert tables.spoil(tmp_path / "jobs.db", Cell("jobq_job", "actor", 0, "latin"))
    with open_world(tmp_path / "jobs.db", tables.lease) as world, pytest.raises(JobNotFound):
        world.jobs.get(QUEUED)
