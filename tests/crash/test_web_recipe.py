"""The README's recipe with Flask, SQLAlchemy and an outbox, as it stands there, on real servers that are killed."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jobq

ROOT = Path(__file__).resolve().parents[2]
REQUESTS, CLIENTS = 240, 8
#: No test waits longer for another process, in seconds.
PATIENCE = 60.0
SERVERS = {
    "waitress": ["-m", "waitress", "--listen=127.0.0.1:0", "--threads=8", "store:app"],
    "gunicorn": ["-m", "gunicorn", "--preload", "--workers=2", "--threads=4", "--bind=127.0.0.1:0", "store:app"],
}


def recipe() -> str:
    """Return the program that the README prints."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    found = re.search(r"   :name: store\.py\n\n((?:   .*\n|\n)+)", text)
    assert found is not None
    return re.sub(r"^   ", "", found[1], flags=re.MULTILINE)


class Server:
    """One web server in a process group of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        log = folder / f"{name}-{os.urandom(4).hex()}.log"
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, *SERVERS[name]], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.port = self._find_port(log)

    def _find_port(self, log: Path) -> int:
        pause, until = threading.Event(), time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())
            if found is not None:
                return int(found[1])
            pause.wait(0.05)
        raise AssertionError(f"the server did not start: {log.read_text()}")

    def order(self, number: int, *, declined: bool) -> int | None:
        """Send one order; return the status, None where the server died meanwhile."""
        form = urllib.parse.urlencode({"card": "declined"} if declined else {}).encode()
        try:
            url = f"http://127.0.0.1:{self.port}/orders/{number}"
            with urllib.request.urlopen(url, data=form, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return None

    def kill(self) -> None:
        """Kill it and its children as ``kill -9`` does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that publishes and works, as the README starts it."""
    (tmp_path / "store.py").write_text(recipe())
    command = [sys.executable, "-m", "jobq", "work", "-A", "store:jobs", "--outbox", "store:outbox"]
    with (tmp_path / "worker.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        yield process
        process.kill()
        process.wait(PATIENCE)


def is_declined(number: int) -> bool:
    """Whether the card of an order is declined: every third."""
    return number % 3 == 0


def send_orders(name: str, folder: Path) -> Counter[int | None]:
    """Send all orders from several threads, with the server killed and started again half way; count the answers."""
    answers: Counter[int | None] = Counter()
    half = REQUESTS // 2
    for numbers, killed in ((range(1, half + 1), True), (range(half + 1, REQUESTS + 1), False)):
        server = Server(name, folder)
        near_the_end = numbers[len(numbers) * 3 // 4]

        def send(number: int, server: Server = server, last: int | None = near_the_end if killed else None) -> None:
            if number == last:
                server.kill()
            answers[server.order(number, declined=is_declined(number))] += 1

        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(send, numbers))
        server.kill()
    return answers


@pytest.mark.parametrize("name", SERVERS)
def test_b59_jobs_are_the_committed_orders(name: str, worker: subprocess.Popen[str], tmp_path: Path) -> None:
    """Of 240 orders a third is rolled back and a server is killed: each committed order has one job, and no other."""
    answers = send_orders(name, tmp_path)
    assert set(answers) == {201, 422, None}, answers
    assert answers[201] > REQUESTS // 3
    assert answers[422] > REQUESTS // 6
    assert answers[None], "the kill met no request"
    assert set(answers) == {201, 422, None}

    with contextlib.closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        orders = sorted(number for (number,) in connection.execute("SELECT number FROM orders"))
    assert len(orders) >= answers[201]
    assert not any(map(is_declined, orders))
    with jobq.open(tmp_path / "jobs.db") as jobs:
        for order in range(len(orders)):
            jobs_made = jobs.find(kind="send_receipt", limit=None)
            if len(jobs_made) >= len(orders):
                break
            threading.Event().wait(0.1 + order / 1_000)
        for job in jobs_made:
            jobs.wait(job.id, timeout=PATIENCE)
        assert sorted(jobs.get(job.id).payload["order"] for job in jobs_made) == orders
    assert worker.poll() is None
    said = Counter(re.findall(r"receipt for order (\d+)", (tmp_path / "worker.log").read_text()))
    assert said == Counter(map(str, orders))
