"""What is left after the power failed at any instant: everything acknowledged, as far as the durability promises.

The levels are those of the section on durability in README.rst; ``relaxed`` promises no more than a sound file that
ends at some earlier commit.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import jobq
from jobq.testing import FakeClock
from tests.crash.powercut import FATES, Disk, Image

ROUNDS = 8
#: How many cuts each durability goes through.
LENGTHS = [pytest.param(90, id="short"), pytest.param(1_000, id="long", marks=pytest.mark.storm)]
ENDED_BY_WORKER = {"full": {"succeeded"}, "balanced": {"succeeded", "running", "queued"}}


class Fact(NamedTuple):
    """Something that the program was told has happened: a job in a state, or a row of its own."""

    what: str
    id: int
    state: str


class Cut(NamedTuple):
    """The disk at one instant, and what had been acknowledged by then."""

    image: Image
    facts: tuple[Fact, ...]


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk whose power can be cut."""
    made = Disk()
    yield made
    made.unregister()


def workload(path: Path, durability: str, facts: list[Fact]) -> None:
    """Enqueue, run, cancel, requeue, lease and write rows of its own; note each fact when its verb has returned."""
    with jobq.open(path, clock=FakeClock(), config=jobq.Config(durability=durability)) as jobs:

        @jobs.job
        def works(payload: dict) -> None:
            pass

        @jobs.job
        def carries(payload: dict, job: jobq.RunningJob) -> None:
            with job.transaction() as tx:
                tx.execute("INSERT INTO host (job) VALUES (?)", (job.id,))

        with jobs.transaction() as tx:
            tx.execute("CREATE TABLE host (job INTEGER)")
        facts.append(Fact("table", 0, ""))
        for number in range(ROUNDS):
            _round(jobs, facts, pad="x" * (100 + 900 * (number % 3)))
            jobs.store.checkpoint()


def _round(jobs: jobq.JobQueue, facts: list[Fact], pad: str) -> None:
    worked = [jobs.enqueue("works", {"pad": pad}).id, jobs.enqueue("works", {"pad": pad * 5}).id]
    facts.extend(Fact("enqueued", id, "queued") for id in worked)
    bulk = jobs.enqueue_many([jobq.NewJob("lies", {"n": n}, delay="1h") for n in range(5)])
    facts.extend(Fact("bulk", one.id, "queued") for one in bulk)
    jobs.cancel(bulk[0].id)
    facts.append(Fact("cancelled", bulk[0].id, "cancelled"))
    jobs.cancel(bulk[1].id)
    jobs.requeue(bulk[1].id)
    facts.append(Fact("requeued", bulk[1].id, "queued"))
    carried = jobs.enqueue("carries", {}).id
    jobq.Runner(jobs).drain()
    facts.append(Fact("carried", carried, "succeeded"))
    facts.extend(Fact("worked", id, "succeeded") for id in worked)
    leased = jobs.enqueue("outside", {"pad": pad}).id
    for lease in jobs.lease(kinds=["outside"], worker="agent"):
        jobs.complete(lease, {"ok": True})
    facts.append(Fact("completed", leased, "succeeded"))
    with jobs.transaction() as tx:
        made = jobs.enqueue("lies", {}, delay="1h").id
        tx.execute("INSERT INTO host (job) VALUES (?)", (made,))
    facts.append(Fact("hosted", made, "queued"))


def run_and_cut(disk: Disk, path: Path, durability: str, count: int, dice: random.Random) -> list[Cut]:
    """Run the workload once on the disk, and cut the power at that many of its steps."""
    facts: list[Fact] = []
    workload(path.with_name("rehearsal.db"), durability, [])
    steps, disk.steps = disk.steps, 0
    moments = Counter(dice.randrange(1, steps + 1) for _ in range(count))
    cuts: list[Cut] = []

    def cut() -> None:
        image = None
        for _ in range(moments[disk.steps]):
            image = image or disk.image().of(path)
            cuts.append(Cut(image, tuple(facts)))

    disk.on_step = cut
    workload(path, durability, facts)
    disk.on_step = lambda: None
    return cuts


