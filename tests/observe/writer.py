"""A program that writes lines from several threads: ``python -m tests.observe.writer NAME SETTINGS``."""

import json
import sys
import threading
from itertools import count

from jobq.observe.rotating import RotatedFile


def say(word: object) -> None:
    """Write one line of JSON to standard output."""
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


def main(name: str, settings: str) -> None:
    """Write so many lines from each thread, or without end; then say how many were written, lost and dropped."""
    told = json.loads(settings)
    file = RotatedFile(told["path"], max_bytes=told["max_bytes"], backups=told["backups"])

    def write(thread: int) -> None:
        for number in range(told["lines"]) if told["lines"] else count():
            if number == 50:
                say("busy")
            file.append([json.dumps({"writer": name, "thread": thread, "number": number, "pad": "x" * (number % 90)})])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(told["threads"])]
    say("ready")
    sys.stdin.readline()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say([file.written, file.lost, file.dropped])


if __name__ == "__main__":
    main(*sys.argv[1:])
