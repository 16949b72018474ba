"""One run of a simulated world: a seed decides who goes next, when time passes, and who dies.

There is no thread: every process is made of the real parts of a runner, driven one transaction at a time. After each
step the ledger compares the rows with everything that must hold.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jobq
from tests.sim import actors
from tests.sim.world import KINDS, Actor, Process, World

#: Living processes of a world, at most.
CROWD = 3
#: Seconds of a leap of the clock: a machine that slept, and clocks that were set.
LEAPS = (2 * 3600.0, 45.0, -12 * 3600.0, -5.0)

Told = Callable[[str], None]


class Simulation:
    """A world and its fate; ``tell`` gets a line for each step."""

    def __init__(self, path: Path, seed: int, *, tell: Told = lambda line: None) -> None:
        self.dice = random.Random(seed)
        self.world = World(path, self.dice)
        self._tell = tell
        self._born = 0
        self._leapt_at = 0.0
        self._others: dict[str, Actor] = {
            "producer": actors.producer(self.world),
            "second producer": actors.producer(self.world),
            "canceller": actors.canceller(self.world),
            "requeuer": actors.requeuer(self.world),
            "pauser": actors.pauser(self.world),
            "pruner": actors.pruner(self.world),
            "stager": actors.stager(self.world),
            "relay": actors.relay(self.world),
            "second relay": actors.relay(self.world),
            "outsider": actors.outsider(self.world, "outsider"),
        }
        self.world.jobs.schedules.add("minutely", every="1m", kind="plain", payload={})
        self.world.jobs.schedules.add("all", every="7m", kind="aside", payload={}, catch_up="all", max_catch_up=3)

    def run(self, steps: int) -> Counter[str]:
        """Take so many steps, then let everything come to its end; return how often which place was reached."""
        try:
            for _ in range(steps):
                self._step()
            self._finish()
        finally:
            self.world.close()
        return self.world.reached

    def _step(self) -> None:
        before = self._holdings()
        chance = self.dice.random()
        if chance < 0.16:
            self._let_time_pass()
        elif chance < 0.17:
            self._leap()
        elif chance < 0.19:
            self._disturb()
        elif len(self.world.processes) < 2 or (chance < 0.2 and len(self.world.processes) < CROWD):
            self._begin_process()
        else:
            self._act()
        self.world.check()
        self._check_nobody_was_robbed(before)

    def _act(self) -> None:
        able = {**self._others}
        for process in self.world.processes:
            if not process.paused_for:
                able |= {f"{process.name} {name}": actor for name, actor in process.actors.items()}
        name = self.dice.choice(list(able))
        said = next(able[name])
        self._tell(f"{name}, then {said}")

    def _let_time_pass(self) -> None:
        seconds = self.dice.choice((0.5, 2.0, 5.0, 10.0, 15.0))
        self._tell(f"{seconds} s pass")
        self.world.clock.advance(seconds)
        for process in self.world.processes:
            if process.paused_for:
                process.paused_for -= 1
                if not process.paused_for:
                    self._tell(f"{process.name} goes on")
            elif process.must_beat and self.dice.random() < 0.9:
                process.beat()

    def _leap(self) -> None:
        # A lease is granted once more for one sleep, not for a second one before its owner could beat.
        if any(process.beaten <= self._leapt_at for process in self.world.processes):
            return
        self._leapt_at = self.world.clock.monotonic()
        seconds = self.dice.choice(LEAPS)
        self._tell(f"the clock leaps by {seconds} s")
        self.world.reached["the clock leapt"] += 1
        self.world.clock.jump(seconds)

    def _disturb(self) -> None:
        able = [process for process in self.world.processes if not process.paused_for]
        if not able:
            return
        process = self.dice.choice(able)
        if self.dice.random() < 0.5:
            self._tell(f"{process.name} is killed")
            self.world.reached["a process was killed"] += 1
            self.world.processes.remove(process)
            process.die()
        else:
            process.paused_for = self.dice.choice((2, 10, 20))
            self._tell(f"{process.name} is stopped")

    def _begin_process(self) -> None:
        self._born += 1
        process = Process(self.world, self._born)
        for number in (1, 2):
            process.actors[f"worker {number}"] = actors.worker(process, f"{process.name}-{number}")
        process.actors["maintenance"] = actors.maintenance(process)
        process.actors["scheduler"] = actors.scheduler(process)
        self.world.processes.append(process)
        self._tell(f"{process.name} begins")

    def _holdings(self) -> dict[str, set[str]]:
        """Return the tokens of the processes that are well, as far as the rows know them."""
        valid = {row.token for row in self.world.ledger.rows.values() if row.token}
        return {one.name: one.tokens() & valid for one in self.world.processes if one.is_well}

    def _check_nobody_was_robbed(self, before: dict[str, set[str]]) -> None:
        """(4) A worker that beats is never reclaimed."""
        valid = {row.token for row in self.world.ledger.rows.values() if row.token}
        for process in self.world.processes:
            gone = (before.get(process.name, set()) & process.tokens()) - valid
            assert not gone, f"(4) {process.name} beats, and a lease of it was taken away"

    def _finish(self) -> None:
        """(2) Every job ends."""
        world = self.world
        for process in world.processes:
            process.die()
        world.processes.clear()
        world.outbox.relay.catch_up()
        world.check()
        assert not world.ledger.unpublished(), "a staged job was never published"
        for schedule in world.jobs.schedules.list():
            world.jobs.schedules.remove(schedule.name)
        for queue in set(KINDS.values()):
            world.jobs.resume(queue)
        process = Process(world, self._born + 1)
        world.processes.append(process)
        jobq.Runner(process.jobs).drain(until="3d")
        left = [row for row in world.look().values() if row.live]
        assert not left, f"(2) jobs did not end: {left}"
