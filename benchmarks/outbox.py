"""What does an enqueue inside a host's transaction cost, and how fast is the relay, beside the bare rows alone?

``jobs.transaction()`` keeps the jobs in jobq's file; the outbox stages in a file of the host's, by the standard sqlite3
module. The floor of each is as many rows, as large, inserted by the same driver in one synced transaction. The relay's
floor is that for its hundred rows, once with each driver: it publishes in the one file and marks in the other.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import jobq
from benchmarks.report import Figure, Report

SIZES, ROUNDS, WARM_UP = (1, 10, 100), 60, 10
BATCH = 100
PAYLOAD = {"order": 7, "to": "ada@example.org"}
TABLE = "CREATE TABLE bare (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT UNIQUE, b TEXT, c TEXT, d INTEGER)"
INSERT = "INSERT INTO bare (a, b, c, d) VALUES (?, ?, ?, ?)"
#: As long as the text of a staged draft.
TEXT = "x" * 200


def run() -> Report:
    """Measure all of it, a round of each after the other, so that what the machine does meanwhile hits them alike."""
    with tempfile.TemporaryDirectory() as folder:
        figures, ratios = _measure(Path(folder))
    return Report(
        question=f"Rows per second, in synced transactions; medians of {ROUNDS} rounds",
        figures=figures,
        ratios=ratios,
    )


def _measure(folder: Path) -> tuple[list[Figure], list[tuple[str, float, str]]]:
    jobs = jobq.open(folder / "jobs.db")
    jobs.job(name="mail")(lambda payload: None)
    outbox = jobq.Outbox(jobs, connect=lambda: sqlite3.connect(folder / "shop.sqlite"))
    outbox.create_table()
    host = _synced(sqlite3.connect(folder / "shop.sqlite"))
    host.execute(TABLE)
    bare = _synced(apsw.Connection(str(folder / "bare.db")))
    bare.execute(TABLE)
    steps: dict[str, tuple[int, Callable[[], None]]] = {}
    for size in SIZES:
        steps[f"bare insert by apsw, {size} rows"] = size, lambda size=size: _bare_apsw(bare, size)  # type: ignore[misc]
        steps[f"jobs.transaction(), {size} jobs"] = size, lambda size=size: _transaction(jobs, size)  # type: ignore[misc]
        steps[f"bare insert by sqlite3, {size} rows"] = size, lambda size=size: _bare(host, size)  # type: ignore[misc]
        steps[f"outbox.joined(), {size} jobs"] = size, lambda size=size: _stage(outbox, host, size)  # type: ignore[misc]
    samples = _rounds(steps)
    while outbox.relay.catch_up():
        pass
    samples |= _relay(outbox, host, bare)
    host.close()
    bare.close()
    jobs.close()
    figures = [Figure(name=name, unit="rows/s", samples=found) for name, found in samples.items()]
    return figures, _ratios({figure.name: figure.median for figure in figures})


def _ratios(medians: dict[str, float]) -> list[tuple[str, float, str]]:
    found = []
    for size in SIZES:
        for verb, driver in (("jobs.transaction()", "apsw"), ("outbox.joined()", "sqlite3")):
            floor, rate = medians[f"bare insert by {driver}, {size} rows"], medians[f"{verb}, {size} jobs"]
            found.append((f"{verb} of {size} to bare rows", floor / rate))
    found.append(("relay to bare rows in both files", medians["bare rows in both files"] / medians["relay"]))
    return [(name, ratio, "times slower") for name, ratio in found]


def _rounds(steps: dict[str, tuple[int, Callable[[], None]]]) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(WARM_UP + ROUNDS):
        for name, (size, step) in steps.items():
            samples[name].append(_rate(size, step))
    return {name: found[WARM_UP:] for name, found in samples.items()}


def _relay(outbox: jobq.Outbox, host: sqlite3.Connection, bare: apsw.Connection) -> dict[str, list[float]]:
    def both() -> None:
        _bare_apsw(bare, BATCH)
        _bare(host, BATCH)

    samples: dict[str, list[float]] = {"bare rows in both files": [], "relay": []}
    for _ in range(WARM_UP + ROUNDS):
        _stage(outbox, host, BATCH)
        samples["bare rows in both files"].append(_rate(BATCH, both))
        samples["relay"].append(_rate(BATCH, lambda: _expect(outbox.relay.tick())))
    return {name: found[WARM_UP:] for name, found in samples.items()}


def _expect(published: int) -> None:
    assert published == BATCH


def _rate(size: int, step: Callable[[], None]) -> float:
    begin = time.perf_counter()
    step()
    return size / (time.perf_counter() - begin)


def _synced(connection: Any) -> Any:
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _rows(size: int) -> list[tuple[str, str, str, int]]:
    stamp = time.perf_counter_ns()
    return [(f"{stamp:032}{number}", "mail", TEXT, stamp) for number in range(size)]


def _bare_apsw(connection: apsw.Connection, size: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for row in _rows(size):
        connection.execute(INSERT, row)
    connection.execute("COMMIT")


def _bare(connection: sqlite3.Connection, size: int) -> None:
    with connection:
        for row in _rows(size):
            connection.execute(INSERT, row)


def _transaction(jobs: jobq.JobQueue, size: int) -> None:
    with jobs.transaction():
        for _ in range(size):
            jobs.enqueue("mail", PAYLOAD)


def _stage(outbox: jobq.Outbox, connection: sqlite3.Connection, size: int) -> None:
    with connection, outbox.joined(connection):
        for _ in range(size):
            outbox.jobs.enqueue("mail", PAYLOAD)
