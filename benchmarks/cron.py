"""Is the next run of a cron expression found as fast as by cronsim and croniter, and fast in the worst case?

Each round takes each expression with all three libraries in turn, so that the machine's moods reach all of them alike.
A new expression is parsed and gives its first run; a walk goes on from there, each run in UTC, as a schedule needs it.
The worst cases are the rarest days there are, in a zone, and a slot looked for from the middle of a change of
the clocks.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from statistics import fmean, median
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from benchmarks.report import Figure, Report
from jobq.model.cron import Cron
from jobq.model.schedule import CatchUp, due_slots

COMMON = ("* * * * *", "*/5 * * * *", "0 * * * *", "0 7 * * mon-fri", "30 4 1,15 * 5", "0 0 1 * *", "0 0 1 1 *")
ZONES = ("UTC", "Europe/Berlin")
WALK, FIRSTS, ROUNDS = 50, 10, 25
START = datetime(2026, 1, 15, 10, 7, 30, tzinfo=UTC)
#: Expression, zone and where to look from: years without a run ahead, and a whole day that is skipped.
WORST = (
    ("0 0 */28 2 0", "UTC", datetime(2088, 2, 29, 12, tzinfo=UTC)),
    ("0 0 29 2 */7", "America/New_York", datetime(2088, 3, 1, tzinfo=UTC)),
    ("0-59 0-23 31 12 *", "Pacific/Apia", datetime(2011, 12, 30, 9, 59, 30, tzinfo=UTC)),
    ("*/59 * 29 2 */7", "Pacific/Kwajalein", datetime(1969, 9, 30, 23, 59, tzinfo=UTC)),
)
TEN_YEARS = timedelta(days=3_652)

Samples = dict[tuple[str, str, str, str], list[float]]
Runs = Callable[[str, str], Iterator[datetime]]


def run() -> Report:
    """Measure all three, relate the medians, and look for the slowest single step."""
    samples = _measure()
    figures = [
        Figure(name=f"{what}, {tz}, {name}", unit="µs", samples=_mean(samples, what, tz, name))
        for tz in ZONES
        for what in MEASURES
        for name in LIBRARIES
    ]
    figures.append(Figure(name="worst case, one run", unit="µs", samples=_worst()))
    figures.append(Figure(name="ten years behind, the slots of one tick", unit="µs", samples=_behind()))
    middle = {figure.name: figure.median for figure in figures}
    ratios = [
        (f"{what}, {tz}: jobq / {name}", middle[f"{what}, {tz}, jobq"] / middle[f"{what}, {tz}, {name}"], "at most 1")
        for tz in ZONES
        for what in MEASURES
        for name in ("cronsim", "croniter")
    ]
    ratios.extend(_by_expression(samples))
    ratios.append(("worst case, ms", max(figures[-2].samples) / 1_000, "under 10"))
    ratios.append(("ten years behind, ms", max(figures[-1].samples) / 1_000, "under 50"))
    return Report(
        question="One run of a cron expression, as the mean over common ones: " + "; ".join(COMMON),
        figures=figures,
        ratios=ratios,
    )


def _ours(expression: str, tz: str) -> Iterator[datetime]:
    cron, when = Cron(expression, tz), START
    while True:
        when = cron.next_after(when)
        yield when


def _cronsim(expression: str, tz: str) -> Iterator[datetime]:
    if tz == "UTC":
        return CronSim(expression, START)
    return (when.astimezone(UTC) for when in CronSim(expression, START.astimezone(ZoneInfo(tz))))


def _croniter(expression: str, tz: str) -> Iterator[datetime]:
    iterator = croniter(expression, START if tz == "UTC" else START.astimezone(ZoneInfo(tz)))
    while True:
        when = iterator.get_next(datetime)
        yield when if tz == "UTC" else when.astimezone(UTC)


LIBRARIES: dict[str, Runs] = {"jobq": _ours, "cronsim": _cronsim, "croniter": _croniter}


def _first(runs: Runs, expression: str, tz: str) -> float:
    begin = time.perf_counter()
    for _ in range(FIRSTS):
        next(runs(expression, tz))
    return (time.perf_counter() - begin) / FIRSTS * 1e6


def _walk(runs: Runs, expression: str, tz: str) -> float:
    iterator = runs(expression, tz)
    next(iterator)
    begin = time.perf_counter()
    for _ in range(WALK):
        next(iterator)
    return (time.perf_counter() - begin) / WALK * 1e6


MEASURES = {"first run": _first, "walk": _walk}


def _measure() -> Samples:
    samples: Samples = {}
    for _ in range(ROUNDS):
        for tz, what, expression, name in product(ZONES, MEASURES, COMMON, LIBRARIES):
            taken = MEASURES[what](LIBRARIES[name], expression, tz)
            samples.setdefault((what, tz, name, expression), []).append(taken)
    return samples


def _mean(samples: Samples, what: str, tz: str, name: str) -> list[float]:
    """Return for each round the mean over the expressions."""
    rounds = zip(*(samples[what, tz, name, expression] for expression in COMMON), strict=True)
    return [fmean(taken) for taken in rounds]


def _by_expression(samples: Samples) -> Iterator[tuple[str, float, str]]:
    """Yield for each expression the ratio to the faster of the other two."""
    for tz, what, expression in product(ZONES, MEASURES, COMMON):
        middle = {name: median(samples[what, tz, name, expression]) for name in LIBRARIES}
        ratio = middle["jobq"] / min(middle["cronsim"], middle["croniter"])
        yield f"{what}, {tz}, {expression}: jobq / the faster one", ratio, "at most 1"


def _worst() -> list[float]:
    taken = []
    for expression, tz, when in WORST * ROUNDS:
        cron = Cron(expression, tz)
        begin = time.perf_counter()
        cron.next_after(when)
        taken.append((time.perf_counter() - begin) * 1e6)
    return taken


def _behind() -> list[float]:
    taken = []
    for expression in COMMON * ROUNDS:
        cron = Cron(expression, "Europe/Berlin")
        next_run = cron.next_after(START)
        begin = time.perf_counter()
        due_slots(cron, next_run, START + TEN_YEARS, CatchUp.ALL, 5)
        taken.append((time.perf_counter() - begin) * 1e6)
    return taken
