"""What a listing, a requeue or a cancel looks for: keywords become a checked filter."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

from jobq.arguments import check_id, check_int, check_key, check_kind, check_queue, check_text, check_word
from jobq.errors import ArgumentError
from jobq.model.duration import Duration, to_seconds
from jobq.model.instant import EPOCH
from jobq.model.job import JobState
from jobq.model.nearest import suggestion
from jobq.store.base import Filter


class Where(TypedDict, total=False):
    """The keywords of ``find``, as ``where=`` of ``requeue`` and ``cancel`` takes them.

    A keyword that is None does not narrow the search. ``older_than`` and ``newer_than`` are durations: the time since
    the job ended, or since it was made where it has not ended. ``before`` is an id: only older jobs. ``limit`` takes
    the newest ones.
    """

    state: JobState | str | None
    kind: str | None
    queue: str | None
    parent_id: int | None
    tenant_id: str | None
    subject: str | None
    dedupe_key: str | None
    failure_reason: str | None
    older_than: Duration | None
    newer_than: Duration | None
    before: int | None
    limit: int | None


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "state": lambda value: check_word(value, JobState, argument="state"),
    "kind": check_kind,
    "queue": check_queue,
    "parent_id": lambda value: check_id(value, argument="parent_id"),
    "tenant_id": lambda value: check_text(value, argument="tenant_id"),
    "subject": lambda value: check_text(value, argument="subject"),
    "dedupe_key": check_key,
    "failure_reason": lambda value: check_text(value, argument="failure_reason"),
    "before": lambda value: check_id(value, argument="before"),
}
_AGES = ("older_than", "newer_than")


def filter_of(where: Mapping[str, Any], *, now: datetime) -> tuple[Filter, int | None]:
    """Return the filter and the limit that these keywords say.

    Raises:
        ArgumentError: a keyword is unknown, or its value is malformed.
    """
    if not isinstance(where, Mapping):
        raise ArgumentError("where", f"a mapping is needed, not a {type(where).__name__}")
    for name in where:
        if name not in Where.__annotations__:
            raise _unknown(name)
    named = {name: value for name, value in where.items() if value is not None}
    limit = named.pop("limit", None)
    checked: dict[str, Any] = {
        name: _instant(value, now, argument=name) if name in _AGES else _CHECKS[name](value)
        for name, value in named.items()
    }
    return Filter(**checked), None if limit is None else check_int(limit, argument="limit", least=0)


def narrowing_filter_of(where: Mapping[str, Any], *, now: datetime) -> tuple[Filter, int | None]:
    """Return the same for a verb that changes what it finds; one that would find every job is refused."""
    wanted, limit = filter_of(where, now=now)
    if wanted == Filter():
        raise ArgumentError("where", "it names nothing, and would reach every job", fix="Name a state, for instance.")
    return wanted, limit


def _instant(age: Duration, now: datetime, *, argument: str) -> datetime:
    seconds = to_seconds(age, argument=argument)
    if seconds < 0:
        raise ArgumentError(argument, "an age is not negative")
    # What is older than the calendar is older than any job.
    return now - timedelta(seconds=seconds) if seconds < (now - EPOCH).total_seconds() else EPOCH


def _unknown(name: object) -> ArgumentError:
    return ArgumentError("where", f"{name!r} is no keyword of find", fix=suggestion(str(name), Where.__annotations__))
