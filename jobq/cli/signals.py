"""SIGTERM and SIGINT for commands that run jobs: the first stops gracefully, the second cancels, the third exits."""

import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Counts the stop signals of this process while it is entered; the main thread waits on it.

    The handler writes to a plain attribute and to a pipe and does nothing else: setting an event inside a signal
    handler takes a lock that the interrupted thread may hold, and hangs once in some hundred times.
    """

    def __init__(self) -> None:
        self.count = 0
        #: The last one that came; its number decides the exit code of the third.
        self.number = 0
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before: dict[int, Any] = {}
        # Held by threads alone, never by the signal handler.
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> "Signals":
        """Install the handlers; only the main thread can."""
        self._before = {number: signal.signal(number, self._came) for number in _STOP_SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """Put back the handlers that were there before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        with self._lock:
            self._closed = True
            os.close(self._reader)
            os.close(self._writer)

    def wait(self, seconds: float) -> bool:
        """Wait until a signal comes or the time is over; return whether one came during this wait or just before."""
        ready, _, _ = select.select([self._reader], [], [], seconds)
        if ready:
            os.read(self._reader, 512)
        return bool(ready)

    def wake(self) -> None:
        """End a wait of the main thread from another thread; does nothing once it has been left."""
        with self._lock:
            # A closed descriptor's number may be a database's by now.
            if not self._closed:
                self._ring()

    def _came(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.number = number
        self._ring()

    def _ring(self) -> None:
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            # The pipe is full, so the reader wakes anyway.
            return


def stop_gracefully(
    signals: Signals, stop: Callable[[], object], cancel: Callable[[], object], say: Callable[[str], None]
) -> bool:
    """Run ``stop`` to its end on a thread of its own, so that further signals are heard.

    The answer says whether it was cut short. The second signal in all calls ``cancel``; the third ends the process at
    once with 128 + its number, leaving the leases of running jobs to expire.
    """
    thread = _start(stop, signals)
    cancelled = False
    while thread.is_alive():
        signals.wait(0.5)
        if signals.count >= 2 and not cancelled:
            cancelled = True
            say("asked again: cancelling what runs; once more exits at once")
            # On a thread as well: it returns when everything has stopped, and the third signal must be heard.
            _start(cancel, signals)
        if signals.count >= 3:
            os._exit(128 + signals.number)
    return cancelled


def _start(stop: Callable[[], object], signals: Signals) -> threading.Thread:
    def run() -> None:
        try:
            stop()
        finally:
            signals.wake()

    thread = threading.Thread(target=run, name="jobq-stop", daemon=True)
    thread.start()
    return thread
