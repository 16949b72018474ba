"""How long a job waits after a failed attempt. Pure: the caller brings the dice."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs

from jobq.errors import ArgumentError
from jobq.model.duration import Duration, to_seconds
from jobq.model.job import DEFAULT_ATTEMPTS

#: 2.0 ** 1024 raises OverflowError; capped here, a product grows to infinity at worst, and min() cuts that.
_MAX_EXPONENT = 1_023
#: An int beyond the range of a float raises OverflowError when multiplied with one.
_MAX_FACTOR = 2**53


class RetryStrategy(StrEnum):
    """How the delay grows with the number of failed attempts."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


def _to_base(value: Duration) -> float:
    return to_seconds(value, argument="base")


def _to_maximum(value: Duration) -> float:
    return to_seconds(value, argument="maximum")


def _to_strategy(value: str) -> RetryStrategy:
    try:
        return RetryStrategy(value)
    except ValueError:
        raise ArgumentError("strategy", f"one of {', '.join(RetryStrategy)} is needed") from None


def _to_fraction(value: float) -> float:
    # The comparison is false for NaN, which is refused with the rest.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ArgumentError("jitter", "a number from 0 to 1 is needed")
    return float(value)


def _not_negative(_policy: object, attribute: "attrs.Attribute[float]", value: float) -> None:
    if value < 0:
        raise ArgumentError(attribute.name, "it cannot be negative")


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """The delay after each failed attempt of a job.

    ``base`` and ``maximum`` take any duration and are kept as seconds. ``jitter`` is the fraction by which a delay may
    be shortened at random: 0.5 gives equal jitter, 0 none. Invalid values raise :class:`ArgumentError`.
    """

    base: float = attrs.field(default=5.0, converter=_to_base, validator=_not_negative)
    maximum: float = attrs.field(default=3_600.0, converter=_to_maximum, validator=_not_negative)
    jitter: float = attrs.field(default=0.1, converter=_to_fraction)
    strategy: RetryStrategy = attrs.field(default=RetryStrategy.EXPONENTIAL, converter=_to_strategy)

    def delay(self, failed_attempt: int, roll: float) -> float:
        """Return the seconds to wait after the ``failed_attempt``-th failure, counted from 1.

        ``roll`` is a random number from 0 to 1 that decides how much of the jitter is taken off. The answer lies
        between 0 and ``maximum`` for every number of attempts; one below 1 counts as the first.
        """
        return self._plain(max(1, failed_attempt)) * (1.0 - self.jitter * roll)

    def schedule(self, max_attempts: int = DEFAULT_ATTEMPTS) -> tuple[float, ...]:
        """Return every delay, in seconds and without jitter, of a job that fails all of its attempts.

        There is one fewer than attempts: after the last one the job has failed for good.
        """
        return tuple(self._plain(attempt) for attempt in range(1, max_attempts))

    def to_json(self) -> dict[str, Any]:
        """Return the policy as a JSON object, as it is kept in the row of a kind."""
        return {"base": self.base, "maximum": self.maximum, "jitter": self.jitter, "strategy": self.strategy.value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RetryPolicy":
        """Return the policy that :meth:`to_json` wrote.

        Missing fields take their defaults and unknown ones are ignored, so that processes of two versions can share a
        file; a bad value raises :class:`ArgumentError`.
        """
        return cls(**{field.name: stored[field.name] for field in attrs.fields(cls) if field.name in stored})

    def _plain(self, attempt: int) -> float:
        if self.strategy is RetryStrategy.FIXED:
            grown = self.base
        elif self.strategy is RetryStrategy.LINEAR:
            grown = self.base * min(attempt, _MAX_FACTOR)
        else:
            grown = self.base * 2.0 ** min(attempt - 1, _MAX_EXPONENT)
        return min(self.maximum, grown)
