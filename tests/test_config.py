"""The configuration."""

import copy
from collections.abc import Callable
from datetime import timedelta

import attrs
import pytest

from jobq import Config, ConfigError, Durability, QueueConfig, RetryPolicy


def test_config_defaults_are_those_of_the_contract() -> None:
    """The documented values."""
    config = Config()

    assert (config.lease, config.max_attempts, config.grace) == (60, None, 30)
    assert config.retry == RetryPolicy(base=5, maximum=3600, jitter=0.1)
    assert (config.payload_max_bytes, config.result_max_bytes) == (1024 * 1024, 1024 * 1024)
    assert (config.durability, config.busy_timeout, config.poll, config.hand) == (Durability.BALANCED, 5, 0.05, 32)
    assert (config.kind_limits, config.queues) == ({}, {})


def test_config_takes_durations_in_every_spelling() -> None:
    """Seconds, timedeltas and text become seconds."""
    config = Config(lease="2m", grace=timedelta(seconds=3), poll="20ms", backoff_base=0)

    assert (config.lease, config.grace, config.poll, config.backoff_base) == (120.0, 3.0, 0.02, 0.0)


def test_config_is_frozen_and_owns_its_mappings() -> None:
    """Nobody changes a configuration after it was checked."""
    limits = {"mail": 2}
    config = Config(kind_limits=limits, queues={"mail": QueueConfig(workers=3)})
    limits["mail"] = 9

    assert config.kind_limits["mail"] == 2
    assert config.queues["mail"].workers == 3
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        config.lease = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        config.kind_limits["mail"] = 3  # type: ignore[index]


@pytest.mark.parametrize(
    ("key", "make"),
    [
        pytest.param("lease", lambda: Config(lease=0.05), id="lease too short"),
        pytest.param("lease", lambda: Config(lease=True), id="lease a bool"),
        pytest.param("lease", lambda: Config(lease="soon"), id="lease no duration"),
        pytest.param("max_attempts", lambda: Config(max_attempts=0), id="no attempts"),
        pytest.param("max_attempts", lambda: Config(max_attempts=2.0), id="attempts a float"),
        pytest.param("backoff_base", lambda: Config(backoff_base=-1), id="negative backoff"),
        pytest.param("backoff_max", lambda: Config(backoff_max=float("nan")), id="NaN"),
        pytest.param("backoff_jitter", lambda: Config(backoff_jitter=1.5), id="jitter above 1"),
        pytest.param("kind_limits", lambda: Config(kind_limits=["mail"]), id="limits no mapping"),
        pytest.param("kind_limits['mail']", lambda: Config(kind_limits={"mail": 0}), id="cap 0"),
        pytest.param("kind_limits", lambda: Config(kind_limits={"": 1}), id="empty kind"),
        pytest.param("grace", lambda: Config(grace=-1), id="negative grace"),
        pytest.param("retention.failed", lambda: Config(retention={"failed": -1}), id="negative age"),
        pytest.param("retention.changes", lambda: Config(retention={"changes": "soon"}), id="age no duration"),
        pytest.param("retention", lambda: Config(retention={"running": "1d"}), id="age of no final state"),
        pytest.param("retention", lambda: Config(retention="7d"), id="retention no mapping"),
        pytest.param("self_heal", lambda: Config(self_heal=1), id="self_heal a number"),
        pytest.param("payload_max_bytes", lambda: Config(payload_max_bytes=1), id="payload limit"),
        pytest.param("result_max_bytes", lambda: Config(result_max_bytes="1M"), id="result limit"),
        pytest.param("durability", lambda: Config(durability="never"), id="durability"),
        pytest.param("busy_timeout", lambda: Config(busy_timeout=float("inf")), id="endless wait"),
        pytest.param("poll", lambda: Config(poll=0), id="spinning"),
        pytest.param("hand", lambda: Config(hand=0), id="empty hand"),
        pytest.param("queues", lambda: Config(queues={"Mail": QueueConfig()}), id="queue name"),
        pytest.param("queues", lambda: Config(queues={"mail": {"workers": 1}}), id="queue no QueueConfig"),
        pytest.param("workers", lambda: QueueConfig(workers=-1), id="negative workers"),
        pytest.param("hidden", lambda: QueueConfig(hidden=1), id="hidden a number"),
        pytest.param("kinds", lambda: QueueConfig(kinds="mail"), id="kinds a text"),
        pytest.param("kinds", lambda: QueueConfig(kinds=5), id="kinds a number"),
        pytest.param("kinds", lambda: QueueConfig(kinds=[""]), id="an empty kind"),
    ],
)
def test_config_refuses_and_names_the_key(key: str, make: Callable[[], object]) -> None:
    """A bad value is a ConfigError whose text begins with the key."""
    with pytest.raises(ConfigError) as raised:
        make()

    assert str(raised.value).startswith(f"{key}: ")


@pytest.mark.parametrize(("kind", "near"), [(Config, "lease"), (QueueConfig, "workers")])
def test_unknown_keyword_names_the_nearest(kind: Callable[..., object], near: str) -> None:
    """As an unknown key of a file does."""
    with pytest.raises(ConfigError) as raised:
        kind(**{f"{near}x": 1})

    assert str(raised.value) == f"{near}x: {kind.__name__} has no such setting"  # type: ignore[attr-defined]
    assert raised.value.fix == f"Did you mean {near}?"


def test_config_can_be_copied_and_evolved() -> None:
    """It is a plain frozen value."""
    config = Config(lease=5)

    assert copy.copy(config) == config == attrs.evolve(Config(), lease=5)
