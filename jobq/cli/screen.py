"""The live view of ``jobq watch``, drawn by rich; only where that is installed."""

from collections.abc import Mapping
from typing import Any

from jobq.cli.figures import age, alive, rate, waiting
from jobq.cli.howfar import amount
from jobq.cli.output import escape
from jobq.model.job import JobInfo, JobState
from jobq.model.stats import Stats, Tally

#: Lines besides the rows of the three tables: title, totals, headings, blank lines.
_FRAME = 14
_MOST_FAILURES = 5
#: Terminals at least so wide have room for worker and attempt, too.
_WIDE = 100
_BAR = 16
#: The path is left out where there is no room for the end of it.
_LEAST_PATH = 10
_TO_DO = (JobState.QUEUED, JobState.RUNNING)


class Screen:
    """Fills the terminal, and leaves it as it was."""

    def __init__(self, path: str, *, hidden: bool) -> None:
        from rich.console import Console  # optional extra
        from rich.live import Live

        self._path = path
        self._hidden = hidden
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._live.start()

    def show(self, stats: Stats) -> None:
        """Draw what goes on."""
        width, height = self._console.size
        drawn = draw(stats, self._path, width=width, height=height, hidden=self._hidden)
        self._live.update(drawn, refresh=True)

    def close(self) -> None:
        """Give the terminal back."""
        self._live.stop()


def draw(stats: Stats, path: str, *, width: int, height: int, hidden: bool = False) -> Any:
    """Return the view for a terminal of this size; what does not fit is counted."""
    from rich.console import Group  # optional extra

    failures = stats.failures[: min(_MOST_FAILURES, max(1, (height - _FRAME) // 4))]
    room = max(2, height - _FRAME - max(1, len(failures)))
    queues = stats.by_queue(hidden=hidden)
    most = max(1, min(len(queues), room // 2))
    return Group(
        _title(stats, path, width),
        *_totals(stats),
        _text(""),
        _queues(stats, _busiest(queues, most), left=len(queues) - most, width=width),
        _text(""),
        *_running(stats, max(1, room - most), width=width),
        _text(""),
        *_failures(stats, failures, width=width),
    )


def _busiest(queues: Mapping[str, Tally], most: int) -> dict[str, Tally]:
    """Return so many of the queues, those with most to do, in the order of their names."""
    by_work = sorted(queues, key=lambda name: -sum(queues[name].states[one] for one in _TO_DO))
    kept = set(by_work[:most])
    return {name: tally for name, tally in queues.items() if name in kept}


def _text(text: str, style: str = "") -> Any:
    from rich.text import Text  # optional extra

    return Text(escape(text), style=style, no_wrap=True, overflow="ellipsis")


def _title(stats: Stats, path: str, width: int) -> Any:
    at = f"{stats.at:%Y-%m-%d %H:%M:%S}Z"
    room = width - len(at) - 2
    if room < _LEAST_PATH:
        return _text(at, "bold")
    path = escape(path)
    shown = path if len(path) <= room else f"…{path[1 - room :]}"
    return _text(f"{shown:<{room}}  {at}", "bold")


def _totals(stats: Stats) -> list[Any]:
    total = stats.total
    return [
        _text("  ".join(f"{total.states[state]:,} {state}" for state in JobState)),
        _text(rate(total)),
        _text(f"{waiting(total)}, {alive(stats)}", "" if stats.runners else "yellow"),
    ]


def _table(*columns: tuple[str, str], width: int) -> Any:
    """Return an empty table; a column is its heading and one of left, name, right and rest.

    A name, which somebody chose, gets at most a quarter of the width, so that no number is cut.
    """
    from rich.table import Table  # optional extra

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=True)
    for heading, kind in columns:
        table.add_column(
            heading,
            justify="right" if kind == "right" else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if kind == "rest" else None,
            max_width=width // 4 if kind == "name" else None,
        )
    return table


def _queues(stats: Stats, queues: Mapping[str, Tally], *, left: int, width: int) -> Any:
    paused = {queue.name: queue for queue in stats.queues if queue.paused}
    table = _table(("queue", "name"), ("queued", "right"), ("running", "right"), ("ended/min", "right"),
                   ("failed/min", "right"), ("waits", "right"), ("", "rest"), width=width)
    for name, tally in queues.items():
        numbers = (
            tally.states[JobState.QUEUED], tally.states[JobState.RUNNING],
            sum(tally.last_minute.values()), tally.last_minute[JobState.FAILED],
        )
        oldest = "-" if tally.oldest_runnable is None else age(tally.oldest_runnable)
        why = f": {paused[name].paused_why}" if name in paused and paused[name].paused_why else ""
        table.add_row(_text(name), *(_text(f"{number:,}") for number in numbers), _text(oldest),
                      _text(f"paused{why}" if name in paused else "", "yellow"))
    if left:
        table.add_row(_text(f"and {left:,} more"))
    return table


def _running(stats: Stats, most: int, *, width: int) -> list[Any]:
    if not stats.running:
        return [_text("no jobs are running", "dim")]
    columns = [("running", "right"), ("kind", "name"), ("for", "right"), ("progress", "left"), ("", "rest")]
    wide = width >= _WIDE
    if wide:
        columns[3:3] = [("attempt", "right"), ("worker", "name")]
    table = _table(*columns, width=width)
    shown = stats.running if len(stats.running) <= most else stats.running[: max(1, most - 1)]
    for job in shown:
        since = "-" if job.started_at is None else age((stats.at - job.started_at).total_seconds())
        more = [_text(f"{job.attempts} of {job.max_attempts}"), _text(job.worker or "-")] if wide else []
        bar, note = _progress(job)
        table.add_row(_text(str(job.id)), _text(job.kind), _text(since), *more, bar, note)
    left = len(stats.running) - len(shown)
    return [table, _text(f"and {left:,} more are running", "dim")] if left else [table]


def _progress(job: JobInfo) -> tuple[Any, Any]:
    """Return a bar where the whole is known, else what is done; and the words that the handler said."""
    from rich.progress_bar import ProgressBar  # optional extra
    from rich.table import Table

    told = job.progress if isinstance(job.progress, Mapping) else {}
    done, total, words = told.get("done"), told.get("total"), told.get("note")
    asked = "asked to stop" if job.cancel_requested_at is not None else ""
    note = _text("  ".join(part for part in (asked, str(words or "")) if part))
    if not isinstance(done, int | float):
        return _text("-"), note
    if not isinstance(total, int | float) or total <= 0:
        return _text(f"{amount(done)} done"), note
    share = min(max(done / total, 0.0), 1.0)
    bar = Table.grid(padding=(0, 1, 0, 0))
    bar.add_row(ProgressBar(total=1.0, completed=share, width=_BAR), _text(f"{share:4.0%}"))
    return bar, note


def _failures(stats: Stats, failures: tuple[JobInfo, ...], *, width: int) -> list[Any]:
    if not failures:
        return [_text("no job has failed", "dim")]
    columns = [("failed", "right"), ("kind", "name"), ("ago", "right"), ("error", "rest")]
    wide = width >= _WIDE
    if wide:
        columns[3:3] = [("attempts", "right"), ("reason", "name")]
    table = _table(*columns, width=width)
    for job in failures:
        ago = "-" if job.finished_at is None else age((stats.at - job.finished_at).total_seconds())
        more = [_text(str(job.attempts)), _text(job.failure_reason or "-")] if wide else []
        table.add_row(_text(str(job.id)), _text(job.kind), _text(ago), *more, _text(job.last_error or "-", "red"))
    return [table]
