"""Breaks the code in chosen places, one at a time, and shows that the tests go red for each.

``python -m tests.mutations`` works on a copy and is no part of the suite; ``tests/test_mutations.py`` sees to it that
each place is still there, and ``tests/README.rst`` has the table of a whole run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: What a broken place is measured against, unless it names tests of its own.
CORE = ("tests/sim/test_model.py", "tests/store", "tests/sim/test_simulation.py")


class Break(NamedTuple):
    """One change that a careless hand could make: a text that stands once in a file, and what takes its place."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = CORE

    def apply(self, root: Path) -> None:
        """Carry it out in a copy of the project."""
        path = root / self.file
        text = path.read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"{self.what}: the place is not there, or not once, in {self.file}")
        path.write_text(text.replace(self.before, self.after))


SETTLE = "jobq/store/sqlite/settle.py"
EFFECTS = "jobq/model/effects.py"
BREAKS = (
    Break("fence dropped: a settle ignores the token", SETTLE, "found[0].token == token", "found[0].token"),
    Break("fence dropped: a success ignores the token", SETTLE, "AND token = ?\nRETURNING",
          "AND token <> ? || 'x'\nRETURNING"),
    Break(
        "fence dropped: a beat ignores the token",
        "jobq/store/sqlite/lease.py",
        "AND state = 'running' AND token = lease.value ->> 1",
        "AND state = 'running'",
    ),
    Break(
        "dedupe index not unique",
        "jobq/store/sqlite/migrations/0001_initial.sql",
        "CREATE UNIQUE INDEX jobq_job_dedupe",
        "CREATE INDEX jobq_job_dedupe",
        ("tests/store/sqlite",),
    ),
    Break(
        "a held key is not looked up",
        "jobq/store/sqlite/enqueue.py",
        "else holder(conn, one[_KEY])\n        if held is not None:",
        "else holder(conn, one[_KEY])\n        if held is None:",
    ),
    Break("cap ignored by the claim", "jobq/store/sqlite/claim.py", "self._room[kind] -= 1", "pass"),
    Break(
        "cap not counted for a new claim",
        "jobq/store/sqlite/lanes.py",
        "WHERE state = 'running' AND kind = asked.key))",
        "WHERE state = 'running' AND kind = ''))",
    ),
    Break("n not restored on deferral and release", EFFECTS, "max(0, facts.attempts - 1)", "facts.attempts"),
    Break("a cancel that was asked wins over success too", "jobq/model/state_machine.py",
          "Rule(RUNNING, Trigger.SUCCESS, effects.always, SUCCEEDED, effects.succeed)",
          "Rule(RUNNING, Trigger.SUCCESS, effects.cancel_asked, CANCELLED, effects.finish_cancelled),\n"
          "    Rule(RUNNING, Trigger.SUCCESS, effects.always, SUCCEEDED, effects.succeed)", ("tests/model",)),
    Break("an expired lease without attempts left is tried again", "jobq/model/state_machine.py",
          "Rule(RUNNING, Trigger.EXPIRY, effects.attempts_left, QUEUED, effects.reclaim)",
          "Rule(RUNNING, Trigger.EXPIRY, effects.always, QUEUED, effects.reclaim)"),
    Break("retry counted from the old due time", EFFECTS, "moment.now + min(delay, MAX - moment.now)", "moment.now"),
    Break("order: priority ascending", "jobq/store/sqlite/candidates.py", "return -row[1], row[2], row[0]",
          "return row[1], row[2], row[0]"),
    Break("paused queues are claimed from", "jobq/store/sqlite/lanes.py",
          "JOIN jobq_queue AS queue ON queue.name = wanted.value AND queue.paused_at IS NULL",
          "JOIN jobq_queue AS queue ON queue.name = wanted.value"),
    Break("IMMEDIATE to DEFERRED", "jobq/store/sqlite/handle.py", '"BEGIN IMMEDIATE"', '"BEGIN DEFERRED"',
          ("tests/store", "tests/crash/test_processes.py")),
    Break("event before commit", "jobq/store/sqlite/writer.py", "if group.committed and not group.fed:",
          "if not group.fed:", ("tests/store", "tests/crash/test_failing_files.py")),
    Break("now read before the lock", "jobq/store/sqlite/store.py",
          "        return self._write(lambda conn, changes: enqueue.enqueue(conn, changes, drafts, now=self._now()))",
          "        now = self._now()\n"
          "        return self._write(lambda conn, changes: enqueue.enqueue(conn, changes, drafts, now=now))",
          ("tests/store",)),
    Break("acknowledged work is not synced", "jobq/store/sqlite/transactions.py",
          "durability is not Durability.RELAXED", "durability is Durability.FULL",
          ("tests/store/sqlite", "tests/crash/test_power_cut.py")),
    Break("heartbeat stopped first", "jobq/runtime/crew.py", "        self._overseer.stopping = self.shutdown\n",
          "        self._services[1].stop()\n        self._overseer.stopping = self.shutdown\n", ("tests/runtime",)),
    Break("a stop voids nothing", "jobq/runtime/shutdown.py", "        self._void()\n", "", ("tests/runtime",)),
    Break("the sleep guard never holds", "jobq/runtime/sleepguard.py",
          "        self._hold_until = self._clock.monotonic() + self._lease\n", "",
          ("tests/runtime", "tests/sim/test_simulation.py")),
    Break("a slot is enqueued without its guard", "jobq/store/sqlite/slots.py",
          "return conn.execute(GUARD, (info.name, rows.to_ms(slot.at), entry.name)).fetchone() is not None",
          "return False", ("tests/store", "tests/test_schedules.py")),
    Break("next_run is not advanced", "jobq/store/sqlite/ticks.py",
          "        conn.execute(ADVANCE, (rows.to_ms(planned.due.next_run), rows.to_ms(planned.anchor), last, name))\n",
          "        last\n", ("tests/store",)),
    Break("secrets are cut first and redacted afterwards", "jobq/model/redact.py",
          "redacted = redactor.redact(window)", "redacted = redactor.redact(window[:500])", ("tests/model",)),
    Break("a rolled back block tells its events", "jobq/blocks.py",
          "for call in self.after_commit if self.committed else ():", "for call in self.after_commit:",
          ("tests/test_transactions.py",)),
    Break("a disk that was read-only is never written again", "jobq/store/sqlite/group.py",
          "self.read_only = self.spoiled = True", "self.read_only = True", ("tests/crash/test_failing_files.py",)),
    Break("a row that cannot be read ends a listing", "jobq/store/sqlite/lookup.py",
          "except (ValueError, TypeError, RecursionError) as error:", "except ZeroDivisionError as error:",
          ("tests/crash/test_odd_cells.py",)),
    Break("a listing reads payloads", "jobq/store/sqlite/lookup.py", 'FIND = f"SELECT {rows.INFO_COLUMNS}',
          'FIND = f"SELECT {rows.JOB_COLUMNS}', ("tests/store/sqlite/test_listing_bytes.py",)),
    Break("a removed -wal file is not noticed", "jobq/store/sqlite/aside.py",
          "        foreign.check_beside(self._file.path)\n", "", ("tests/store/sqlite/test_removed_beside.py",)),
    Break("a claim leaves a finish on its row", "jobq/store/sqlite/claim.py",
          "progress = NULL, finished_at = NULL", "progress = NULL", ("tests/crash/test_odd_cells.py",)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out every break, or those whose names hold a word; return 1 if one of them stayed green."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only the breaks whose names hold this")
    chosen = [one for one in BREAKS if parser.parse_args(arguments).word in one.what]
    green = 0
    for number, one in enumerate(chosen, 1):
        said = measure(one)
        green += said is None
        print(f"{number:2}/{len(chosen)}  {one.what}: {'NOT NOTICED' if said is None else said}", flush=True)  # noqa: T201
    return 1 if green else 0


def measure(one: Break) -> str | None:
    """Run the tests against a broken copy; return the first one that went red, or None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "jobq"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info"))
        one.apply(copy)
        for tests in one.tests:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-x", "-n0", "-rfE", "--no-header", "-p", "no:cacheprovider", tests],
                cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode not in (0, 5):
                red = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return red[0].split(" - ")[0] if red else f"pytest ended with {done.returncode}"
    return None


if __name__ == "__main__":
    sys.exit(main())
