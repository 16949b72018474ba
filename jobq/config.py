"""The configuration of a job queue: one frozen value, checked when it is made."""

import os
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import attrs

from jobq import filesettings
from jobq.arguments import MOST, SHORTEST_LEASE, check_kind, check_queue, check_word
from jobq.errors import ConfigError
from jobq.model.duration import Duration
from jobq.model.nearest import suggestion
from jobq.model.retry import RetryPolicy
from jobq.queueconfig import QueueConfig
from jobq.retention import Retention, to_retention
from jobq.ring import RING_SIZE
from jobq.settingchecks import MOST_BYTES, checked, seconds, whole
from jobq.settings import Settings, setting
from jobq.store.base import Durability

MEBIBYTE = 1024 * 1024
#: The largest cap.
MOST_RUNNING = 1_000_000


def _durability(value: str) -> Durability:
    fix = suggestion(str(value), Durability)
    return checked("durability", lambda: check_word(value, Durability, argument="durability"), fix=fix)


def _lease(value: Duration) -> float:
    return seconds("lease", value, least=SHORTEST_LEASE)


def _max_attempts(value: int | None) -> int | None:
    return None if value is None else whole("max_attempts", value, least=1, most=MOST)


def _backoff_base(value: Duration) -> float:
    return seconds("backoff_base", value, least=0)


def _backoff_max(value: Duration) -> float:
    return seconds("backoff_max", value, least=0)


def _backoff_jitter(value: float) -> float:
    return checked("backoff_jitter", lambda: RetryPolicy(jitter=value).jitter)


def _grace(value: Duration) -> float:
    return seconds("grace", value, least=0)


def _payload_max_bytes(value: int) -> int:
    return whole("payload_max_bytes", value, least=2, most=MOST_BYTES)


def _result_max_bytes(value: int) -> int:
    return whole("result_max_bytes", value, least=2, most=MOST_BYTES)


def _busy_timeout(value: Duration) -> float:
    return seconds("busy_timeout", value, least=0, most=3_600)


def _poll(value: Duration) -> float:
    return seconds("poll", value, least=0.001, most=60)


def _hand(value: int) -> int:
    return whole("hand", value, least=1, most=1_000)


def _event_ring_size(value: int) -> int:
    return whole("event_ring_size", value, least=0, most=1_000_000)


def _self_heal(value: bool) -> bool:
    if not isinstance(value, bool):
        raise ConfigError("self_heal: true or false is needed")
    return value


def _limits(value: Mapping[str, int]) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise ConfigError("kind_limits: a mapping of kinds to numbers is needed")
    for kind, cap in value.items():
        checked("kind_limits", partial(check_kind, kind))
        whole(f"kind_limits[{kind!r}]", cap, least=1, most=MOST_RUNNING)
    return MappingProxyType(dict(value))


def _queues(value: Mapping[str, QueueConfig]) -> Mapping[str, QueueConfig]:
    if not isinstance(value, Mapping) or not all(isinstance(one, QueueConfig) for one in value.values()):
        raise ConfigError("queues: a mapping of names to QueueConfig values is needed")
    for name in value:
        checked("queues", partial(check_queue, name))
    return MappingProxyType(dict(value))


