"""A simulated world: processes that share a file and a clock, and what has happened in it."""

import random
from collections import Counter
from collections.abc import Generator
from itertools import count
from pathlib import Path

import jobq
from jobq.model.events import JobStateChanged
from jobq.model.runner import RunnerRow
from jobq.runtime.parts import Parts
from jobq.testing import FakeClock, MemoryDatabase
from tests.sim.ledger import Ledger
from tests.sim.rows import Glass, Row, Rows

#: Seconds.
LEASE = 60.0
CAPS = {"capped": 2}
#: Each kind, with the queue of its own.
KINDS = {"plain": "default", "capped": "default", "aside": "side"}
CONFIG = jobq.Config(lease=LEASE, durability="relaxed")

#: An actor yields before each transaction, and says what it is about to do.
Actor = Generator[str, None, None]


def handlers() -> jobq.Handlers:
    """Return handlers for the kinds; in a simulation the actors say how the runs end, and these do nothing."""
    made = jobq.Handlers()
    retry = jobq.RetryPolicy(base=5, maximum=60, jitter=0)
    for kind, queue in KINDS.items():

        @made.job(name=kind, queue=queue, concurrency=CAPS.get(kind), max_attempts=3, retry=retry)
        def nothing(payload: dict) -> None:
            pass

    return made


class World:
    """The file, the clock, the dice, the ledger, and how often the interesting places were reached."""

    def __init__(self, path: Path, dice: random.Random) -> None:
        self.dice = dice
        self.clock = FakeClock()
        self.reached: Counter[str] = Counter()
        self.ledger = Ledger(CAPS)
        #: A process that only produces and administers.
        self.jobs = jobq.open(path, clock=self.clock, config=CONFIG)
        self.jobs.bus.subscribe(JobStateChanged, self.ledger.hear)
        #: A database of the program's own, and the outbox in it.
        self.host = MemoryDatabase()
        self.outbox = jobq.Outbox(self.jobs, connect=self.host.connect)
        self.numbers = count(1)
        self._glass = Glass(self.jobs.path)
        self.processes: list[Process] = []
        self.paused_queues: set[str] = set()

    @property
    def now_ms(self) -> int:
        """The wall time as rows have it."""
        return round(self.clock.now().timestamp() * 1000)

    def check(self) -> None:
        """Compare the rows with everything that must hold."""
        self.ledger.check(self.look())

    def look(self) -> Rows:
        """Return the rows as they are now."""
        return self._glass.look()

    def some_id(self) -> int | None:
        """Return the id of some job."""
        return self.dice.choice(sorted(self.ledger.rows)) if self.ledger.rows else None

    def claimable(self) -> list[Row]:
        """Return what a claim may take, best first: (8) priority, then due time, then id."""
        rows = self.ledger.rows.values()
        running = Counter(row.kind for row in rows if row.state == "running")
        open_kinds = {kind for kind in KINDS if running[kind] < CAPS.get(kind, 1_000)}
        found = [
            row
            for row in rows
            if row.state == "queued"
            and row.kind in open_kinds
            and row.queue not in self.paused_queues
            and row.run_at <= self.now_ms
        ]
        return sorted(found, key=lambda row: (-row.priority, row.run_at, row.id))

    def is_capped(self) -> bool:
        """Whether a due job waits for nothing but the cap of its kind."""
        rows = self.ledger.rows.values()
        running = Counter(row.kind for row in rows if row.state == "running")
        waiting = {row.kind for row in rows if row.state == "queued" and row.run_at <= self.now_ms}
        return any(running[kind] == cap and kind in waiting for kind, cap in CAPS.items())

    def has_expired(self) -> bool:
        """Whether a lease has ended and nobody took it back yet."""
        return any(row.lease_until is not None and row.lease_until <= self.now_ms for row in self.ledger.rows.values())

    def close(self) -> None:
        """Close everything."""
        self._glass.close()
        for process in self.processes:
            process.jobs.close()
        self.jobs.close()


class Process:
    """One process with a runner: the real parts of it, without their threads."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"process-{number}"
        self.jobs = jobq.open(world.jobs.path, clock=world.clock, config=CONFIG, handlers=handlers())
        self._started_at = world.clock.now()
        self.parts = Parts(
            self.jobs, delegates=None, around=None, describe=self._describe, on_fatal=lambda: None
        )
        self.runs = self.parts.runs((Exception,))
        self.actors: dict[str, Actor] = {}
        #: In steps of the simulation; a paused process does nothing, and may come back as a zombie.
        self.paused_for = 0
        #: The monotonic time of its last beat.
        self.beaten = world.clock.monotonic()
        self.parts.bootstrap()
        self.beat()

    @property
    def is_well(self) -> bool:
        """Whether it beats as it should, so that none of its leases may be taken back."""
        return not self.paused_for and self.world.clock.monotonic() - self.beaten < LEASE / 2

    @property
    def must_beat(self) -> bool:
        """Whether a beat is due."""
        return self.world.clock.monotonic() - self.beaten >= LEASE / 3

    def beat(self) -> None:
        """Renew its leases."""
        self.parts.heartbeat.tick()
        self.beaten = self.world.clock.monotonic()

    def tokens(self) -> set[str]:
        """Return the tokens of the runs that it believes it holds."""
        keys = self.parts.held.keys()
        return {token for _, token in keys}

    def _describe(self) -> RunnerRow:
        return self.parts.describe(self.name, self._started_at, {})

    def die(self) -> None:
        """End as a killed process does: its leases stay on the rows."""
        self.actors.clear()
        keys = self.parts.held.keys()
        for key in keys:
            self.jobs.live.pop(key, None)
        self.parts.held.clear()
        self.jobs.close()
