"""Instants: aware datetimes in UTC, checked once at the edge and trusted from there on."""

from datetime import UTC, datetime, timedelta

from jobq.errors import ArgumentError

#: The instant that stored times count from.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The first instant that a datetime can express.
MIN = datetime.min.replace(tzinfo=UTC)
#: The last instant that a datetime can express.
MAX = datetime.max.replace(tzinfo=UTC)

_MILLISECOND = timedelta(milliseconds=1)
_OUT_OF_RANGE = "the time is outside the years 1 to 9999"


def require_aware(value: datetime, *, argument: str) -> datetime:
    """Return the same instant in UTC, exactly.

    A naive datetime, anything that is no datetime, and an instant that leaves the years 1 to 9999 when converted to
    UTC raise :class:`ArgumentError` that names ``argument``.
    """
    if isinstance(value, datetime) and value.tzinfo is UTC:
        return value
    if not isinstance(value, datetime):
        raise ArgumentError(argument, f"expected an aware datetime, not a {type(value).__name__}")
    if value.utcoffset() is None:
        raise ArgumentError(
            argument,
            "the datetime is naive: it has no time zone",
            fix="Use datetime.now(timezone.utc), or attach the zone that you mean with replace(tzinfo=...).",
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ArgumentError(argument, _OUT_OF_RANGE) from None


def shift(now: datetime, seconds: float, *, argument: str) -> datetime:
    """Return the instant so many seconds after ``now``, or before it where they are negative.

    The seconds are rounded to microseconds. An instant outside the years 1 to 9999 raises :class:`ArgumentError`
    that names ``argument``.
    """
    try:
        return now + timedelta(seconds=seconds)
    except (OverflowError, ValueError):  # ValueError: NaN
        raise ArgumentError(argument, _OUT_OF_RANGE) from None


def to_ms(when: datetime) -> int:
    """Return an aware datetime as it is stored, in milliseconds since 1970; what is finer is dropped."""
    return (when - EPOCH) // _MILLISECOND


def from_ms(value: int) -> datetime:
    """Return stored milliseconds as an aware datetime; beyond the years 1 to 9999 it is the nearest there is."""
    try:
        return EPOCH + value * _MILLISECOND
    except OverflowError:
        return MAX if value > 0 else MIN
