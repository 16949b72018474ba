"""Retry policies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.errors import ArgumentError
from jobq.model.retry import RetryPolicy, RetryStrategy


@pytest.mark.parametrize(
    ("attempt", "delay"), [(1, 0.5), (2, 1), (13, 2_048), (47, 3_600), (1_100, 3_600), (10**6, 3_600), (10**400, 3_600)]
)
def test_b21_exponential_delay_doubles_up_to_the_maximum(attempt: int, delay: float) -> None:
    """The delay is base times two to the power of the failures before, capped, for any number of attempts."""
    assert RetryPolicy(base=0.5, maximum=3_600, jitter=0).delay(attempt, 0.5) == delay


@pytest.mark.parametrize("policy", [RetryPolicy(base=0), RetryPolicy(maximum=0)])
@pytest.mark.parametrize("attempt", [1, 2, 2_000])
def test_b21_a_base_or_maximum_of_zero_never_waits(policy: RetryPolicy, attempt: int) -> None:
    """Zero stays zero, also where the power is as large as a float allows."""
    assert policy.delay(attempt, 0.5) == 0


@given(
    base=st.floats(0, 1e11),
    maximum=st.floats(0, 1e11),
    jitter=st.floats(0, 1),
    strategy=st.sampled_from(RetryStrategy),
    attempt=st.integers(-5, 10**30),
    roll=st.floats(0, 1),
)
def test_b21_jitter_only_shortens(
    base: float, maximum: float, jitter: float, strategy: RetryStrategy, attempt: int, roll: float
) -> None:
    """Every delay lies between the delay without jitter, shortened by the whole fraction, and that delay."""
    policy = RetryPolicy(base=base, maximum=maximum, jitter=jitter, strategy=strategy)
    plain = policy.delay(attempt, 0.0)

    assert 0 <= plain * (1 - jitter) <= policy.delay(attempt, roll) <= plain <= maximum


def test_jitter_takes_off_its_fraction() -> None:
    """A roll of 1 takes off the whole fraction, a roll of 0 nothing."""
    policy = RetryPolicy(base=8, jitter=0.5)

    assert policy.delay(1, 1.0) == 4
    assert policy.delay(1, 0.0) == 8


def test_linear_delay_grows_by_the_base() -> None:
    """The linear strategy waits base times the number of failures, capped, for any number of attempts."""
    policy = RetryPolicy(base=2, maximum=5, jitter=0, strategy=RetryStrategy.LINEAR)

    assert [policy.delay(attempt, 0.5) for attempt in (1, 2, 3, 10**400)] == [2, 4, 5, 5]


def test_fixed_delay_stays() -> None:
    """The fixed strategy waits the base each time."""
    policy = RetryPolicy(base="2s", jitter=0, strategy="fixed")

    assert policy.schedule(4) == (2, 2, 2)


@pytest.mark.parametrize(("max_attempts", "delays"), [(1, ()), (2, (5,)), (5, (5, 10, 20, 40))])
def test_schedule_lists_the_delays_between_attempts(max_attempts: int, delays: tuple[float, ...]) -> None:
    """There is one delay between two attempts and none after the last, without jitter."""
    assert RetryPolicy().schedule(max_attempts) == delays


def test_defaults() -> None:
    """The defaults are 5 seconds, an hour and a tenth, growing exponentially."""
    policy = RetryPolicy()

    assert (policy.base, policy.maximum, policy.jitter, policy.strategy) == (5.0, 3_600.0, 0.1, "exponential")


def test_base_and_maximum_take_any_duration() -> None:
    """Text and timedeltas are kept as seconds."""
    policy = RetryPolicy(base="500ms", maximum="2h")

    assert (policy.base, policy.maximum) == (0.5, 7_200.0)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("base", -1),
        ("base", "soon"),
        ("base", float("nan")),
        ("maximum", -0.001),
        ("maximum", float("inf")),
        ("maximum", True),
        ("jitter", -0.1),
        ("jitter", 1.1),
        ("jitter", float("nan")),
        ("jitter", True),
        ("jitter", "0.5"),
        ("strategy", "quadratic"),
        ("strategy", None),
    ],
)
def test_invalid_values_are_refused(argument: str, value: Any) -> None:
    """An invalid value raises ArgumentError that names it."""
    with pytest.raises(ArgumentError) as caught:
        RetryPolicy(**{argument: value})

    assert caught.value.argument == argument


def test_json_round_trip() -> None:
    """A policy is stored with its kind and read back equal."""
    policy = RetryPolicy(base=2, maximum=600, jitter=0.25, strategy="linear")

    assert RetryPolicy.from_json(policy.to_json()) == policy


def test_from_json_bears_another_version() -> None:
    """Missing fields take their defaults, unknown ones are ignored."""
    assert RetryPolicy.from_json({"base": 2, "ceiling": 5}) == RetryPolicy(base=2)
