"""Random expressions against croniter and cronsim; where they differ, a rule says why.

A rule rewrites an expression into one that means the same by our grammar and that the other library reads that way
too. A difference is explained if the rewritten expression shows none; a rule that explains nothing fails the test.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import attrs
import pytest
from croniter import croniter
from croniter.croniter import CroniterError
from cronsim import CronSim, CronSimError

from jobq import Cron, CronError

COUNT = 3_000
RUNS = 3
MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True))  # noqa: SIM905
WEEKDAYS = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))  # noqa: SIM905
Field = tuple[int, int, dict[str, int]]
FIELDS: tuple[Field, ...] = ((0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, MONTHS), (0, 7, WEEKDAYS))

Runs = tuple[datetime, ...] | None


def rolled(dice: random.Random) -> str:
    """Return a random expression of the grammar that all three share."""
    return " ".join(_field(dice, *field) for field in FIELDS)


def _field(dice: random.Random, low: int, high: int, names: dict[str, int]) -> str:
    if dice.random() < 0.35:
        return "*"
    return ",".join(_item(dice, low, high, names) for _ in range(dice.choice((1, 1, 1, 2, 3))))


def _item(dice: random.Random, low: int, high: int, names: dict[str, int]) -> str:
    first, last = sorted((dice.randint(low, high), dice.randint(low, high)))
    words = {number: name for name, number in names.items()}
    if first and words.get(0):
        words[7] = words[0]

    def text(value: int) -> str:
        if value in words and dice.random() < 0.3:
            return dice.choice((str.lower, str.upper, str.title))(words[value])
        return str(value)

    start, step = text(first), dice.randint(1, high + 2)
    forms = (start, f"{start}-{text(last)}", f"{start}-{text(last)}/{step}", f"{start}/{step}", f"*/{step}")
    return dice.choice(forms)


def ours(expression: str, start: datetime) -> Runs:
    """Return the next runs by jobq; None if it refuses the expression."""
    try:
        cron, found = Cron(expression), [start]
    except CronError:
        return None
    for _ in range(RUNS):
        found.append(cron.next_after(found[-1]))
    return tuple(found[1:])


def by_cronsim(expression: str, start: datetime) -> Runs:
    """Return the next runs by cronsim."""
    try:
        simulator = CronSim(expression, start)
    except CronSimError:
        return None
    return tuple(next(simulator) for _ in range(RUNS))


def by_croniter(expression: str, start: datetime) -> Runs:
    """Return the next runs by croniter, told to keep to the day rule of classic cron."""
    try:
        iterator = croniter(expression, start, implement_cron_bug=True)
        return tuple(iterator.get_next(datetime) for _ in range(RUNS))
    except CroniterError:
        return None


def range_of_one(expression: str) -> str:
    """A range from a value to itself is that value; cronsim takes 5-5/2 for 5/2, croniter 5-5 for the whole field."""
    return _each_item(expression, lambda first, last, step: first if last and _same(first, last) else None)


def sunday_ends_the_week(expression: str) -> str:
    """``sun`` may end a range of weekdays; cronsim knows it as 0 only."""
    return _each_item(
        expression,
        lambda first, last, step: f"{first}-7{step}" if last.lower() == "sun" and _number(first) else None,
    )


def weekdays_go_to_seven(expression: str) -> str:
    """``a/n`` goes to the end of the field, which is 7 for weekdays; croniter ends at 6."""
    *others, weekdays = expression.split()
    changed = _each_item(weekdays, lambda first, last, step: f"{first}-7{step}" if step and not last else None)
    return " ".join((*others, range_of_one(changed)))


def full_is_restricted(expression: str) -> str:
    """A day field goes by its text; croniter takes one that lists every value for a star, and wants both to match."""
    minutes, hours, days, months, weekdays = expression.split()
    if days[0] == "*" or weekdays[0] == "*":
        return expression
    every = _values(days, 1, 31) == set(range(1, 32)) or {v % 7 for v in _values(weekdays, 0, 7)} == set(range(7))
    return f"{minutes} {hours} * {months} *" if every else expression


def _values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        begin = low if first == "*" else _number(first)
        end = _number(last) if last else high if first == "*" or step else begin
        end = 7 if last.lower() == "sun" and begin else end
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def _number(text: str) -> int:
    return (MONTHS | WEEKDAYS)[text.lower()] if text.isalpha() else int(text)


def _same(first: str, last: str) -> bool:
    return _number(first) == _number(last) or (_number(first), last.lower()) == (7, "sun")


def _each_item(expression: str, change: Callable[[str, str, str], str | None]) -> str:
    def changed(match: re.Match[str]) -> str:
        return change(match[1], match[2] or "", match[3] or "") or match[0]

    return re.sub(r"(?<![^\s,])(\w+)(?:-(\w+))?(/\d+)?(?![^\s,])", changed, expression)


@attrs.frozen
class Other:
    """Another library, and the rules by which it differs."""

    runs: Callable[[str, datetime], Runs]
    rules: tuple[Callable[[str], str], ...]


OTHERS = [
    pytest.param(Other(by_cronsim, (sunday_ends_the_week, range_of_one)), id="cronsim"),
    pytest.param(Other(by_croniter, (full_is_restricted, range_of_one, weekdays_go_to_seven)), id="croniter"),
]


def cases(seed: str, count: int) -> Iterator[tuple[str, datetime]]:
    """Yield random expressions, each with an instant to look from."""
    dice = random.Random(seed)
    for _ in range(count):
        yield rolled(dice), datetime.fromtimestamp(dice.randrange(1_577_836_800, 1_900_000_000), UTC)


def explanation(other: Other, expression: str, start: datetime) -> str | None:
    """Return the rule after which a difference is gone; None if it stays after all of them."""
    expected = ours(expression, start)
    for rule in other.rules:
        expression = rule(expression)
        assert ours(expression, start) == expected, f"{rule.__name__} changed the meaning: {expression}"
        if other.runs(expression, start) == expected:
            return rule.__name__
    return None


def compare(other: Other, seed: str, count: int) -> None:
    """Compare each case; fail on a difference that no rule explains and on a rule that explains none."""
    explained: Counter[str] = Counter()
    for expression, start in cases(seed, count):
        if other.runs(expression, start) != ours(expression, start):
            rule = explanation(other, expression, start)
            assert rule is not None, f"{expression} from {start}"
            explained[rule] += 1
    assert set(explained) == {rule.__name__ for rule in other.rules}


@pytest.mark.parametrize("other", OTHERS)
def test_random_expressions_run_as_elsewhere(other: Other) -> None:
    """Three thousand of them give the same three runs, or are refused by both, but for what the rules explain."""
    compare(other, "cron", COUNT)


@pytest.mark.storm
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("seed", ["first", "second", "third", "fourth", "fifth"])
def test_more_random_expressions_run_as_elsewhere(other: Other, seed: str) -> None:
    """The same from other seeds, which nobody looked at while the rules were written."""
    compare(other, seed, 50_000)
