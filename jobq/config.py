"""The configuration of a job queue: one frozen value, checked when it is made."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import attrs

from jobq.arguments import MOST, SHORTEST_LEASE, check_int, check_kind, check_queue, check_word
from jobq.errors import ArgumentError, ConfigError
from jobq.model.duration import Duration, to_seconds
from jobq.model.retry import RetryPolicy
from jobq.store.base import Durability

MEBIBYTE = 1024 * 1024
#: The largest cap, and the largest limit of a payload in bytes.
MOST_RUNNING, MOST_BYTES = 1_000_000, 512 * MEBIBYTE

T = TypeVar("T")


def _checked(key: str, check: Callable[[], T]) -> T:
    """Return what a check returns; its refusal becomes one that names the key of the configuration."""
    try:
        return check()
    except ArgumentError as error:
        raise ConfigError(f"{key}: {error.problem}", fix=error.fix) from None


def _seconds(key: str, value: Duration, *, least: float, most: float = 1e9) -> float:
    seconds = _checked(key, lambda: to_seconds(value, argument=key))
    if not least <= seconds <= most:
        raise ConfigError(f"{key}: a duration from {least:g} s to {most:g} s is needed")
    return seconds


def _whole(key: str, value: object, *, least: int, most: int) -> int:
    return _checked(key, lambda: check_int(value, argument=key, least=least, most=most))


def _durability(value: str) -> Durability:
    return _checked("durability", lambda: check_word(value, Durability, argument="durability"))


def _lease(value: Duration) -> float:
    return _seconds("lease", value, least=SHORTEST_LEASE)


def _max_attempts(value: int | None) -> int | None:
    return None if value is None else _whole("max_attempts", value, least=1, most=MOST)


def _backoff_base(value: Duration) -> float:
    return _seconds("backoff_base", value, least=0)


def _backoff_max(value: Duration) -> float:
    return _seconds("backoff_max", value, least=0)


def _backoff_jitter(value: float) -> float:
    return _checked("backoff_jitter", lambda: RetryPolicy(jitter=value).jitter)


def _grace(value: Duration) -> float:
    return _seconds("grace", value, least=0)


def _payload_max_bytes(value: int) -> int:
    return _whole("payload_max_bytes", value, least=2, most=MOST_BYTES)


def _result_max_bytes(value: int) -> int:
    return _whole("result_max_bytes", value, least=2, most=MOST_BYTES)


def _busy_timeout(value: Duration) -> float:
    return _seconds("busy_timeout", value, least=0, most=3_600)


def _poll(value: Duration) -> float:
    return _seconds("poll", value, least=0.001, most=60)


def _hand(value: int) -> int:
    return _whole("hand", value, least=1, most=1_000)


def _workers(value: int | None) -> int | None:
    return None if value is None else _whole("workers", value, least=0, most=1_000)


def _limits(value: Mapping[str, int]) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise ConfigError("kind_limits: a mapping of kinds to numbers is needed")
    for kind, cap in value.items():
        _checked("kind_limits", partial(check_kind, kind))
        _whole(f"kind_limits[{kind!r}]", cap, least=1, most=MOST_RUNNING)
    return MappingProxyType(dict(value))


def _queues(value: "Mapping[str, QueueConfig]") -> "Mapping[str, QueueConfig]":
    if not isinstance(value, Mapping) or not all(isinstance(one, QueueConfig) for one in value.values()):
        raise ConfigError("queues: a mapping of names to QueueConfig values is needed")
    for name in value:
        _checked("queues", partial(check_queue, name))
    return MappingProxyType(dict(value))


@attrs.frozen(kw_only=True)
class QueueConfig:
    """The configuration of one queue."""

    #: Worker threads in each runner; None leaves it at 2 for ``default`` and 1 for others. 0 serves it elsewhere.
    workers: int | None = attrs.field(default=None, converter=_workers)


@attrs.frozen(kw_only=True)
class Config:
    """The configuration of one job queue object; every bad value raises ConfigError that names its key.

    Durations are given as seconds, timedeltas or text and kept as seconds.
    """

    #: How long a claim holds a job unless it is renewed; at least 0.1 s.
    lease: float = attrs.field(default=60.0, converter=_lease)
    #: Attempts of a job whose kind and enqueue name none; None leaves it to the kind's row, else 5.
    max_attempts: int | None = attrs.field(default=None, converter=_max_attempts)
    #: The retry delays of a kind that names no policy: ``backoff_base`` doubles with each failure up to the maximum.
    backoff_base: float = attrs.field(default=5.0, converter=_backoff_base)
    backoff_max: float = attrs.field(default=3_600.0, converter=_backoff_max)
    backoff_jitter: float = attrs.field(default=0.1, converter=_backoff_jitter)
    #: Caps by kind, which win over those that handlers declare.
    kind_limits: Mapping[str, int] = attrs.field(factory=dict, converter=_limits)
    #: How long a stopping runner lets its handlers go on.
    grace: float = attrs.field(default=30.0, converter=_grace)
    payload_max_bytes: int = attrs.field(default=MEBIBYTE, converter=_payload_max_bytes)
    result_max_bytes: int = attrs.field(default=MEBIBYTE, converter=_result_max_bytes)
    #: "full", "balanced" or "relaxed": which commits are synced.
    durability: Durability = attrs.field(default=Durability.BALANCED, converter=_durability)
    #: How long a verb waits for another process's write lock.
    busy_timeout: float = attrs.field(default=5.0, converter=_busy_timeout)
    #: The longest pause between two looks at the change counter, by runners and by ``wait``.
    poll: float = attrs.field(default=0.05, converter=_poll)
    #: The most jobs that a worker thread claims at once; 1 turns hands off.
    hand: int = attrs.field(default=32, converter=_hand)
    #: The queues that have a configuration of their own, by name.
    queues: Mapping[str, QueueConfig] = attrs.field(factory=dict, converter=_queues)

    @property
    def retry(self) -> RetryPolicy:
        """The policy of a kind that names none."""
        return RetryPolicy(base=self.backoff_base, maximum=self.backoff_max, jitter=self.backoff_jitter)
