"""A progress bar: rich's on a terminal that has it, a line each second elsewhere, JSON lines for programs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from jobq.cli.output import colored, note, say_json


class Bar(Protocol):
    """Shows how far something is."""

    def update(self, done: int, total: int, stage: str) -> None:
        """Show it, and what is being done; to be called several times a second."""

    def close(self) -> None:
        """Show the last state and let go of the terminal."""


def make_bar(*, json: bool, unit: str) -> Bar:
    """Return the bar that fits where the output goes; ``unit`` says what is counted."""
    if json:
        return LineBar(unit, as_json=True)
    if colored(sys.stderr):
        try:
            return RichBar()
        except ImportError:
            return LineBar(unit)
    return LineBar(unit)


@contextmanager
def following(stage: str, *, unit: str, total: int, json: bool) -> Iterator[Callable[[int], object] | None]:
    """Give what a verb calls with the number that is done so far: it shows a bar once there is more to come.

    With ``json`` it is None, for the answer is to be the whole output.
    """
    bars: list[Bar] = []

    def update(done: int) -> None:
        if done < total and not bars:
            bars.append(make_bar(json=False, unit=unit))
        for bar in bars:
            bar.update(done, max(done, total), stage)

    try:
        yield None if json else update
    finally:
        for bar in bars:
            bar.close()


class LineBar:
    """Writes a line at most each second: to standard error for people, to standard output as JSON."""

    def __init__(self, unit: str, *, as_json: bool = False) -> None:
        self._unit = unit
        self._json = as_json
        self._due = time.monotonic() + 1.0
        self._state: tuple[int, int, str] | None = None
        self._told: tuple[int, int, str] | None = None

    def update(self, done: int, total: int, stage: str) -> None:
        """Remember the state, and write it when a second has passed."""
        self._state = (done, total, stage)
        if time.monotonic() >= self._due:
            self._tell()

    def close(self) -> None:
        """Write the last state unless it was written already."""
        if self._state != self._told:
            self._tell()

    def _tell(self) -> None:
        self._due = time.monotonic() + 1.0
        self._told = self._state
        if self._state is None:
            return
        done, total, stage = self._state
        if self._json:
            say_json({"event": "progress", "stage": stage, "done": done, "total": total}, line=True)
        else:
            note(f"{stage}: {done:,} of {total:,} {self._unit}")


class RichBar:
    """Rich's bar on standard error; raises ImportError where rich is not installed."""

    def __init__(self) -> None:
        from rich.console import Console  # optional extra
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns: tuple[Any, ...] = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=False)
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def update(self, done: int, total: int, stage: str) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=max(total, 1), description=stage)

    def close(self) -> None:
        """Leave the bar as it stands and show the cursor again."""
        self._progress.stop()