@attrs.frozen(kw_only=True)
class Config(Settings):
    """The configuration of one job queue object; every bad value raises ConfigError that names its key.

    Durations are given as seconds, timedeltas or text and kept as seconds.
    """

    lease: float = attrs.field(
        default=60.0,
        converter=_lease,
        metadata=setting("how long a claim holds a job; renewed every third of it", unit="s"),
    )
    max_attempts: int | None = attrs.field(
        default=None,
        converter=_max_attempts,
        metadata=setting("attempts of a job whose kind names none; without it the kind's row says, else 5"),
    )
    backoff_base: float = attrs.field(
        default=5.0,
        converter=_backoff_base,
        metadata=setting("first delay of a kind without a retry policy; it doubles with each failure", unit="s"),
    )
    backoff_max: float = attrs.field(
        default=3_600.0, converter=_backoff_max, metadata=setting("its longest delay", unit="s")
    )
    backoff_jitter: float = attrs.field(
        default=0.1,
        converter=_backoff_jitter,
        metadata=setting("the fraction by which its delays may be shortened at random"),
    )
    kind_limits: Mapping[str, int] = attrs.field(
        factory=dict, converter=_limits, metadata=setting("caps by kind; they win over those that handlers declare")
    )
    grace: float = attrs.field(
        default=30.0, converter=_grace, metadata=setting("how long a stopping runner lets handlers go on", unit="s")
    )
    retention: Retention = attrs.field(
        factory=Retention,
        converter=to_retention,
        metadata=setting("how long runners keep what has ended, such as { failed = \"90d\", succeeded = \"keep\" }"),
    )
    payload_max_bytes: int = attrs.field(
        default=MEBIBYTE, converter=_payload_max_bytes, metadata=setting("largest encoded payload", unit="bytes")
    )
    result_max_bytes: int = attrs.field(
        default=MEBIBYTE, converter=_result_max_bytes, metadata=setting("largest encoded result", unit="bytes")
    )
    durability: Durability = attrs.field(
        default=Durability.BALANCED,
        converter=_durability,
        metadata=setting("which commits are synced to the disk: full, balanced or relaxed"),
    )
    busy_timeout: float = attrs.field(
        default=5.0,
        converter=_busy_timeout,
        metadata=setting("how long a verb waits for another process's write lock", unit="s"),
    )
    poll: float = attrs.field(
        default=0.05,
        converter=_poll,
        metadata=setting("longest pause between two looks at the file's change counter", unit="s"),
    )
    hand: int = attrs.field(
        default=32,
        converter=_hand,
        metadata=setting("most jobs that a worker thread claims at once; 1 turns hands off"),
    )
    self_heal: bool = attrs.field(
        default=False,
        converter=_self_heal,
        metadata=setting("whether runners requeue transient failures after 15 minutes, at most three times each"),
    )
    queues: Mapping[str, QueueConfig] = attrs.field(
        factory=dict,
        converter=_queues,
        metadata=setting("the queues that have a configuration of their own", section="queues", table=QueueConfig),
    )
    events_file: str | None = attrs.field(
        default=None,
        converter=filesettings.events_file,
        metadata=setting("file of the event log; only `jobq work` has one without it, by the database", section="log"),
    )
    log_file: str | None = attrs.field(
        default=None,
        converter=filesettings.log_file,
        metadata=setting("where lines that jobs log go instead of the table", section="log", key="file"),
    )
    log_keep_days: int | None = attrs.field(
        default=7,
        converter=filesettings.log_keep_days,
        metadata=setting("how many days the table keeps them", section="log", key="keep_days", unit="days"),
    )
    file_max_bytes: int = attrs.field(
        default=10 * MEBIBYTE,
        converter=filesettings.file_max_bytes,
        metadata=setting("the size at which a file of events or lines is rotated", section="log", unit="bytes"),
    )
    file_backups: int = attrs.field(
        default=5, converter=filesettings.file_backups, metadata=setting("how many older ones are kept", section="log")
    )
    trace_file: str | None = attrs.field(
        default=None,
        converter=filesettings.trace_file,
        metadata=setting("where the trace goes; without it there is none", section="trace", key="file"),
    )
    trace_max_bytes: int = attrs.field(
        default=10 * MEBIBYTE,
        converter=filesettings.trace_max_bytes,
        metadata=setting("the size at which its file is rotated", section="trace", key="max_bytes", unit="bytes"),
    )
    trace_backups: int = attrs.field(
        default=5,
        converter=filesettings.trace_backups,
        metadata=setting("how many older ones are kept", section="trace", key="backups"),
    )
    event_ring_size: int = attrs.field(
        default=RING_SIZE,
        converter=_event_ring_size,
        metadata=setting("newest events that are kept for streams that go on where a client left off", section="api"),
    )

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None) -> "Config":
        """Return the configuration in a TOML file; with ``environ`` its variables win over the file.

        Sections and keys are those of the README's table, ``jobq config check FILE`` shows what is read.

        Raises:
            ConfigFileError: the file cannot be read, is no TOML, or says something that is not known or not allowed;
                it names the line and the nearest known word.
            ConfigError: a variable does.
        """
        from jobq import configfile  # start-up cost: most programs have no file

        return configfile.load(cls, path=path, environ=environ or {}).value()

    @property
    def retry(self) -> RetryPolicy:
        """The policy of a kind that names none."""
        return RetryPolicy(base=self.backoff_base, maximum=self.backoff_max, jitter=self.backoff_jitter)
