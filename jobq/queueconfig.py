"""The configuration of one queue."""

from collections.abc import Iterable
from functools import partial

import attrs

from jobq.arguments import check_kind
from jobq.errors import ConfigError
from jobq.settingchecks import checked, whole
from jobq.settings import Settings, setting


def _workers(value: int | None) -> int | None:
    return None if value is None else whole("workers", value, least=0, most=1_000)


def _hidden(value: bool) -> bool:
    if not isinstance(value, bool):
        raise ConfigError("hidden: true or false is needed")
    return value


def _kinds(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError("kinds: a list of kinds is needed")
    return tuple(dict.fromkeys(checked("kinds", partial(check_kind, kind)) for kind in value))


@attrs.frozen(kw_only=True)
class QueueConfig(Settings):
    """The configuration of one queue; ``hidden`` and ``kinds`` are stored with it and bind every process.

    The last configuration that names a queue wins.
    """

    workers: int | None = attrs.field(
        default=None,
        converter=_workers,
        metadata=setting("worker threads in each runner; 2 for `default` and 1 for others, 0 serves it elsewhere"),
    )
    hidden: bool = attrs.field(
        default=False, converter=_hidden, metadata=setting("whether listings leave it out unless asked for all")
    )
    kinds: tuple[str, ...] | None = attrs.field(
        default=None, converter=_kinds, metadata=setting("the kinds that it accepts; all unless told")
    )
