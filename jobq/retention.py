"""How long what has ended is kept."""

from collections.abc import Mapping
from typing import Any

import attrs

from jobq.errors import ArgumentError, ConfigError
from jobq.model.duration import Duration, to_seconds
from jobq.model.job import JobState
from jobq.model.nearest import suggestion

DAY = 86_400.0
#: What a configuration file says for None, which TOML does not have.
KEEP = "keep"


def _age(key: str, value: Duration | None) -> float | None:
    if value is None or value == KEEP:
        return None
    try:
        seconds = to_seconds(value, argument=key)
    except ArgumentError as error:
        raise ConfigError(f"retention.{key}: {error.problem}", fix=error.fix) from None
    if seconds < 0:
        raise ConfigError(f"retention.{key}: a duration of 0 s or more is needed, or None to keep all")
    return seconds


def _succeeded(value: Duration | None) -> float | None:
    return _age("succeeded", value)


def _failed(value: Duration | None) -> float | None:
    return _age("failed", value)


def _cancelled(value: Duration | None) -> float | None:
    return _age("cancelled", value)


def _changes(value: Duration | None) -> float | None:
    return _age("changes", value)


@attrs.frozen(kw_only=True)
class Retention:
    """How long runners keep what has ended, by state; None, or the text "keep", keeps it for ever.

    Durations are given as seconds, timedeltas or text and kept as seconds.
    """

    succeeded: float | None = attrs.field(default=7 * DAY, converter=_succeeded)
    failed: float | None = attrs.field(default=30 * DAY, converter=_failed)
    cancelled: float | None = attrs.field(default=7 * DAY, converter=_cancelled)
    #: The lines of the change log, which outlive their jobs.
    changes: float | None = attrs.field(default=90 * DAY, converter=_changes)

    def of(self, state: JobState) -> float | None:
        """Return how many seconds a job that ended in this state is kept; None for ever."""
        found: float | None = getattr(self, state.value)
        return found


def to_retention(value: Retention | Mapping[str, Any]) -> Retention:
    """Return a Retention, also from a mapping of its keys, as a configuration file has it."""
    if isinstance(value, Retention):
        return value
    known = {field.name for field in attrs.fields(Retention)}
    if not isinstance(value, Mapping):
        raise ConfigError("retention: a Retention, or a mapping of states to durations, is needed")
    unknown = sorted(map(str, set(value) - known))
    if unknown:
        raise ConfigError(f"retention: there is no {unknown[0]!r}", fix=suggestion(unknown[0], known))
    return Retention(**value)
