"""A program that writes lines from several threads: ``python -m tests.observe.writer NAME SETTINGS``.

With a database they are events on its bus, which the event log writes.
"""

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import attrs

import jobq
from jobq.observe.rotating import RotatedFile


@attrs.frozen(kw_only=True)
class Written(jobq.Event):
    """One line."""

    writer: str
    thread: int
    number: int
    pad: str


Counts = Callable[[], list[int]]


@contextlib.contextmanager
def as_lines(told: dict[str, Any]) -> Iterator[tuple[Callable[[Written], object], Counts]]:
    """Write to a file."""
    file = RotatedFile(told["path"], max_bytes=told["max_bytes"], backups=told["backups"])
    yield lambda event: file.append([json.dumps(attrs.asdict(event))]), lambda: [file.written, file.lost, file.dropped]
    file.close()


@contextlib.contextmanager
def as_events(told: dict[str, Any]) -> Iterator[tuple[Callable[[Written], object], Counts]]:
    """Publish on a bus whose events are logged to a file."""
    config = jobq.Config(
        events_file=told["path"], file_max_bytes=told["max_bytes"], file_backups=told["backups"]
    )
    with jobq.open(told["database"], config=config) as jobs:
        log = jobs.event_log
        assert log is not None
        yield jobs.bus.publish, lambda: [log.written, log.lost, log.dropped]


def say(word: object) -> None:
    """Write one line of JSON to standard output."""
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


def main(name: str, settings: str) -> None:
    """Write so many lines from each thread, or without end; then say how many were written, lost and dropped."""
    told = json.loads(settings)
    with (as_events if told.get("database") else as_lines)(told) as (write_one, counts):

        def write(thread: int) -> None:
            for number in range(told["lines"]) if told["lines"] else count():
                if number == 50:
                    say("busy")
                write_one(Written(writer=name, thread=thread, number=number, pad="x" * (number % 90)))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(told["threads"])]
        say("ready")
        sys.stdin.readline()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    say(counts())


if __name__ == "__main__":
    main(*sys.argv[1:])