class Left(NamedTuple):
    """What a new process finds: the state of each job, and the jobs that the host's own rows name."""

    states: dict[int, str]
    hosted: set[int]
    table: bool


def look(folder: Path) -> Left:
    """Open what is left as a new process would, check the file, and read it."""
    with jobq.open(folder / "jobs.db", clock=FakeClock()) as jobs:
        states = {job.id: str(job.state) for job in jobs.find(limit=None)}
        with jobs.read() as snapshot:
            table = bool(snapshot.execute("SELECT 1 FROM sqlite_schema WHERE name = 'host'"))
            hosted = {row[0] for row in snapshot.execute("SELECT job FROM host")} if table else set()
        jobs.enqueue("lies", {})
    connection = apsw.Connection(str(folder / "jobs.db"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return Left(states, hosted, table)


def lost(facts: tuple[Fact, ...], left: Left, durability: str) -> list[Fact]:
    """Return the facts that are no more, in the order in which they were acknowledged."""
    last = {fact.id: fact for fact in facts}
    missing = []
    for fact in facts:
        if fact.what == "table":
            gone = not left.table
        elif fact.what == "worked":
            gone = left.states.get(fact.id) not in ENDED_BY_WORKER.get(durability, {"succeeded"})
        elif last[fact.id] is fact:
            gone = left.states.get(fact.id) != fact.state and not _went_on(fact, left)
        else:
            gone = fact.id not in left.states
        if gone or (fact.what in {"hosted", "carried"} and fact.id not in left.hosted):
            missing.append(fact)
    return missing


def _went_on(fact: Fact, left: Left) -> bool:
    """Whether a job is further than what was acknowledged of it: a commit under way was not yet told."""
    return fact.state == "queued" and left.states.get(fact.id) in {"running", "succeeded", "cancelled"}


class Loss(NamedTuple):
    """What one cut lost of what had been acknowledged."""

    facts: tuple[Fact, ...]
    lost: list[Fact]

    def holes(self) -> list[Fact]:
        """Return what was acknowledged after a lost fact and is there all the same."""
        if not self.lost:
            return []
        last = {fact.id: fact for fact in self.facts}
        later = self.facts[self.facts.index(self.lost[0]) :]
        # A requeued job that is lost looks as it did before it was cancelled.
        told = [fact for fact in later if last[fact.id] is fact and fact.what != "requeued"]
        return [fact for fact in told if fact not in self.lost]


def cut_all(disk: Disk, tmp_path: Path, durability: str, count: int, seed: int) -> list[Loss]:
    """Cut the power ``count`` times; return what each cut lost."""
    dice = random.Random(seed)
    cuts = run_and_cut(disk, tmp_path / "jobs.db", durability, count, dice)
    assert len(cuts) == count
    losses = []
    disk.unregister()
    for number, cut in enumerate(cuts):
        folder = tmp_path / str(number)
        folder.mkdir()
        cut.image.write(folder, FATES[number % len(FATES)], dice)
        left = look(folder)
        assert left.hosted <= set(left.states), "a row of the host is there, and its job is not"
        losses.append(Loss(cut.facts, lost(cut.facts, left, durability)))
        for file in folder.iterdir():
            file.unlink()
    return losses


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("durability", ["full", "balanced"])
def test_a_power_cut_loses_nothing_that_was_acknowledged(
    disk: Disk, tmp_path: Path, durability: str, count: int
) -> None:
    """With ``full`` and ``balanced`` every acknowledged verb stands; only a worker's settle may fall back."""
    assert [loss.lost for loss in cut_all(disk, tmp_path, durability, count, seed=1) if loss.lost] == []


@pytest.mark.parametrize("count", LENGTHS)
def test_relaxed_may_lose_the_last_moments_and_nothing_else(disk: Disk, tmp_path: Path, count: int) -> None:
    """With ``relaxed`` the file is sound and ends at an earlier commit: what it lost is the newest, without holes."""
    losses = cut_all(disk, tmp_path, "relaxed", count, seed=2)

    assert any(loss.lost for loss in losses), "the instrument does not see what was not synced"
    for loss in losses:
        assert not loss.holes()
